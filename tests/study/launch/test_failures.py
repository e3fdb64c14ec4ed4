"""Why a trial failed."""

from __future__ import annotations

import pytest
import torch

from study.errors import RequestError
from study.launch.failures import Failure, failure_of


def test_exceptions_are_told_apart() -> None:
    def of(error: Exception) -> str:
        return failure_of(error).kind

    assert of(MemoryError()) == "out of memory"
    assert of(torch.OutOfMemoryError("CUDA out of memory")) == "out of memory"
    for text in (
        "CUDA error: out of memory\nCUDA kernel errors might be reported later",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
    ):
        assert of(torch.AcceleratorError(text)) == of(RuntimeError(text)) == "out of memory"
    for text in (
        "CUDA error: uncorrectable ECC error encountered",
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
        "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        "CUDA driver error: unspecified launch failure",
    ):
        assert of(torch.AcceleratorError(text)) == of(RuntimeError(text)) == "worker lost"
    assert of(RequestError("the disk is full")) == "request"
    assert of(RuntimeError("shape mismatch")) == "bug"
    assert of(RuntimeError("GET was unable to find an engine to execute this computation")) == (
        "out of memory"
    )
    with pytest.raises(RuntimeError) as error:
        torch.empty(2**55)
    assert of(error.value) == "out of memory"
    of_recording = torch.AcceleratorError(
        "CUDA error: operation failed due to a previous error during capture"
    )
    assert of(of_recording) == "bug"
    assert failure_of(of_recording).ends_process
    of_recording.__context__ = torch.OutOfMemoryError("CUDA out of memory")
    assert of(of_recording) == "out of memory"
    try:
        raise KeyError("x")
    except KeyError as raised:
        failure = failure_of(raised)
    assert "Traceback" in failure.text
    assert failure.reason == "KeyError: 'x'"
    assert not failure.ends_process
    try:
        raise torch.AcceleratorError("CUDA error: illegal access\nSearch for it.\n\nCompile with")
    except torch.AcceleratorError as raised:
        failure = failure_of(raised)
    assert failure.reason == "torch.AcceleratorError: CUDA error: illegal access"
    assert failure.ends_process
    assert Failure("worker lost", "its process died").reason == "its process died"
    assert Failure("worker lost", "").reason == "worker lost"
