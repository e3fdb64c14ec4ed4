"""What the soak does to a study: its disk fills up, bytes flip, MLflow's server dies."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CLOCK = Path(__file__).parent / "jumping_clock"

PAGE = os.sysconf("SC_PAGE_SIZE")

SERVER_SECONDS = 180.0
"""How long MLflow's server may take to start."""


def jumping_clock(seed: int) -> dict[str, str]:
    """The environment of processes whose wall clock jumps."""
    path = os.pathsep.join(filter(None, [str(CLOCK), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "SOAK_SEED": str(seed)}


class SmallDisk:
    """A file system of its own, in memory, that can be filled up at once.

    Args:
        folder: where it is mounted.

    Raises:
        SystemExit: without the right to mount one.
    """

    SIZE = "4g"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        if self._mount("-t", "tmpfs", "-o", f"size={self.SIZE}", "tmpfs"):
            raise SystemExit(
                "soak.py mounts a disk of its own and fills it up. Run it as root, or as "
                "`unshare --map-root-user --mount python benchmarks/soak.py`."
            )

    def fill(self) -> None:
        """Leaves no room for another page, however much is written meanwhile."""
        while True:
            status = os.statvfs(self.folder)
            used = (status.f_blocks - status.f_bfree) * status.f_frsize
            if not self._mount("-o", f"remount,size={max(used, PAGE)}"):
                return

    def free(self) -> None:
        """Makes room again."""
        self._mount("-o", f"remount,size={self.SIZE}")

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)

    def _mount(self, *options: str) -> int:
        command = ["mount", *options, str(self.folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode


@dataclass(frozen=True)
class Flip:
    """A byte of a file that was flipped.

    Attributes:
        name: of the file, in the results directory.
        cell_ids: whose results are in the file; empty for a checkpoint or fork point.
    """

    name: str
    cell_ids: frozenset[str]

    def set_aside(self, results: Path) -> bool:
        """Whether the study found it and set the file aside."""
        path = results / "damaged" / self.name
        return any(path.parent.glob(f"{path.stem}*"))


def flip(results: Path, folders: tuple[str, ...], rng: random.Random) -> Flip | None:
    """Changes a random byte of a random file, in place; None if there is no file."""
    names = sorted(str(p.relative_to(results)) for f in folders for p in results.glob(f"{f}/*"))
    names = [name for name in names if not name.endswith(".part")]
    if not names:
        return None
    name = rng.choice(names)
    with contextlib.suppress(FileNotFoundError):  # its cell has just ended
        cell_ids = _cells_in(results / name) if name.endswith(".parquet") else frozenset()
        with (results / name).open("r+b") as file:
            place = rng.randrange(file.seek(0, os.SEEK_END))
            file.seek(place)
            old = file.read(1)[0]
            file.seek(place)
            file.write(bytes([old ^ rng.randrange(1, 256)]))
        return Flip(name, cell_ids)
    return None


def _cells_in(path: Path) -> frozenset[str]:
    """The cells of a file of results; of one that is damaged already, its name's."""
    try:
        return frozenset(pq.read_table(path, columns=["cell_id"])["cell_id"].to_pylist())
    except (pa.ArrowException, OSError, KeyError):
        return frozenset([path.stem])


class Server:
    """MLflow's server, with SQLite.

    Args:
        folder: of its database, artifacts and log.
        environment: of its processes.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir()
        self._folder = folder
        self._environment = {**environment, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        self.database = f"sqlite:///{folder / 'mlflow.db'}"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = int(free.getsockname()[1])
        self.uri = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns at once; see `wait`."""
        words = [
            "server", "--host", "127.0.0.1", "--port", str(self._port), "--workers", "1",
            "--backend-store-uri", self.database,
            "--artifacts-destination", str(self._folder / "artifacts"),
        ]  # fmt: skip
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", *words],
                env=self._environment,
                cwd=self._folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Waits until it answers."""
        deadline = time.monotonic() + SERVER_SECONDS
        while not self._answers():
            if time.monotonic() > deadline:
                raise SystemExit(f"MLflow's server did not start:\n{self.said}")
            time.sleep(0.5)

    @property
    def said(self) -> str:
        """The end of its log."""
        return (self._folder / "log").read_text()[-2000:]

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


@contextlib.contextmanager
def serving(folder: Path, environment: Mapping[str, str]) -> Iterator[Server]:
    """A server that answers, killed at the end."""
    server = Server(folder, environment)
    try:
        server.start()
        server.wait()
        yield server
    finally:
        server.kill()


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    """A disk that is there until the end."""
    disk = SmallDisk(folder)
    try:
        yield disk
    finally:
        disk.close()
