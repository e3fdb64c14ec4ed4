"""MLflow's commands that serve, in a process that may be killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.support.processes import free_ports

START_SECONDS = 180.0
"""How long a server may take until it answers."""


class MLflowServer:
    """One of MLflow's commands that serve, on a free port of the loopback.

    Args:
        folder: where it runs, for its log.
        words: of the command, but for the port.
        environment: changes of this process's.

    Attributes:
        uri: its address; the same after every start.
        pid: of the process that was started last.
    """

    def __init__(self, folder: Path, *words: str, environment: Mapping[str, str] = {}) -> None:
        (self.port,) = free_ports(1)
        self.uri = f"http://127.0.0.1:{self.port}"
        self.pid = 0
        self._folder, self._environment = folder, environment
        self._words = [*words, "--port", str(self.port)]

    def start(self) -> None:
        """Starts its process; `wait` says when it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", *self._words], cwd=self._folder, stdout=log,
                stderr=log, env={**os.environ, **self._environment}, start_new_session=True,
            )  # fmt: skip
        self.pid = self._process.pid

    def wait(self) -> None:
        """Waits until it answers.

        Raises:
            RuntimeError: it ended, or does not answer in time.
        """
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self._folder / "log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"MLflow's server did not start:\n{said}")
            time.sleep(0.2)

    def kill(self) -> None:
        """SIGKILL to it and its workers, unless that has been done."""
        if self._process.returncode is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=5):
                return True
        except OSError:
            return False


def tracking_server(
    folder: Path, database: str, environment: Mapping[str, str] = {}
) -> MLflowServer:
    """The server that docs/running.md starts, which takes artifacts, with one worker.

    Args:
        folder: of its artifacts and log.
        database: where it keeps runs, `sqlite:///...` or `postgresql://...`.
        environment: as for `MLflowServer`.
    """
    return MLflowServer(
        folder, "server", "--host", "127.0.0.1", "--backend-store-uri", database,
        "--artifacts-destination", str(folder / "artifacts"), "--workers", "1",
        environment={"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **environment},
    )  # fmt: skip


@contextmanager
def serving(server: MLflowServer) -> Iterator[MLflowServer]:
    """A server that answers; it is killed at the end, or where it does not start."""
    server.start()
    try:
        server.wait()
        yield server
    finally:
        server.kill()
