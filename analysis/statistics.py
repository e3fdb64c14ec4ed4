"""Intervals over seeds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit


def t_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
    """Mean and two-sided Student t interval: mean +- t_{n-1} s / sqrt(n).

    Args:
        values: (n,) one number a seed, any unit. A NaN makes the mean and the bounds NaN: a
            value that is not known is not left out of the count in silence.
        confidence: in (0, 1).

    Returns:
        mean, low, high in the unit of `values`; the bounds are NaN when n < 2, all when n = 0.
        The interval of a fraction is not cut off at 0 and 1.

    Raises:
        ValueError: `values` is not one-dimensional or `confidence` is out of range.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence!r}")
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"values must have one axis, got shape {array.shape}")
    if array.size == 0:
        return math.nan, math.nan, math.nan
    mean = float(array.mean())
    if array.size < 2:
        return mean, math.nan, math.nan
    standard_error = float(array.std(ddof=1)) / math.sqrt(array.size)
    half = float(stdtrit(array.size - 1, (1 + confidence) / 2)) * standard_error
    return mean, mean - half, mean + half
