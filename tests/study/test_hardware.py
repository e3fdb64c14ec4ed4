"""Settings of a process, memory that it keeps, and how a batch is cut."""

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
from study.errors import RequestError
from tests.conftest import PROJECT

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def tf32() -> list[bool]:
    return [torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32]


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
def test_tensorfloat_is_on_where_it_is_asked_for(precision):
    hardware.set_up(torch.get_num_threads(), gpu=False)
    assert tf32() == [False, False]
    with hardware.products("tf32", GPU), hardware.products(precision, GPU):
        assert tf32() == 2 * [precision == "tf32"]
    with pytest.raises(ZeroDivisionError), hardware.products("tf32", GPU):
        raise ZeroDivisionError
    assert tf32() == [False, False]


def test_tensorfloat_on_a_cpu_is_refused():
    why = r"only a GPU does.*Take float32 or bfloat16"
    with pytest.raises(RequestError, match=why), hardware.products("tf32", CPU):
        pass


@pytest.mark.parametrize(
    ("seen", "visible", "count"),
    [(0, "MIG-1,MIG-2", 0), (1, "MIG-1, MIG-2,MIG-3", 3), (2, "0,1", 2), (4, None, 4)],
)
def test_each_instance_of_a_divided_gpu_is_one(seen, visible, count, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: seen)
    assert hardware.gpu_count() == count


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_a_pack_is_timed_in_the_memory_that_a_trial_has(monkeypatch, share):
    limits: list[float] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", limits.append)
    with hardware.memory_limit(CPU, share):
        assert limits == []
    with hardware.memory_limit(GPU, share):
        assert limits == [hardware.USED_GPU_MEMORY * share]
    assert limits[1:] == [1.0]


@pytest.mark.parametrize(("of_user", "expected"), [(None, "32"), ("4", "4")])
def test_the_queues_of_a_gpu_are_set_before_cuda_starts(monkeypatch, of_user, expected):
    name, seen = "CUDA_DEVICE_MAX_CONNECTIONS", []
    monkeypatch.setenv(name, of_user or "")
    if of_user is None:
        monkeypatch.delenv(name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: seen.append(os.environ[name]))
    hardware.set_up(torch.get_num_threads())
    assert seen == [expected]


COUNT_FAULTS = """
import resource, threading, torch
from study import hardware

def work():
    hardware.set_up(1)
    for _ in range(8):
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        for size in (20, 50, 100, 35):
            torch.ones(size * 2**18)  # MB
        faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
    print(faults)

thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
"""Page faults of the 8th round of large tensors, in a thread, as Tune runs its trials."""

NEEDS_GLIBC = "needs glibc, whose allocator is told to keep memory"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason=NEEDS_GLIBC)
def test_large_tensors_cost_page_faults_once_only():
    """With the setting that the workers of a study have; see tests/study/launch/test_launch.py."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COUNT_FAULTS],
            cwd=PROJECT,
            env={**os.environ, "MALLOC_ARENA_MAX": arenas},
            stdout=subprocess.PIPE,
            text=True,
        )
        for arenas in ("1", "8")
    ]
    faults = [int(process.communicate()[0]) for process in processes]
    assert faults[0] < faults[1] / 10


@given(batch_size=st.integers(1, 5_000), bytes_each=st.integers(1, 10**8))
def test_a_batch_is_cut_into_the_fewest_even_parts(batch_size, bytes_each):
    device = torch.device("cpu")
    size = hardware.micro_batch(batch_size, bytes_each, device)
    fits = hardware.pass_size(bytes_each, device)
    assert 1 <= size <= min(batch_size, fits)
    parts = -(-batch_size // size)
    assert parts == -(-batch_size // fits)
    assert size == 1 or fits * (parts - 1) < batch_size


def test_a_gpu_that_is_not_asked_for_is_not_used(monkeypatch):
    """`--gpus-per-trial 0` on a machine that has one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert hardware.set_up(1, gpu=False) == torch.device("cpu")
