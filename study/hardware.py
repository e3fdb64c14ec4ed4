"""The hardware that runs a cell: device, threads, memory and size of the passes.

None of it is part of a cell's id; it is recorded beside the cell. With other threads, device or
size of the passes, results differ by rounding; hard-sampled draws its samples pass by pass, so
other ones.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform

import torch

PASS_BYTES = {"cpu": 12 * 2**20, "cuda": 2**28}
"""Bytes of pixels, as float32, in one pass through the networks, by device. On a CPU more is
hardly faster (docs/performance.md) and takes more memory; on a GPU most batches pass at once."""

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of glibc's malloc.h


def set_up(threads: int, gpu: bool = True) -> torch.device:
    """Sets up this process's CPU threads and device, and returns the device.

    TensorFloat-32, which has the range of float32 but 10 bits of mantissa, stays off.

    Args:
        threads: CPU threads.
        gpu: whether to use a GPU if there is one.
    """
    torch.set_num_threads(threads)
    keep_freed_memory()
    if not (gpu and torch.cuda.is_available()):
        return torch.device("cpu")
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    return torch.device("cuda")


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
