"""Checks the arguments of the theory; a wrong one raises a `ValueError` of one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from study.limits import available_bytes

Floats = NDArray[np.float64]

COLUMN_TOLERANCE = 1e-5
"""How far a column of attention may be from 1: a softmax in float32 over a thousand tokens."""


def finite(name: str, values: ArrayLike, axes: str, **lengths: int) -> Floats:
    """The values in float64; those that `require_finite` does not pass raise its `ValueError`."""
    array = np.asarray(values)
    require_finite(name, array, axes, **lengths)
    return array.astype(np.float64, copy=False)


def require_finite(name: str, array: NDArray[Any], axes: Sequence[str], **lengths: int) -> None:
    """Passes if an array is finite and of these axes, none of them empty.

    Args:
        name: of the array, for the message.
        array: integers or floats.
        axes: a letter or name for each; axes of one name are of one length.
        lengths: name -> the length that its axes must have.

    Raises:
        ValueError: it is not.
    """
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be real numbers, got {array.dtype}.")
    expected = dict(zip(axes, array.shape, strict=False)) | lengths
    if array.shape != tuple(expected.get(axis) for axis in axes) or not array.size:
        shape = ", ".join(str(lengths.get(axis, axis)) for axis in axes)
        raise ValueError(
            f"{name} must have the axes ({', '.join(axes)}) and the shape ({shape}), none empty, "
            f"got {array.shape}."
        )
    wrong = ~np.isfinite(array)
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0].tolist())
        raise ValueError(
            f"{name} must be finite, got {array[where]} at index {where} of the axes "
            f"({', '.join(axes)}); entries that are not: {wrong.sum()}."
        )


def attention(layers: Sequence[ArrayLike], samples: int, tokens: int) -> list[Floats]:
    """One (H_l, P, T, T) a layer, non-negative; every column [:, t] sums to 1.

    Raises:
        ValueError: it is not; the message names layer, head, sample and column.
    """
    if not len(layers):
        raise ValueError("attention must be a list of layers, at least one.")
    checked = []
    for depth, layer in enumerate(layers, start=1):
        array = finite(f"attention of layer {depth}", layer, "HPTT", P=samples, T=tokens)
        sums = array.sum(axis=2)
        wrong = (np.abs(sums - 1) > COLUMN_TOLERANCE) | (array.min(axis=2) < 0)
        if wrong.any():
            head, sample, column = np.argwhere(wrong)[0].tolist()
            raise ValueError(
                f"every column of attention must be >= 0 and sum to 1 (to {COLUMN_TOLERANCE:g}), "
                f"but layer {depth}, head {head}, sample {sample}, column {column} (counted from "
                f"0) sums to {sums[head, sample, column]:g}, or has a negative entry. Axes are "
                "[head, sample, s, t], with the softmax over s; in half precision, divide by the "
                "sums."
            )
        checked.append(array)
    return checked


def positive(name: str, value: float, infinite: bool = False) -> float:
    """A number > 0, which only may be infinite where it says so.

    Raises:
        ValueError: it is not.
    """
    number = float(value)
    if not number > 0 or (math.isinf(number) and not infinite):
        raise ValueError(f"{name} must be {'' if infinite else 'finite and '}> 0, got {value}.")
    return number


def layered(name: str, value: float | Sequence[float], layers: int) -> tuple[float, ...]:
    """A number for every hidden layer and the readout: (layer 1, ..., layer L, readout).

    Raises:
        ValueError: there are not so many.
    """
    numbers = np.asarray(value, np.float64)
    if numbers.shape not in ((), (layers + 1,)):
        raise ValueError(
            f"{name} must be one number, or {layers + 1} for {layers} layers and the readout, "
            f"got {value}."
        )
    return tuple(np.broadcast_to(numbers, layers + 1).tolist())


def fits(needed: int, what: str) -> None:
    """Passes if memory holds so many bytes.

    Raises:
        MemoryError: it does not.
    """
    available = available_bytes()
    if needed > available:
        raise MemoryError(
            f"{what} needs {needed:,} bytes of memory, and {available:,} are available. "
            "Take fewer samples, or paths."
        )
