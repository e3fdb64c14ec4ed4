"""The hardware that runs a cell: device, threads, memory and size of the passes.

None of it is part of a cell's id; it is recorded beside the cell. With other threads, device or
size of the passes, results differ by rounding; what is drawn, by paradigms that sample and by
dropout, is drawn pass by pass, so it is other.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import platform
from collections.abc import Iterator
from typing import Any

import torch

from study.errors import RequestError

PASS_BYTES = {"cpu": 12 * 2**20, "cuda": 2**28}
"""Bytes of pixels, as float32, in one pass through the networks, by device. On a CPU more is
hardly faster (docs/performance.md) and takes more memory; on a GPU most batches pass at once."""

USED_GPU_MEMORY = 0.8
"""The share of a GPU's memory in which steps have to fit; evaluations and CUDA come on top."""

TF32_NEEDS_GPU = (
    "precision=tf32 multiplies in TensorFloat-32, which only a GPU does, and none is used here. "
    "Take float32 or bfloat16."
)

_TF32_BACKENDS: tuple[Any, ...] = (torch.backends.cudnn, torch.backends.cuda.matmul)
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of glibc's malloc.h


def set_up(threads: int, gpu: bool = True) -> torch.device:
    """Sets up this process's CPU threads and device, and returns the device.

    TensorFloat-32 is off outside of `products`.

    Args:
        threads: CPU threads.
        gpu: whether to use a GPU if there is one.
    """
    torch.set_num_threads(threads)
    keep_freed_memory()
    for backend in _TF32_BACKENDS:
        backend.allow_tf32 = False
    return torch.device("cuda" if gpu and has_gpu() else "cpu")


def has_gpu() -> bool:
    """Whether there is a GPU for this process."""
    # CUDA reads it when it starts: queues into a GPU, 8 by default, for the members of a pack.
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    return torch.cuda.is_available()


def gpu_count() -> int:
    """The GPUs that trials of this machine can have, one each.

    CUDA shows a process no more than one instance of a divided GPU (MIG). But each is a device of
    its own for trials, whose CUDA_VISIBLE_DEVICES Ray sets to one of those that this process has.
    """
    seen = torch.cuda.device_count()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    return max(seen, sum(each.strip().startswith("MIG") for each in visible)) if seen else 0


@contextlib.contextmanager
def products(precision: str, device: torch.device) -> Iterator[None]:
    """A context in which this process multiplies float32 matrices in a precision.

    With tf32 a GPU rounds the factors of convolutions and linear layers to the 10 bits of mantissa
    of TensorFloat-32, which has the range of float32. (For bfloat16 see `in_precision`.)

    Args:
        precision: one of `study.cell.PRECISIONS`.
        device: that multiplies.

    Raises:
        RequestError: tf32 on a CPU.
    """
    if precision == "tf32" and device.type == "cpu":
        raise RequestError(TF32_NEEDS_GPU)
    before = [backend.allow_tf32 for backend in _TF32_BACKENDS]
    try:
        for backend in _TF32_BACKENDS:
            backend.allow_tf32 = precision == "tf32"
        yield
    finally:
        for backend, allowed in zip(_TF32_BACKENDS, before, strict=True):
            backend.allow_tf32 = allowed


def in_precision(
    precision: str, device: torch.device
) -> contextlib.AbstractContextManager[object]:
    """A context in which networks multiply in bfloat16, if that is the precision."""
    if precision != "bfloat16":
        return contextlib.nullcontext()
    # A cast that is kept has its gradients summed in bfloat16: in captions, where a recurrent
    # weight is used once a word, over all words. Of images each weight is used once a pass.
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


@contextlib.contextmanager
def autotuned() -> Iterator[None]:
    """A context in which cuDNN tries its kernels on every new shape, and takes the fastest.

    A trial takes tens of milliseconds a shape. So it is for training steps, which are all alike;
    the passes of an evaluation differ in size from cell to cell.
    """
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


@contextlib.contextmanager
def memory_limit(device: torch.device, share: float) -> Iterator[None]:
    """A context in which this process takes at most a share of its GPU's memory.

    On a CPU it does nothing.

    Args:
        device: a GPU or a CPU.
        share: of the GPU, as trials ask for it: in (0, 1].

    Raises:
        torch.OutOfMemoryError: more is needed.
    """
    if device.type != "cuda":
        yield
        return
    torch.cuda.set_per_process_memory_fraction(USED_GPU_MEMORY * share)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def keep_freed_memory() -> bool:
    """Lets the C library keep freed memory for the tensors of the next step.

    By default glibc returns large blocks to the system at once, and every step maps and zeroes
    them again: half of its time with the CIFAR networks (docs/performance.md).

    It holds for glibc's first arena, so for the main thread; for other threads only if the process
    began with MALLOC_ARENA_MAX=1 in its environment, as workers do (`study.launch.cluster`).

    Returns:
        Whether the C library is glibc and complied.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    # No block comes from mmap, and less than 2 GiB free at the heap's end is kept.
    return bool(libc.mallopt(_M_MMAP_MAX, 0) and libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))


def give_back_memory() -> None:
    """Returns memory that is kept for further steps to the system; for a process without any."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def device_name(device: torch.device) -> str:
    """The GPU's name, or the CPU's architecture, for people and records."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu {os.uname().machine}"


def pass_size(bytes_each: int, device: torch.device) -> int:
    """How many items of so many bytes go through the networks at a time, at least 1."""
    return max(1, PASS_BYTES[device.type] // bytes_each)


def micro_batch(batch_size: int, bytes_each: int, device: torch.device) -> int:
    """Inputs a forward and backward pass: a batch in the fewest equal parts that fit."""
    parts = math.ceil(batch_size / pass_size(bytes_each, device))
    return math.ceil(batch_size / parts)


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device has bfloat16 instructions; without them float32 is faster."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    known = torch.cpu.get_capabilities()
    return any(known.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))
