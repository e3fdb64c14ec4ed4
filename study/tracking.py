"""MLflow: one experiment a study, a parent run, and a child run a cell, logged by the driver.

What is logged is read from the results directory, which stays the truth: a run can always be
made again. A tracking server that fails costs a warning, never a cell.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
import queue
import shlex
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from study.errors import RequestError
from study.results import METRICS, Results

NONE = "none"
"""The `--tracking` that logs nothing."""

CONNECT_SECONDS = 10.0
"""How long a tracking server's port may take to answer."""

METRIC_STEP_FLOPS = 10**6
"""The step of every metric is the training compute in this unit (MFLOPs)."""

_PARAMS = (
    "task", "m", "n", "architecture", "batch_size", "precision", "paradigm", "schedule", "lr",
    "last_lr", "switch_point", "seed", "split_scheme", "budget_amount", "budget_unit",
)  # fmt: skip
_TAGS = (
    "cell_id", "comparison_id", "paradigm", "m", "seed", "lr", "switch_point", "status",
    "status_reason", "data_digest", "device", "threads", "pack", "micro_batch", "code_version",
)  # fmt: skip

DrawHeatmap = Callable[[Mapping[str, np.ndarray], str], Any]
"""(name -> 5 x 5 heat map, title) -> matplotlib Figure."""


class Tracker(Protocol):
    """Something that shows cells while a study runs."""

    def log_cells(self, cell_ids: Sequence[str]) -> None:
        """Logs recorded cells, soon and in the background; cells that are logged are left."""
        ...

    def finish(self, metrics: Mapping[str, float], files: Sequence[Path]) -> None:
        """Waits for the cells, logs the study's summary and attaches files to its parent run."""
        ...

    @property
    def ui_command(self) -> str | None:
        """How to look at the runs."""
        ...


class NullTracker:
    """Tracks nothing."""

    ui_command = None

    def log_cells(self, cell_ids: Sequence[str]) -> None:
        """Does nothing."""

    def finish(self, metrics: Mapping[str, float], files: Sequence[Path]) -> None:
        """Does nothing."""


def open_tracker(
    results: Results, study: str, uri: str | None, draw_heatmap: DrawHeatmap
) -> Tracker:
    """The tracker of a study.

    Args:
        results: where the cells are read from.
        study: name of the experiment.
        uri: MLflow tracking URI; `none`; or None for MLFLOW_TRACKING_URI, and without it a SQLite
            database in the results directory.
        draw_heatmap: draws the picture that is attached to a run.
    """
    uri = uri or os.environ.get("MLFLOW_TRACKING_URI")
    if uri == NONE:
        return NullTracker()
    return MLflowTracker(results, study, uri, draw_heatmap)


class MLflowTracker:
    """Logs to MLflow from a thread of the driver.

    The database is created and migrated in the constructor, once, before any trial runs: processes
    that do it side by side crash each other.
    """

    def __init__(
        self, results: Results, study: str, uri: str | None, draw_heatmap: DrawHeatmap
    ) -> None:
        self._results = results
        self._draw_heatmap = draw_heatmap
        artifacts = None
        if uri is None:
            if "://" in results.url:
                raise RequestError(
                    f"MLflow's database cannot lie at {results.url}. Name a tracking server with "
                    f"--tracking URI, or --tracking {NONE}."
                )
            folder = Path(results.url).resolve()
            uri = f"sqlite:///{folder / 'mlflow.db'}"
            artifacts = (folder / "mlflow-artifacts" / study).as_uri()
        self._uri = uri
        self._open(study, artifacts)
        self._failed = 0
        self._error: Exception | None = None
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="mlflow", daemon=True)
        self._thread.start()

    def _open(self, study: str, artifacts: str | None) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        from mlflow import MlflowClient

        for name in ("mlflow", "alembic"):  # after the import, which sets its own levels
            logging.getLogger(name).setLevel(logging.WARNING)
        try:
            _require_store(self._uri)
            self._client = MlflowClient(tracking_uri=self._uri)
            experiment = self._client.get_experiment_by_name(study)
            self._experiment = (
                experiment.experiment_id
                if experiment
                else self._client.create_experiment(study, artifact_location=artifacts)
            )
            self._logged = self._find_runs()
            self._parent = self._logged.get("") or self._create_run(
                study, {"role": "study", "metric_step": "training MFLOPs"}
            )
            self._client.update_run(self._parent, status="RUNNING")
        except Exception as error:  # a store may raise anything: its own, SQL's, the network's
            reason = (str(error) or repr(error)).splitlines()[0]
            raise RequestError(
                f"MLflow cannot track to {self._uri} ({reason}). Choose another store with "
                f"--tracking URI, or --tracking {NONE}."
            ) from error

    @property
    def ui_command(self) -> str:
        """The command that shows the runs, or the address of the server that does."""
        if self._uri.startswith(("http://", "https://")):
            return self._uri
        return f"uv run mlflow ui --backend-store-uri {shlex.quote(self._uri)}"

    def log_cells(self, cell_ids: Sequence[str]) -> None:
        """See `Tracker`."""
        for cell_id in cell_ids:
            self._queue.put(cell_id)

    def finish(self, metrics: Mapping[str, float], files: Sequence[Path]) -> None:
        """See `Tracker`."""
        self._queue.put(None)
        self._thread.join()
        try:
            for name, value in metrics.items():
                self._client.log_metric(self._parent, name, value)
            for file in files:
                self._client.log_artifact(self._parent, str(file))
            self._client.set_terminated(self._parent)
        except Exception as error:  # as for cells: the study is done, whatever the server does
            self._failed += 1
            self._error = error
        if self._failed:
            print(
                f"MLflow lacks {self._failed} runs ({self._error}). The results hold them; the "
                "same command logs them again.",
                file=sys.stderr,
            )

    def _find_runs(self) -> dict[str, str]:
        """Cell id -> run id of every complete run; the parent run under the empty id."""
        runs: dict[str, str] = {}
        token = None
        while True:
            page = self._client.search_runs([self._experiment], max_results=1000, page_token=token)
            for run in page:
                if run.data.tags.get("role") == "study":
                    runs[""] = run.info.run_id
                elif run.info.status == "RUNNING":  # its driver was killed while it was logged
                    self._client.delete_run(run.info.run_id)
                else:
                    runs[run.data.tags.get("cell_id", run.info.run_id)] = run.info.run_id
            token = page.token
            if not token:
                return runs

    def _create_run(self, name: str, tags: Mapping[str, str]) -> str:
        run = self._client.create_run(self._experiment, run_name=name, tags=dict(tags))
        return run.info.run_id

    def _work(self) -> None:
        while (cell_id := self._queue.get()) is not None:
            if cell_id in self._logged:
                continue
            try:
                self._logged[cell_id] = self._log(cell_id)
            except Exception as error:  # whatever the server does, training goes on
                self._failed += 1
                self._error = error

    def _log(self, cell_id: str) -> str:
        from mlflow.entities import Param, RunTag

        cell = self._results.cells([cell_id]).iloc[0]
        evaluations = self._results.evaluations([cell_id])
        values = {name: _text(cell[name]) for name in {*_PARAMS, *_TAGS} if _known(cell[name])}
        run_id = self._create_run(
            f"{cell['paradigm']} m={cell['m']} lr={cell['lr']:g} seed={cell['seed']}",
            {"mlflow.parentRunId": self._parent, "cell_id": cell_id},
        )
        metrics = list(_metrics(cell, evaluations))
        # The server's limits a call: 1,000 metrics, 100 params, 100 tags.
        for start in range(0, max(1, len(metrics)), 1000):
            self._client.log_batch(run_id, metrics=metrics[start : start + 1000])
        self._client.log_batch(
            run_id,
            params=[Param(name, values[name]) for name in _PARAMS if name in values],
            tags=[RunTag(name, values[name]) for name in _TAGS if name in values],
        )
        self._client.log_dict(run_id, json.loads(cell["cell"]), "cell.json")
        if len(evaluations):
            last = evaluations[evaluations["step"] == evaluations["step"].max()]
            heatmaps = {
                row["split"]: np.reshape(row["heatmap"], (5, 5)) for _, row in last.iterrows()
            }
            figure = self._draw_heatmap(heatmaps, cell["schedule"])
            self._client.log_figure(run_id, figure, "heatmap.png")
        self._client.set_terminated(run_id)
        return run_id


def _require_store(uri: str) -> None:
    """Raises OSError at once for a server or folder that is not there; MLflow would wait."""
    parts = urlsplit(uri)
    if parts.scheme in ("http", "https") and parts.hostname:
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        socket.create_connection((parts.hostname, port), timeout=CONNECT_SECONDS).close()
    elif parts.scheme == "sqlite":
        with open(uri.removeprefix("sqlite:///"), "ab"):  # creates it, as SQLite would
            pass


def _metrics(cell: pd.Series, evaluations: pd.DataFrame) -> Iterator[Any]:
    """One MLflow metric an evaluation, split and measure, stepped by compute."""
    from mlflow.entities import Metric

    finished = datetime.datetime.fromisoformat(cell["finished_at"]).timestamp()
    for row in evaluations.to_dict("records"):
        step = row["compute_flops"] // METRIC_STEP_FLOPS
        seconds = finished - cell["total_train_seconds"] + row["train_seconds"]
        milliseconds = int(1000 * seconds)
        for name in METRICS:
            yield Metric(f"{row['split']}/{name}", row[name], milliseconds, step)
        if row["split"] == "train":
            for name in ("budget_fraction", "train_seconds"):
                yield Metric(name, row[name], milliseconds, step)


def _known(value: Any) -> bool:
    return not pd.isna(value) and value != ""


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
