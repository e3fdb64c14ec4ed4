"""Ray on this machine or a running cluster: the connection, and what Ray reads at its start."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

from study.errors import RequestError

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
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    # Ctrl-C reaches the command, which says how to go on.
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
}
"""Read by Ray when it is first imported, and by its workers when they start; a setting of the
environment has precedence."""


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
                "one with `ray start --head`, or leave --address out to run on this machine. A "
                "cluster with token authentication wants its token on this machine, too."
            ) from error
    try:
        with _terminating():
            yield ray
    finally:
        ray.shutdown()


class Terminated(KeyboardInterrupt):
    """SIGTERM, as batch systems and containers send it: stops a study like Ctrl-C."""


@contextlib.contextmanager
def _terminating() -> Iterator[None]:
    """Takes SIGTERM from Ray, whose handler aborts the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    received = []

    def stop(number: int, frame: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:  # Tune raises one of its own
        if received:
            raise Terminated from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _require_listener(address: str) -> None:
    """Raises OSError at once where nothing listens; Ray itself would wait for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
