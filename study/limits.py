"""What this process may take of its machine: CPU cores and memory, within the limits of cgroups.

Containers and batch systems set those; what the machine says of itself leaves them out.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path("/")


def usable_cores(root: Path = ROOT) -> int:
    """The CPU cores that this process may use: by affinity and quota, at least 1.

    A quota of 1.5 cores counts as one, so that no thread has to wait while it is timed.

    Args:
        root: of the file system.
    """
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on; it knows PYTHON_CPU_COUNT
        cores = min(cores, os.process_cpu_count() or 1)
    for group in _groups("cpu", root):
        match _numbers(group, "cpu.max") or _numbers(
            group, "cpu.cfs_quota_us", "cpu.cfs_period_us"
        ):
            case [quota, period] if quota > 0 and quota / period < cores:
                cores = int(quota / period)
    return max(1, cores)


def available_bytes(root: Path = ROOT) -> int:
    """Memory that new arrays can take, without swapping.

    Args:
        root: of the file system.
    """
    try:
        available = 1024 * _named(root / "proc/meminfo")["MemAvailable:"]
    except (OSError, KeyError):  # not Linux
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for group in _groups("memory", root):
        match _numbers(group, "memory.max", "memory.current") or _numbers(
            group, "memory.limit_in_bytes", "memory.usage_in_bytes"
        ):
            case [limit, used] if limit < math.inf:
                available = min(available, max(0, int(limit - used) + _cached(group)))
    return available


def _groups(controller: str, root: Path) -> Iterator[Path]:
    """Folders of the cgroups, of version 1 or 2, that hold this process, and of those above.

    A container may see only its own part of the tree; the names above are missing there.
    """
    try:
        text = (root / "proc/self/cgroup").read_text("utf-8", errors="surrogateescape")
    except OSError:  # not Linux
        return
    for line in text.splitlines():
        _, controllers, name = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            group = PurePosixPath(name.lstrip("/"))
            # Version 1 is mounted as cpu,cpuacct, which not every system links as cpu, too.
            for mounted in {controllers, controllers and controller}:
                tree = root / "sys/fs/cgroup" / mounted
                yield from (tree / each for each in (group, *group.parents))


def _numbers(group: Path, *files: str) -> list[float]:
    """The numbers in files of a cgroup; none if one is missing. No limit is ``max``."""
    try:
        words = " ".join((group / file).read_text("ascii") for file in files).split()
        return [math.inf if word == "max" else float(word) for word in words]
    except (OSError, ValueError):
        return []


def _cached(group: Path) -> int:
    """Bytes of files that a cgroup keeps in memory as long as nobody else needs it."""
    try:
        known = _named(group / "memory.stat")
    except OSError:
        return 0
    # Version 1 counts the groups inside apart.
    kinds = ("inactive_file", "active_file")
    return sum(known.get(f"total_{kind}", known.get(kind, 0)) for kind in kinds)


def _named(file: Path) -> dict[str, int]:
    """The lines ``NAME NUMBER ...`` of a file."""
    lines = file.read_text("ascii").splitlines()
    return {name: int(number) for name, number, *_ in map(str.split, lines)}
