"""How a cell is run: memory that is kept, sizes of a pass."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from study import hardware
from tests.conftest import PROJECT

COUNT_FAULTS = """
import resource, threading, torch
from study import hardware

def work():
    hardware.set_up(1)
    for _ in range(20):
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        for size in (20, 50, 100, 35):
            torch.ones(size * 2**18)  # MB
        faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
    print(faults)

thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
"""Page faults of the 20th round of large tensors, in a thread, as Tune runs its trials."""

NEEDS_GLIBC = "needs glibc, whose allocator is told to keep memory"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason=NEEDS_GLIBC)
def test_large_tensors_cost_page_faults_once_only() -> None:
    """With the setting that the workers of a study have; see tests/study/launch/test_launch.py."""
    faults = [
        int(
            subprocess.run(
                [sys.executable, "-c", COUNT_FAULTS],
                cwd=PROJECT,
                env={**os.environ, "MALLOC_ARENA_MAX": arenas},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for arenas in ("1", "8")
    ]
    assert faults[0] < faults[1] / 10


@given(batch_size=st.integers(1, 5_000), bytes_each=st.integers(1, 10**8))
def test_a_batch_is_cut_into_the_fewest_even_parts(batch_size: int, bytes_each: int) -> None:
    device = torch.device("cpu")
    size = hardware.micro_batch(batch_size, bytes_each, device)
    fits = hardware.pass_size(bytes_each, device)
    assert 1 <= size <= min(batch_size, fits)
    parts = -(-batch_size // size)
    assert parts == -(-batch_size // fits)
    assert size == 1 or fits * (parts - 1) < batch_size


def test_a_gpu_that_is_not_asked_for_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--gpus-per-trial 0` on a machine that has one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert hardware.set_up(1, gpu=False) == torch.device("cpu")
