"""Statistics over seeds: pure functions of arrays, on NumPy and SciPy.

One rule everywhere: NaN means "not known". A NaN among the values makes the result NaN, and an
interval from fewer than two values is NaN: nothing is silently left out of a count.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, betaincinv, expit, logit, ndtr, stdtrit

CONFIDENCE = 0.95
"""Confidence of the intervals that decide a claim of the paper and are drawn beside it."""

LEVEL = round(1 - CONFIDENCE, 12)
"""Of the tests."""

MIN_SEEDS = 6
"""Fewer common seeds than this decide nothing: with five, even a sign test of differences that
all agree has p = 2 / 2^5 = .0625."""

ROUNDING = 1e-9
"""Tolerance of shares: a value this close to a threshold has reached it."""

_COUNTED_SIGNS = 30
"""Of more differences, the sum under random signs is taken as normal."""


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
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence!r}")
    array = _one_axis(values, "values")
    if array.size == 0:
        return math.nan, math.nan, math.nan
    mean = float(array.mean())
    if array.size < 2:
        return mean, math.nan, math.nan
    standard_error = float(array.std(ddof=1)) / math.sqrt(array.size)
    half = float(stdtrit(array.size - 1, (1 + confidence) / 2)) * standard_error
    return mean, mean - half, mean + half


def on_logit_scale(share: float, low: float, high: float) -> tuple[float, float]:
    """The interval of a share with the same standard error and critical value, on the logit scale.

    The delta method: half of its width there is that of the given one over share (1 - share). It
    stays within 0 and 1, and covers means near them where a symmetric interval is too short.

    Args:
        share: in (0, 1); without an interval else.
        low: end of a symmetric interval about it, which may lie below 0.
        high: the other end.
    """
    if not 0 < share < 1:
        return math.nan, math.nan
    half = (high - low) / 2 / (share * (1 - share))
    return float(expit(logit(share) - half)), float(expit(logit(share) + half))


def clopper_pearson(count: int, n: int) -> tuple[float, float]:
    """Exact 95 % interval of a probability by `count` of n; one-sided where `count` is 0 or n.

    So 0 of 12 leave up to 22 %, which is 1 - .05^(1/12) (the rule of three).
    """
    tail = (1 - CONFIDENCE) / (1 if count in (0, n) else 2)
    low = float(betaincinv(count, n - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, n - count, 1 - tail)) if count < n else 1.0
    return low, high


def mcnemar(first_only: int, second_only: int) -> float:
    """Exact two-sided p value of pairs of which only the first, or only the second, is so.

    Source: McNemar, Psychometrika 12 (1947); Conover, Practical Nonparametric Statistics (1999).
    """
    return sign_test(max(first_only, second_only), first_only + second_only)


def sign_test(alike: int, n: int) -> float:
    """Two-sided p value of n seeds of which at most `alike` >= n / 2 lie on one side.

    Source: Conover, Practical Nonparametric Statistics (1999), section 3.4.
    """
    return min(1.0, 2 * float(bdtr(n - alike, n, 0.5)))


def sign_flip(differences: ArrayLike) -> float:
    """Exact two-sided p value of paired differences, were the sign of each a coin's.

    It is the share of all 2^n choices of signs whose mean is as far from 0, and holds whatever the
    law of a run is, where those of both sides are equal. Its least value is 2 / 2^n.

    Args:
        differences: (n,) one a pair. Without any, or with a NaN, the result is NaN.

    Source: Fisher, The Design of Experiments (1935), section 21. The sums of halves are sorted, so
    that 2^(n/2) of them are enough; of more than 30 differences it is normal.
    """
    values = _one_axis(differences, "differences")
    total, scale = abs(values.sum()), np.abs(values).sum()
    if not len(values) or np.isnan(scale):
        return math.nan
    if scale == 0:
        return 1.0
    if len(values) > _COUNTED_SIGNS:
        return 2 * float(ndtr(-total / math.sqrt((values**2).sum())))
    halves = np.split(values, [len(values) // 2])
    left, right = (_signed_sums(half) for half in halves)
    far = np.searchsorted(np.sort(right), total - ROUNDING * scale - left)
    return min(1.0, 2 * float((len(right) - far).sum()) / 2 ** len(values))


def _signed_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(2^n,) the sums of n values under every choice of their signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def named_interval(name: str, values: ArrayLike, confidence: float = 0.95) -> dict[str, float]:
    """`t_interval` as columns of a table: `name`, `<name>_low` and `<name>_high`."""
    return dict(zip(interval_columns(name), t_interval(values, confidence), strict=True))


def interval_columns(*names: str) -> list[str]:
    """The columns of `named_interval` for each of some names."""
    return [f"{name}{end}" for name in names for end in ("", "_low", "_high")]


def holm(p_values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Holm's step-down adjustment: the i-th smallest of k p values is multiplied by k - i + 1.

    An adjusted value is never below that of a smaller p value, and never above 1. Testing all
    adjusted values at one level bounds the chance of any false rejection by that level, however
    the tests depend on each other.

    Args:
        p_values: (k,) in [0, 1].

    Returns:
        (k,) the adjusted p values, and (k,) the multiplier of each, in 1..k: a test is held to
        its level divided by the multiplier. Equal p values have the same multiplier (the larger).

    Raises:
        ValueError: `p_values` is not one-dimensional or has values outside [0, 1], or NaN.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist.
    6 (1979).
    """
    p = _one_axis(p_values, "p_values")
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p_values must be in [0, 1], got {p.min()!r} to {p.max()!r}")
    ascending = np.argsort(p, kind="stable")
    multiplier = len(p) - np.searchsorted(p, p, sorter=ascending)
    adjusted = np.empty_like(p)
    adjusted[ascending] = np.maximum.accumulate(np.minimum(p * multiplier, 1.0)[ascending])
    return adjusted, multiplier


def _one_axis(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one axis, got shape {array.shape}")
    return array


def quantiles(nodes: int = 400) -> NDArray[np.float64]:
    """(nodes,) the middles of as many equal parts of (0, 1), which stand for a distribution."""
    return (np.arange(nodes) + 0.5) / nodes
