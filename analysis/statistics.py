"""Statistics over seeds: pure functions of arrays, on NumPy and SciPy.

One rule everywhere: NaN means "not known". A NaN among the values makes the result NaN, and an
interval from fewer than two values is NaN: nothing is silently left out of a count.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

CONFIDENCE = 0.95
"""Confidence of the intervals that decide a claim of the paper and are drawn beside it."""

MIN_SEEDS = 6
"""Fewer common seeds than this decide nothing: with five, even a sign test of differences that
all agree has p = 2 / 2^5 = .0625."""

ROUNDING = 1e-9
"""Tolerance of shares: a value this close to a threshold has reached it."""


def t_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
    """Mean and two-sided Student t interval: mean +- t_{n-1} s / sqrt(n).

    Args:
        values: (n,) one number a seed, any unit. A NaN makes the mean and the bounds NaN: an
            unknown value is not silently left out of the count.
        confidence: in (0, 1).

    Returns:
        mean, low, high in the unit of `values`; the bounds are NaN when n < 2, all three when n =
        0. The interval of a fraction is not cut off at 0 and 1.

    Raises:
        ValueError: `values` is not one-dimensional or `confidence` is out of range.
    """
    _check_fraction(confidence, "confidence")
    array = _one_axis(values, "values")
    if array.size == 0:
        return math.nan, math.nan, math.nan
    mean = float(array.mean())
    if array.size < 2:
        return mean, math.nan, math.nan
    standard_error = float(array.std(ddof=1)) / math.sqrt(array.size)
    half = float(stdtrit(array.size - 1, (1 + confidence) / 2)) * standard_error
    return mean, mean - half, mean + half


def named_interval(name: str, values: ArrayLike, confidence: float = 0.95) -> dict[str, float]:
    """`t_interval` as columns of a table: `name`, `<name>_low` and `<name>_high`."""
    return dict(zip(interval_columns(name), t_interval(values, confidence), strict=True))


def interval_columns(*names: str) -> list[str]:
    """The columns of `named_interval` for each of some names."""
    return [f"{name}{end}" for name in names for end in ("", "_low", "_high")]


def holm(p_values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Holm's step-down adjustment: the i-th smallest of k p values is multiplied by k - i + 1.

    An adjusted value is never below that of a smaller p value, and never above 1. Testing all
    adjusted values at one level bounds the chance of any false rejection by that level, however
    the tests depend on each other.

    Args:
        p_values: (k,) in [0, 1]. A NaN is not a test: it stays NaN and does not count in k.

    Returns:
        (k,) the adjusted p values, and (k,) the multiplier of each, in 1..k: a test is held to
        its level divided by the multiplier. Equal p values have the same multiplier (the larger).

    Raises:
        ValueError: `p_values` is not one-dimensional or has values outside [0, 1].

    Source: S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist.
    6 (1979).
    """
    p = _one_axis(p_values, "p_values")
    tests = p[~np.isnan(p)]
    if ((tests < 0) | (tests > 1)).any():
        raise ValueError(f"p_values must be in [0, 1], got {tests.min()!r} to {tests.max()!r}")
    multiplier = np.full(p.shape, np.nan)
    adjusted = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    ascending = known[np.argsort(tests, kind="stable")]
    multiplier[known] = len(tests) - np.searchsorted(np.sort(tests), tests)
    steps = np.minimum(p[ascending] * multiplier[ascending], 1.0)
    adjusted[ascending] = np.maximum.accumulate(steps)
    return adjusted, multiplier


def _one_axis(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one axis, got shape {array.shape}")
    return array


def _check_fraction(value: float, name: str) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must be in (0, 1), got {value!r}")


def quantiles(nodes: int = 400) -> NDArray[np.float64]:
    """(nodes,) the middles of as many equal parts of (0, 1), which stand for a distribution."""
    return (np.arange(nodes) + 0.5) / nodes
