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


def require_finite(
    name: str, array: NDArray[Any], axes: Sequence[str], **lengths: int
) -> dict[str, int]:
    """Passes if an array is finite and of these axes, none of them empty.

    Args:
        name: of the array, for the message.
        array: bool, integers or floats.
        axes: a letter or name for each; axes of one name are of one length.
        lengths: name -> the length that its axes must have.

    Returns:
        The lengths, with those of this array.

    Raises:
        ValueError: it is not.
    """
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be real numbers, got {array.dtype}.")
    known = dict(zip(axes, array.shape, strict=False)) | lengths
    if array.shape != tuple(map(known.get, axes)) or not array.size:
        shape = ", ".join(str(lengths.get(axis, axis)) for axis in axes)
        raise ValueError(
            f"{name} must have the axes ({', '.join(axes)}) and the shape ({shape}), none empty, "
            f"got {array.shape}."
        )
    wrong = ~np.isfinite(array)
    if wrong.any():
        where = _first(wrong)
        raise ValueError(
            f"{name} must be finite, got {array[where]} at index {where} of the axes "
            f"({', '.join(axes)}); entries that are not: {wrong.sum()}."
        )
    return known


def attention(layers: Sequence[ArrayLike], samples: int, tokens: int) -> list[Floats]:
    """One (H_l, P, T, T) a layer, [s, t], non-negative; every column [:, t] sums to 1.

    Raises:
        ValueError: it is not; the message names layer, head, sample and column.
    """
    if not len(layers):
        raise ValueError("attention must be a list of layers, at least one.")
    checked = []
    for depth, layer in enumerate(layers, start=1):
        name = f"attention of layer {depth}"
        array = finite(name, layer, "HPTT", P=samples, T=tokens)
        require_shares(name, array, 2, "head, sample, column", COLUMN_TOLERANCE)
        checked.append(array)
    return checked


def require_shares(
    name: str, maps: NDArray[Any], over: int, others: str, tolerance: float
) -> Floats:
    """Passes if maps are >= 0 and sum to 1 over one of their last two axes; gives the sums.

    Args:
        name: of the maps, for the message.
        maps: finite, of four axes.
        over: the axis, 2 or 3.
        others: names of the axes that are left, for the message.
        tolerance: how far a sum may be from 1.

    Raises:
        ValueError: they do not.
    """
    sums, least = maps.sum(axis=over, dtype=np.float64), maps.min(axis=over)
    wrong = (np.abs(sums - 1) > tolerance) | (least < 0)
    if wrong.any():
        where = _first(wrong)
        advice = "Take what the softmax gives, before dropout; divide half precision by the sums."
        if np.allclose(maps.sum(axis=5 - over), 1, atol=tolerance):
            advice = "The other axis sums to 1: transpose the last two axes."
        raise ValueError(
            f"{name} must be >= 0 and sum to 1 over axis {over} (to {tolerance:g}), got the sum "
            f"{sums[where]:.6g} and the least entry {least[where]:.3g} at {where} of the axes "
            f"({others}), counted from 0. {advice}"
        )
    return sums


def _first(wrong: NDArray[np.bool_]) -> tuple[int, ...]:
    """Where the first wrong entry is."""
    return tuple(np.argwhere(wrong)[0].tolist())


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
