"""What a process may use within the limits of made-up cgroups, of both versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from study.limits import available_bytes, usable_cores

MEMINFO = "MemTotal: 16 kB\nMemAvailable: 8 kB\nHugePages_Free: 0"


def machine(folder: Path, groups: str, said: str) -> Path:
    """The root of a file system whose kernel says so: FILE = TEXT, with semicolons between."""
    files = dict(each.strip().split(" = ") for each in said.split(";") if each.strip())
    texts = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in {"proc/self/cgroup": groups, "proc/meminfo": MEMINFO, **texts}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n", "utf-8", errors="surrogateescape")
    return folder


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("groups", "said", "cores"),
    [
        ("0::/", "", 8),
        ("0::/", "cpu.max = max 100000", 8),
        ("0::/", "cpu.max = 50000 100000", 1),
        ("0::/", "cpu.max = 390000 100000", 3),
        ("0::/", "cpu.max = 3200000 100000", 8),
        # A pod's or a job's own group is not limited, one above it is.
        ("0::/job/step", "job/step/cpu.max = max 100000; job/cpu.max = 200000 100000", 2),
        ("0::/../other", "cpu.max = 200000 100000", 2),
        (
            "4:cpu,cpuacct:/\n5:cpuset:/x\n0::/",
            "cpu/cpu.cfs_quota_us = -1; cpu/cpu.cfs_period_us = 100000",
            8,
        ),
        (  # the machine's name of the group, which a container does not see
            "4:cpu,cpuacct:/docker/a1",
            "cpu/cpu.cfs_quota_us = 250000; cpu/cpu.cfs_period_us = 50000",
            5,
        ),
        (  # without a link cpu to it
            "4:cpu,cpuacct:/job",
            "cpu,cpuacct/job/cpu.cfs_quota_us = 200000;cpu,cpuacct/job/cpu.cfs_period_us = 100000",
            2,
        ),
        # A name that is not UTF-8.
        ("0::/job\udce9", "job\udce9/cpu.max = 200000 100000", 2),
        (
            "4:cpu:/job/step",
            "cpu/job/cpu.cfs_quota_us = 200000; cpu/job/cpu.cfs_period_us = 100000;"
            "cpu/job/step/cpu.cfs_quota_us = 400000; cpu/job/step/cpu.cfs_period_us = 100000",
            2,
        ),
    ],
)
def test_cores_are_the_least_of_affinity_and_quota(tmp_path, groups, said, cores):
    assert usable_cores(machine(tmp_path, groups, said)) == cores


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(("count", "cores"), [(3, 3), (20, 8), (None, 1)])
def test_what_python_is_told_of_cores_counts(tmp_path, monkeypatch, count, cores):
    # PYTHON_CPU_COUNT, from Python 3.13 on.
    monkeypatch.setattr(os, "process_cpu_count", lambda: count, raising=False)
    assert usable_cores(machine(tmp_path, "0::/", "")) == cores


@pytest.mark.parametrize(
    ("groups", "said", "available"),
    [
        ("0::/", "", 8192),
        ("0::/", "memory.max = max; memory.current = 1024", 8192),
        # Files in memory make room when it is asked for.
        (
            "0::/",
            "memory.max = 4096; memory.current = 3072;"
            "memory.stat = anon 1024\ninactive_file 1024\nactive_file 512",
            2560,
        ),
        ("0::/", "memory.max = 1024; memory.current = 2048", 0),
        ("0::/a/b", "a/memory.max = 1024; a/memory.current = 0", 1024),
        (
            "4:memory:/a",
            "memory/memory.limit_in_bytes = 9223372036854771712;"
            "memory/memory.usage_in_bytes = 9216;"
            "memory/a/memory.limit_in_bytes = 2048; memory/a/memory.usage_in_bytes = 1024;"
            "memory/a/memory.stat = inactive_file 1\ntotal_inactive_file 24",
            1048,
        ),
    ],
)
def test_memory_is_what_machine_and_limits_leave(tmp_path, groups, said, available):
    assert available_bytes(machine(tmp_path, groups, said)) == available


@pytest.mark.usefixtures("eight_cores")
def test_a_system_without_such_files_has_what_it_says(tmp_path):
    assert usable_cores(tmp_path) == 8
    pages = os.sysconf("SC_PHYS_PAGES")
    assert available_bytes(tmp_path) == pages * os.sysconf("SC_PAGE_SIZE")
