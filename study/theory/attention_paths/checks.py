"""Checks the arguments of the theory; a wrong one raises a `ValueError` of one line."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

COLUMN_TOLERANCE = 1e-5
"""How far a column of attention may be from 1: a softmax in float32 over a thousand tokens."""


def finite(name: str, values: ArrayLike, axes: str) -> Floats:
    """float64, finite, with one axis a letter of `axes`, none of them empty.

    Raises:
        ValueError: it is not.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be real numbers, got {array.dtype}.")
    shape = ", ".join(axes)
    if array.ndim != len(axes) or not array.size:
        raise ValueError(f"{name} must have the axes ({shape}), none empty, got {array.shape}.")
    wrong = ~np.isfinite(array)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"{name} must be finite, got {array[where]} at index {where} of the axes ({shape}); "
            f"entries that are not: {int(wrong.sum())}."
        )
    return array.astype(np.float64, copy=False)


def attention(layers: Sequence[ArrayLike], samples: int, tokens: int) -> list[Floats]:
    """One (H_l, P, T, T) a layer, non-negative; every column [:, t] sums to 1.

    Raises:
        ValueError: it is not; the message names layer, head, sample and column.
    """
    if not isinstance(layers, Sequence | np.ndarray) or not len(layers):
        raise ValueError("attention must be a list of layers, at least one.")
    checked = []
    for depth, layer in enumerate(layers, start=1):
        name = f"attention of layer {depth}"
        array = finite(name, layer, "HPTT")
        if array.shape[1:] != (samples, tokens, tokens):
            raise ValueError(
                f"{name} must have the shape (H, {samples}, {tokens}, {tokens}), as the inputs "
                f"have {samples} samples of {tokens} tokens, got {array.shape}."
            )
        if array.min() < 0:
            raise ValueError(f"{name} must be >= 0, got {array.min():g}.")
        sums = array.sum(axis=2)
        wrong = np.abs(sums - 1) > COLUMN_TOLERANCE
        if wrong.any():
            head, sample, column = (int(i) for i in np.argwhere(wrong)[0])
            raise ValueError(
                f"every column of attention must sum to 1 (to {COLUMN_TOLERANCE:g}), got "
                f"{sums[head, sample, column]:g} in layer {depth}, head {head}, sample {sample}, "
                f"column {column} (counted from 0). Axes are [head, sample, s, t], with the "
                "softmax over s; in half precision, divide by the sums."
            )
        checked.append(array)
    return checked


def labels(values: ArrayLike, samples: int) -> Floats:
    """(P,) float64.

    Raises:
        ValueError: they are not, or are not as many as the samples.
    """
    array = finite("labels", values, "P")
    if len(array) != samples:
        raise ValueError(f"features are of {samples} samples, but labels of {len(array)}.")
    return array


def positive(name: str, value: float) -> float:
    """A finite number > 0.

    Raises:
        ValueError: it is not.
    """
    found = number(name, value)
    if not (math.isfinite(found) and found > 0):
        raise ValueError(f"{name} must be finite and > 0, got {value}.")
    return found


def number(name: str, value: float) -> float:
    """A number.

    Raises:
        ValueError: it is not.
    """
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}.") from None


def heads(counts: Sequence[int], paths: int) -> tuple[int, ...]:
    """(H_1, ..., H_L), whose product is the number of paths.

    Raises:
        ValueError: it is not.
    """
    rule = "heads must be whole numbers >= 1, one a layer, as (2, 2)"
    try:
        found = tuple(int(count) for count in counts)
    except (TypeError, ValueError):
        raise ValueError(f"{rule}, got {counts!r}.") from None
    if not found or found != tuple(counts) or min(found) < 1:
        raise ValueError(f"{rule}, got {tuple(counts)}.")
    if math.prod(found) != paths:
        raise ValueError(
            f"heads {found} make {math.prod(found)} paths, but the features have {paths}. Give "
            "every path its feature (path_features does), and leave out a head that no path uses."
        )
    return found


def layered(name: str, value: float | Sequence[float], layers: int) -> tuple[float, ...]:
    """One number for every hidden layer and the readout, or (layer 1, ..., layer L, readout).

    Raises:
        ValueError: there are not so many.
    """
    if isinstance(value, int | float | np.number):
        return (float(value),) * (layers + 1)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"{name} must be a number, or one for each layer, got {value!r}.")
    found = tuple(number(name, each) for each in value)
    if len(found) != layers + 1:
        raise ValueError(
            f"{name} must be one number, or {layers + 1} for {layers} layers and the readout, "
            f"got {len(found)}."
        )
    return found


def widths(value: float | Sequence[float], layers: int) -> tuple[float, ...]:
    """(N_1, ..., N_L, N_a), each >= 1; infinity is the Gaussian-process limit.

    Raises:
        ValueError: they are not.
    """
    found = layered("width", value, layers)
    if not all(width >= 1 for width in found):  # NaN, too
        raise ValueError(f"width must be >= 1, or infinity for the limit, got {value}.")
    return found


def variances(value: float | Sequence[float], layers: int) -> tuple[float, ...]:
    """(sigma_1^2, ..., sigma_L^2, sigma_a^2).

    Raises:
        ValueError: one is not > 0.
    """
    found = layered("variance", value, layers)
    return tuple(positive("variance", each) for each in found)


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


def available_bytes() -> int:
    """Memory that new arrays can take, without swapping."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        values = dict(line.split(":") for line in lines)
        return 1024 * int(values["MemAvailable"].split()[0])
    except (OSError, KeyError):  # not Linux
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
