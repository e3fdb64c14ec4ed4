"""What the soak does to a study: its disk fills up, bytes flip, its clock jumps."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CLOCK = Path(__file__).parent / "jumping_clock"

DISK = "size=4g"


def jumping_clock(seed: int) -> dict[str, str]:
    """The environment of processes whose wall clock jumps."""
    path = os.pathsep.join(filter(None, [str(CLOCK), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "SOAK_SEED": str(seed)}


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mounts a file system in memory, which can be filled up at once, until the end.

    Raises:
        SystemExit: without the right to mount one.
    """
    folder.mkdir()
    if not _mount(folder, "-t", "tmpfs", "-o", DISK, "tmpfs"):
        raise SystemExit(
            "soak.py mounts a disk of its own and fills it up. Run it as root, or as "
            "`unshare --map-root-user --mount python benchmarks/soak.py`."
        )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> None:
    """Leaves no room for another page on a small disk, however much is written meanwhile."""
    used = page = os.sysconf("SC_PAGE_SIZE")
    while not _mount(disk, "-o", f"remount,size={used}"):
        status = os.statvfs(disk)
        used = max((status.f_blocks - status.f_bfree) * status.f_frsize, page)


def free(disk: Path) -> None:
    """Makes room again."""
    _mount(disk, "-o", f"remount,{DISK}")


def _mount(folder: Path, *options: str) -> bool:
    """Whether it could be mounted so."""
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True, check=False)
    return done.returncode == 0


def flip(files: list[Path], rng: random.Random) -> set[str] | None:
    """Changes a random byte of a random one of some files, in place.

    Returns:
        The cells whose results are in the file, none of a checkpoint; None: there is no file.
    """
    with contextlib.suppress(IndexError, FileNotFoundError):  # its cell has just ended
        path = rng.choice(files)
        cell_ids = _cells_in(path)
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
            data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        return cell_ids
    return None


def _cells_in(path: Path) -> set[str]:
    """The cells of a file of results, but of one that a flipped byte has damaged."""
    with contextlib.suppress(pa.ArrowException, KeyError, UnicodeDecodeError):
        return set(pq.read_table(path, columns=["cell_id"])["cell_id"].to_pylist())
    return set()
