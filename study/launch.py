"""Distributes cells over Ray Tune: one trial a pack of cells, workers reused between trials."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from study.cell import Cell
from study.errors import RequestError
from study.plan import Plan
from study.progress import Progress
from study.trial import train_cells

CONNECT_SECONDS = 10.0
"""How long a cluster's port may take to answer."""

_RAY_SETTINGS = {
    # `uv run` would make Ray copy the project and build an environment a worker: keep this one.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    # A Ray on one machine listens on the loopback interface only.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Trials run in a thread, and only the first arena of glibc keeps memory: use no other.
    "MALLOC_ARENA_MAX": "1",
    # Parquet and MLflow hold the results; Tune's own loggers and prints would double them.
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "RAY_AIR_NEW_OUTPUT": "0",
    # Ctrl-C reaches the command, which says how to go on.
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
}
"""Read by Ray when it is first imported, and by its workers when they start; a setting of the
environment has precedence."""


@dataclass(frozen=True)
class Failure:
    """A cell that raised instead of ending: missing from the results, run again next time."""

    cell_id: str
    error: str


def launch(
    plan: Plan,
    config: Mapping[str, Any],
    progress: Progress,
    on_cell: Callable[[str], str],
    address: str | None = None,
) -> list[Failure]:
    """Trains the plan's cells that are not done.

    Args:
        plan: what to run and with how many threads.
        config: what `study.trial.train_cells` takes, but `cells` and `threads`.
        progress: told of every start, evaluation and end.
        on_cell: called on the driver with the id of each cell that is recorded; gives its status.
        address: of a running Ray cluster; None starts Ray on this machine and stops it after.

    Returns:
        The cells that failed.

    Raises:
        RequestError: no Ray at that address.
        KeyboardInterrupt: Ctrl-C; what is recorded stays.
    """
    with ray_session(plan.concurrent * plan.threads, address) as ray:
        from ray import tune

        gpus = 1 if ray.cluster_resources().get("GPU") else 0
        with tempfile.TemporaryDirectory(prefix="study-tune-") as storage:
            tuner = tune.Tuner(
                tune.with_resources(_trainable, {"cpu": plan.threads, "gpu": gpus}),
                param_space={
                    **config,
                    "threads": plan.threads,
                    "cells": tune.grid_search(
                        [[cell.to_dict() for cell in pack] for pack in plan.packs]
                    ),
                },
                tune_config=tune.TuneConfig(
                    reuse_actors=True,
                    trial_name_creator=_trial_name,
                    trial_dirname_creator=_trial_name,
                ),
                run_config=tune.RunConfig(
                    name=plan.study,
                    storage_path=storage,
                    callbacks=[_observer(tune.Callback, progress, on_cell)],
                    failure_config=tune.FailureConfig(max_failures=0),
                    verbose=0,
                ),
            )
            results = tuner.fit()
    return [
        Failure(Cell.from_dict(values).id, str(result.error))
        for result in results
        if result.error
        for values in (result.config or {})["cells"]
    ]


@contextlib.contextmanager
def ray_session(cores: int, address: str | None = None) -> Iterator[Any]:
    """The `ray` module, connected; what was started here is stopped at the end.

    Args:
        cores: CPU cores of a Ray on this machine.
        address: of a running cluster; None: this process's Ray, or a new one on this machine.

    Raises:
        RequestError: no Ray at that address.
    """
    for name, value in _RAY_SETTINGS.items():
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized() and address is None:
        yield ray
        return
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        # "local": RAY_ADDRESS must not turn this into a cluster.
        ray.init(address="local", num_cpus=cores, include_dashboard=False, **quiet)
    else:
        try:
            _require_listener(address)
            ray.init(address=address, **quiet)
        except (OSError, ValueError, RuntimeError) as error:
            raise RequestError(
                f"no Ray cluster at --address {address} ({' '.join(str(error).split())}). Start "
                "one with `ray start --head`, or leave --address out to run on this machine."
            ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _require_listener(address: str) -> None:
    """Raises OSError at once where nothing listens; Ray itself would wait for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()


def _trainable(config: dict[str, Any]) -> None:
    from ray import tune

    train_cells(config, report=tune.report)


def _trial_name(trial: Any) -> str:
    return Cell.from_dict(trial.config["cells"][0]).id


def _observer(base: type, progress: Progress, on_cell: Callable[[str], str]) -> Any:
    """A Tune callback that hands on what trials report; `base` is `ray.tune.Callback`."""

    class Observer(base):
        def __init__(self, progress: Progress, on_cell: Callable[[str], str]) -> None:
            self._progress = progress
            self._on_cell = on_cell

        def __getstate__(self) -> dict[str, Any]:
            return {}  # Tune saves its callbacks; nothing is ever restored from that

        def on_trial_start(self, iteration: int, trials: list, trial: Any, **_: Any) -> None:
            for values in trial.config["cells"]:
                self._progress.started(Cell.from_dict(values).id)

        def on_trial_result(
            self, iteration: int, trials: list, trial: Any, result: dict, **_: Any
        ) -> None:
            if "cell_id" in result:
                self._progress.evaluated(result)

        def on_trial_complete(self, iteration: int, trials: list, trial: Any, **_: Any) -> None:
            for values in trial.config["cells"]:
                cell_id = Cell.from_dict(values).id
                self._progress.ended(cell_id, self._on_cell(cell_id))

        def on_trial_error(self, iteration: int, trials: list, trial: Any, **_: Any) -> None:
            for values in trial.config["cells"]:
                self._progress.ended(Cell.from_dict(values).id, "failed")

    return Observer(progress, on_cell)
