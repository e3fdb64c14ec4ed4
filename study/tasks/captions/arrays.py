"""Arrays that are computed once a machine, kept in the cache and memory-mapped."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from study.errors import RequestError
from study.tasks.sources.cached import cached

_FILE = "array.raw"  # without a header: the folder's name stands for shape and type, too


def kept(
    folder: Path,
    shape: tuple[int, ...],
    dtype: type,
    make_parts: Callable[[], Iterable[np.ndarray]],
) -> np.ndarray:
    """The array in `folder`; if it is missing or damaged, made and kept there.

    If several processes of a machine ask at once, one makes it and the others wait. It is never
    in memory as a whole: it is written part by part, and memory-mapped, so that the processes
    share its pages. It cannot be written to: of a map that can be, Linux sets memory aside, and
    refuses if the file is larger than that.

    Args:
        folder: its name stands for the content.
        shape: of the array.
        dtype: of the array.
        make_parts: gives the array's parts along the first axis, in order.

    Raises:
        RequestError: it cannot be written, as when the disk is full; or from `make_parts`.
    """

    def make(partial: Path) -> None:
        _write(partial / _FILE, dtype, make_parts())

    def load(folder: Path) -> np.ndarray:
        array = opened(folder, shape, dtype)
        if array is None:
            raise RequestError(f"{folder} is damaged. Delete it.")
        return array

    return cached(folder, make, load)


def opened(folder: Path, shape: tuple[int, ...], dtype: type) -> np.ndarray | None:
    """The array in `folder`; None if it is missing or damaged."""
    with contextlib.suppress(OSError):
        if (folder / _FILE).stat().st_size == _size(shape, dtype):
            # As a plain array: a np.memmap would pass its type on to every result.
            return np.asarray(np.memmap(folder / _FILE, dtype, "r", shape=shape))
    return None


def _size(shape: tuple[int, ...], dtype: type) -> int:
    """Of an array, in bytes."""
    return math.prod(shape) * np.dtype(dtype).itemsize


def _write(path: Path, dtype: type, parts: Iterable[np.ndarray]) -> None:
    """Writes without a memory map: a full disk is an error here, and kills the process there."""
    with open(path, "wb") as file:
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype).data)
