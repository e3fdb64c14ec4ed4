"""What a process may use within the limits of made-up cgroups, of both versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from study.limits import available_bytes, usable_cores

GIB = 2**30
MEMINFO = f"MemTotal: {16 * GIB // 1024} kB\nMemAvailable: {8 * GIB // 1024} kB\nHugePages_Free: 0"
UNLIMITED_V1 = str(2**63 - 4096)


def machine(folder: Path, groups: str, files: dict[str, str]) -> Path:
    """The root of a file system whose kernel says so."""
    for name, text in {"proc/self/cgroup": groups, "proc/meminfo": MEMINFO, **files}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n", "utf-8", errors="surrogateescape")
    return folder


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


V1 = "sys/fs/cgroup/cpu"


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("0::/", {}, 8),
        ("0::/", {"sys/fs/cgroup/cpu.max": "max 100000"}, 8),
        ("0::/", {"sys/fs/cgroup/cpu.max": "50000 100000"}, 1),
        ("0::/", {"sys/fs/cgroup/cpu.max": "390000 100000"}, 3),
        ("0::/", {"sys/fs/cgroup/cpu.max": "3200000 100000"}, 8),
        # A pod's or a job's own group is not limited, one above it is.
        (
            "0::/job/step",
            {
                "sys/fs/cgroup/job/step/cpu.max": "max 100000",
                "sys/fs/cgroup/job/cpu.max": "200000 100000",
            },
            2,
        ),
        ("0::/../other", {"sys/fs/cgroup/cpu.max": "200000 100000"}, 2),
        (
            "4:cpu,cpuacct:/\n5:cpuset:/x\n0::/",
            {f"{V1}/cpu.cfs_quota_us": "-1", f"{V1}/cpu.cfs_period_us": "100000"},
            8,
        ),
        (  # the machine's name of the group, which a container does not see
            "4:cpu,cpuacct:/docker/a1",
            {f"{V1}/cpu.cfs_quota_us": "250000", f"{V1}/cpu.cfs_period_us": "50000"},
            5,
        ),
        (  # without a link cpu to it
            "4:cpu,cpuacct:/job",
            {
                f"{V1},cpuacct/job/cpu.cfs_quota_us": "200000",
                f"{V1},cpuacct/job/cpu.cfs_period_us": "100000",
            },
            2,
        ),
        # A name that is not UTF-8.
        ("0::/job\udce9", {"sys/fs/cgroup/job\udce9/cpu.max": "200000 100000"}, 2),
        (
            "4:cpu:/job/step",
            {
                f"{V1}/job/cpu.cfs_quota_us": "200000",
                f"{V1}/job/cpu.cfs_period_us": "100000",
                f"{V1}/job/step/cpu.cfs_quota_us": "400000",
                f"{V1}/job/step/cpu.cfs_period_us": "100000",
            },
            2,
        ),
    ],
)
def test_cores_are_the_least_of_affinity_and_quota(
    tmp_path: Path, groups: str, files: dict[str, str], cores: int
) -> None:
    assert usable_cores(machine(tmp_path, groups, files)) == cores


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(("count", "cores"), [(3, 3), (20, 8), (None, 1)])
def test_what_python_is_told_of_cores_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int | None, cores: int
) -> None:
    # PYTHON_CPU_COUNT, from Python 3.13 on.
    monkeypatch.setattr(os, "process_cpu_count", lambda: count, raising=False)
    assert usable_cores(machine(tmp_path, "0::/", {})) == cores


V2 = "sys/fs/cgroup"
MEMORY_V1 = "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("groups", "files", "available"),
    [
        ("0::/", {}, 8 * GIB),
        ("0::/", {f"{V2}/memory.max": "max", f"{V2}/memory.current": str(GIB)}, 8 * GIB),
        # Files in memory make room when it is asked for.
        (
            "0::/",
            {
                f"{V2}/memory.max": str(4 * GIB),
                f"{V2}/memory.current": str(3 * GIB),
                f"{V2}/memory.stat": f"anon {GIB}\ninactive_file {GIB}\nactive_file {GIB // 2}",
            },
            5 * GIB // 2,
        ),
        ("0::/", {f"{V2}/memory.max": str(GIB), f"{V2}/memory.current": str(2 * GIB)}, 0),
        ("0::/a/b", {f"{V2}/a/memory.max": str(GIB), f"{V2}/a/memory.current": "0"}, GIB),
        (
            "4:memory:/a",
            {
                f"{MEMORY_V1}/memory.limit_in_bytes": UNLIMITED_V1,
                f"{MEMORY_V1}/memory.usage_in_bytes": str(9 * GIB),
                f"{MEMORY_V1}/a/memory.limit_in_bytes": str(2 * GIB),
                f"{MEMORY_V1}/a/memory.usage_in_bytes": str(GIB),
                f"{MEMORY_V1}/a/memory.stat": "inactive_file 1\ntotal_inactive_file 1024",
            },
            GIB + 1024,
        ),
    ],
)
def test_memory_is_what_machine_and_limits_leave(
    tmp_path: Path, groups: str, files: dict[str, str], available: int
) -> None:
    assert available_bytes(machine(tmp_path, groups, files)) == available


@pytest.mark.usefixtures("eight_cores")
def test_a_system_without_such_files_has_what_it_says(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == 8
    pages = os.sysconf("SC_PHYS_PAGES")
    assert available_bytes(tmp_path) == pages * os.sysconf("SC_PAGE_SIZE")
