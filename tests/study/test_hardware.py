"""Settings of a process: what they are set to, for how long, and for which device."""

from __future__ import annotations

import os

import pytest
import torch

from study import hardware
from study.errors import RequestError

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def tf32() -> list[bool]:
    return [torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32]


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
def test_tensorfloat_is_on_where_it_is_asked_for(precision: str) -> None:
    hardware.set_up(torch.get_num_threads(), gpu=False)
    assert tf32() == [False, False]
    with hardware.products("tf32", GPU), hardware.products(precision, GPU):
        assert tf32() == 2 * [precision == "tf32"]
    with pytest.raises(ZeroDivisionError), hardware.products("tf32", GPU):
        raise ZeroDivisionError
    assert tf32() == [False, False]


def test_tensorfloat_on_a_cpu_is_refused() -> None:
    why = r"only a GPU does.*Take float32 or bfloat16"
    with pytest.raises(RequestError, match=why), hardware.products("tf32", CPU):
        pass


@pytest.mark.parametrize(("share", "limit"), [(1.0, 1.0), (0.25, 0.25), (2.0, 1.0)])
def test_a_pack_is_timed_in_the_memory_that_a_trial_has(
    monkeypatch: pytest.MonkeyPatch, share: float, limit: float
) -> None:
    limits: list[float] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", limits.append)
    with hardware.memory_limit(CPU, share):
        assert limits == []
    with hardware.memory_limit(GPU, share):
        assert limits == [hardware.USED_GPU_MEMORY * limit]
    assert limits[1:] == [1.0]


@pytest.mark.parametrize(("of_user", "expected"), [(None, "32"), ("4", "4")])
def test_the_queues_of_a_gpu_are_set_before_cuda_starts(
    monkeypatch: pytest.MonkeyPatch, of_user: str | None, expected: str
) -> None:
    name, seen = "CUDA_DEVICE_MAX_CONNECTIONS", []
    monkeypatch.setenv(name, of_user or "")
    if of_user is None:
        monkeypatch.delenv(name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: seen.append(os.environ[name]))
    hardware.set_up(torch.get_num_threads())
    assert seen == [expected]
