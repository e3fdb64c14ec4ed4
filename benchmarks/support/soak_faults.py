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


@dataclass(frozen=True)
class SmallDisk:
    """A file system of its own, in memory, that can be filled up at once.

    Attributes:
        folder: where it is mounted.
    """

    folder: Path
    size = "4g"

    def fill(self) -> None:
        """Leaves no room for another page, however much is written meanwhile."""
        used = PAGE
        while self.mount("-o", f"remount,size={used}"):
            status = os.statvfs(self.folder)
            used = max((status.f_blocks - status.f_bfree) * status.f_frsize, PAGE)

    def free(self) -> None:
        """Makes room again."""
        self.mount("-o", f"remount,size={self.size}")

    def mount(self, *options: str) -> int:
        """The status of the command."""
        command = ["mount", *options, str(self.folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    """A disk that is there until the end.

    Raises:
        SystemExit: without the right to mount one.
    """
    disk = SmallDisk(folder)
    folder.mkdir()
    if disk.mount("-t", "tmpfs", "-o", f"size={disk.size}", "tmpfs"):
        raise SystemExit(
            "soak.py mounts a disk of its own and fills it up. Run it as root, or as "
            "`unshare --map-root-user --mount python benchmarks/soak.py`."
        )
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


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


def flip(results: Path, folder: str, rng: random.Random) -> Flip | None:
    """Changes a random byte of a random file of a folder, in place; None if there is no file."""
    names = sorted(path.name for path in results.glob(f"{folder}/*") if path.suffix != ".part")
    if not names:
        return None
    path = results / folder / rng.choice(names)
    with contextlib.suppress(FileNotFoundError):  # its cell has just ended
        cell_ids = frozenset(cells_in(path) if path.suffix == ".parquet" else ())
        with path.open("r+b") as file:
            place = rng.randrange(file.seek(0, os.SEEK_END))
            file.seek(place)
            old = file.read(1)[0]
            file.seek(place)
            file.write(bytes([old ^ rng.randrange(1, 256)]))
        return Flip(f"{folder}/{path.name}", cell_ids)
    return None


def cells_in(path: Path) -> list[str]:
    """The cells of a file of results; none of one that is damaged or gone."""
    if own := own_cell(path.name):
        return [own]
    try:
        return list(pq.read_table(path, columns=["cell_id"])["cell_id"].unique().to_pylist())
    except (pa.ArrowException, OSError, KeyError):  # flipped, or merged with others meanwhile
        return []
