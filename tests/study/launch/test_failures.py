"""Why a trial failed."""

from __future__ import annotations

import pytest
import torch

from study.errors import RequestError
from study.launch.failures import Failure, failure_of

KINDS = {
    "CUDA error: out of memory\nCUDA kernel errors might be reported later": "out of memory",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`": "out of memory",
    "cuDNN error: CUDNN_STATUS_ALLOC_FAILED": "out of memory",
    "GET was unable to find an engine to execute this computation": "out of memory",
    "CUDA error: uncorrectable ECC error encountered": "worker lost",
    "CUDA error: an illegal memory access was encountered": "worker lost",
    "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`": "worker lost",
    "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED": "worker lost",
    "CUDA driver error: unspecified launch failure": "worker lost",
    "shape mismatch": "bug",
}
"""What PyTorch says -> what has happened."""


@pytest.mark.parametrize("text", KINDS)
def test_what_pytorch_says_is_told_apart(text):
    assert failure_of(RuntimeError(text)).kind == KINDS[text]
    if "CU" in text:
        assert failure_of(torch.AcceleratorError(text)).kind == KINDS[text]


def test_exceptions_are_told_apart():
    with pytest.raises(RuntimeError) as too_large:
        torch.empty(2**55)
    recording = torch.AcceleratorError(
        "CUDA error: operation failed due to a previous error during capture"
    )
    assert failure_of(recording).kind == "bug"
    assert failure_of(recording).ends_process
    recording.__context__ = torch.OutOfMemoryError("CUDA out of memory")
    for error in (MemoryError(), too_large.value, recording.__context__, recording):
        assert failure_of(error).kind == "out of memory"
    assert failure_of(RequestError("the disk is full")).kind == "request"
    with pytest.raises(KeyError) as raised:
        raise KeyError("x")
    failure = failure_of(raised.value)
    assert "Traceback" in failure.text
    assert (failure.reason, failure.ends_process) == ("KeyError: 'x'", False)
    several_lines = torch.AcceleratorError("CUDA error: illegal access\nSearch for it.\n\nCompile")
    assert failure_of(several_lines).reason == "torch.AcceleratorError: CUDA error: illegal access"
    assert Failure("worker lost", "its process died").reason == "its process died"
    assert Failure("worker lost", "").reason == "worker lost"
