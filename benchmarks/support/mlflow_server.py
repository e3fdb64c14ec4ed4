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

from benchmarks.support.processes import free_port

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
    """

    def __init__(self, folder: Path, *words: str, environment: Mapping[str, str] = {}) -> None:
        self.port = free_port()
        self.uri = f"http://127.0.0.1:{self.port}"
        self._folder, self._environment = folder, environment
        self._words = [*words, "--port", str(self.port)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it and waits until it answers; does nothing if it runs.

        Raises:
            RuntimeError: it ended, or does not answer in time.
        """
        self.begin()
        self.wait()

    def begin(self) -> None:
        """As `start`, without waiting."""
        if self._process:
            return
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", *self._words], cwd=self._folder, stdout=log,
                stderr=log, env={**os.environ, **self._environment}, start_new_session=True,
            )  # fmt: skip

    def wait(self) -> None:
        """Waits until a server that was begun answers; raises as `start`."""
        assert self._process
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self._folder / "log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"MLflow's server did not start:\n{said}")
            time.sleep(0.2)

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL to it and its workers."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=5) as answer:
                return bool(answer.status == 200)
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
    """Starts a server; it is killed at the end, or where it does not start."""
    try:
        server.start()
        yield server
    finally:
        server.kill()
