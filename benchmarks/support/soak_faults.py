"""What the soak does to a study: its disk fills up, bytes flip, its clock jumps."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from study.results.cell_file import own_cell

CLOCK = Path(__file__).parent / "jumping_clock"

PAGE = os.sysconf("SC_PAGE_SIZE")


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
        cell_ids: whose results are in the file; empty for a checkpoint.
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
    """The cells of a file of results; none of a merged one that is damaged already."""
    if own := own_cell(path.name):
        return frozenset([own])
    try:
        return frozenset(pq.read_table(path, columns=["cell_id"])["cell_id"].to_pylist())
    except (pa.ArrowException, OSError, KeyError):
        return frozenset()


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    """A disk that is there until the end."""
    disk = SmallDisk(folder)
    try:
        yield disk
    finally:
        disk.close()
