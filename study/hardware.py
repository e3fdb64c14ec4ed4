"""How a cell is run, as opposed to what it is: device, threads, size of the passes.

None of it is part of a cell's id; it is recorded beside the cell. Results differ by rounding where
threads, device or the size of the passes differ; hard-sampled, which draws its samples pass by
pass, then draws others.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform

import torch

PASS_BYTES = {"cpu": 12 * 2**20, "cuda": 2**28}
"""Pixels of one pass through the networks, as float32, by device: on a CPU more is hardly faster
(docs/performance.md) and takes more memory; on a GPU most batches pass at once."""

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of glibc's malloc.h


def set_up(threads: int, gpu: bool = True) -> torch.device:
    """The device of this process, made ready: its CPU threads and, on a GPU, what CUDA may do.

    Without `gpu`, one that is there is not used.

    float32 means float32: TensorFloat-32, which has the range of float32 and 10 bits of mantissa,
    stays off.
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
    """Lets the C library keep what tensors free, for the tensors of the next step.

    By default glibc returns large blocks to the system at once, and every step pays for mapping
    and zeroing them again: half of its time with the CIFAR networks (docs/performance.md).

    It holds for glibc's first arena, so for the main thread, and for the others in a process that
    began with MALLOC_ARENA_MAX=1 in its environment, as `study.launch.tune` has it.

    Returns:
        Whether it could be told so: only glibc can.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    # Take no block from mmap, and give nothing back below 2 GiB at the end of the heap.
    return bool(libc.mallopt(_M_MMAP_MAX, 0) and libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))


def give_back_memory() -> None:
    """Returns to the system what is kept for further steps, for a process that takes none."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def device_name(device: torch.device) -> str:
    """For people and records: the GPU's name, or the CPU's architecture."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu {os.uname().machine}"


def pass_size(bytes_each: int, device: torch.device) -> int:
    """How many items of that many bytes go through the networks at a time, at least 1."""
    return max(1, PASS_BYTES[device.type] // bytes_each)


def micro_batch(batch_size: int, bytes_each: int, device: torch.device) -> int:
    """Inputs a forward and backward pass: a batch cut into the fewest parts that fit, evenly."""
    parts = math.ceil(batch_size / pass_size(bytes_each, device))
    return math.ceil(batch_size / parts)


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device has bfloat16 instructions; without them bfloat16 is the slower one."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    known = torch.cpu.get_capabilities()
    return any(known.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))
