"""Statistics over seeds: pure functions of arrays, on NumPy and SciPy.

One rule everywhere: NaN means "not known". A NaN among the values makes the result NaN, and an
interval from fewer than two values is NaN: nothing is silently left out of a count.

`counts` are the multiplicities of a resample with replacement: how often each value was drawn.
Functions that take them work on all resamples at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, nctdtr, stdtr, stdtrit

CONFIDENCE = 0.95
"""Confidence of the intervals that decide a claim of the paper and are drawn beside it."""

MAX_SEEDS = 100_000
"""Beyond this, `seeds_needed` says that no number of seeds decides."""

ROUNDING = 1e-9
"""Tolerance of shares: a value this close to a threshold has reached it."""

_LARGE_SHIFT = 1e4
_ROUNDING = 1e-12  # relative to 1: some thousand times the last bit


@dataclass(frozen=True)
class PairedT:
    """The result of a paired t test.

    Attributes:
        mean: mean difference, in the unit of the differences.
        low: lower bound of the mean; NaN when n < 2 or the differences do not vary.
        high: upper bound of the mean; NaN likewise.
        p: two-sided p value of the hypothesis that the mean is 0, in [0, 1]; NaN likewise.
        n: number of pairs.
        std: standard deviation of the differences (n - 1 in the denominator); NaN when n < 2, 0
            when they do not vary.
    """

    mean: float
    low: float
    high: float
    p: float
    n: int
    std: float


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


def paired_t(differences: ArrayLike, confidence: float = 0.95, resolution: float = 0.0) -> PairedT:
    """Paired t test and interval: the one-sample t test of the differences, t = d / (s / sqrt n).

    Equals `scipy.stats.ttest_rel`, which warns where the differences do not vary. Here they give
    neither an interval nor p: a spread of 0 in a few pairs does not estimate the spread of all,
    and t, which divides by it, would make any such difference certain, however small.

    Args:
        differences: (n,) one a pair, any unit.
        confidence: of the interval, in (0, 1).
        resolution: >= 0, in the unit of the differences. Differences no further apart than this
            do not vary, nor do those that only rounding tells apart.

    Raises:
        ValueError: `differences` is not one-dimensional or `confidence` is out of range.

    Source: Student, The probable error of a mean, Biometrika 6 (1908).
    """
    array = _one_axis(differences, "differences")
    mean, low, high = t_interval(array, confidence)
    n = array.size
    if n < 2 or math.isnan(mean):
        return PairedT(mean, low, high, math.nan, n, math.nan)
    if np.ptp(array) <= resolution + _ROUNDING * np.abs(array).max():
        return PairedT(mean, math.nan, math.nan, math.nan, n, 0.0)
    std = float(array.std(ddof=1))
    p = 2 * float(stdtr(n - 1, -abs(mean) * math.sqrt(n) / std))
    return PairedT(mean, low, high, p, n, std)


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


def bootstrap_counts(n: int, resamples: int, seed: int | np.random.Generator) -> NDArray[np.int64]:
    """Multiplicities of resamples with replacement: how often each of n values is drawn.

    Args:
        n: number of values, >= 0.
        resamples: number of resamples, >= 1.
        seed: seed of a new generator, or a generator, which is advanced.

    Returns:
        (resamples, n) integers >= 0; every row sums to n.

    Raises:
        ValueError: a number is too small.

    Source: B. Efron, Bootstrap methods: another look at the jackknife, Ann. Statist. 7 (1979).
    """
    if n < 0 or resamples < 1:
        raise ValueError(f"need n >= 0 and resamples >= 1, got {n} and {resamples}")
    generator = np.random.default_rng(seed)
    if n == 0:
        return np.zeros((resamples, 0), np.int64)
    return generator.multinomial(n, np.full(n, 1 / n), size=resamples)


def percentile_interval(samples: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval: the (1 -+ confidence) / 2 quantiles of the resamples.

    A resample whose statistic is NaN could have been anything: it counts as minus infinity for
    the lower bound and as plus infinity for the upper one. A few of them widen the interval; from
    a share of (1 - confidence) / 2 on, the interval is NaN.

    The resamples of one value do not vary: the caller must give no interval where the statistic
    rests on fewer than two values. Below ten or so, percentile intervals are too narrow.

    Args:
        samples: (resamples,) the statistic in each resample, any unit.
        confidence: in (0, 1).

    Returns:
        low, high in the unit of `samples`, interpolated linearly between order statistics; both
        NaN where either is unknown or there are fewer than two resamples.

    Raises:
        ValueError: `samples` is not one-dimensional or `confidence` is out of range.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    _check_fraction(confidence, "confidence")
    array = _one_axis(samples, "samples")
    if array.size < 2:
        return math.nan, math.nan
    unknown = np.isnan(array)
    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore"):  # between infinities, interpolation gives NaN
        low = float(np.quantile(np.where(unknown, -np.inf, array), tail))
        high = float(np.quantile(np.where(unknown, np.inf, array), 1 - tail))
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (math.nan, math.nan)


def counted_mean(values: ArrayLike, counts: ArrayLike | None = None) -> NDArray[np.float64]:
    """Mean of values weighted by how often each was drawn.

    Args:
        values: (..., n) any unit.
        counts: multiplicities >= 0 that broadcast with `values`, by default all 1. Values with a
            count of 0 are not there, NaN or not.

    Returns:
        (...) in the unit of `values`: NaN where a value that counts is NaN or none counts.
    """
    array, weight, unknown = _weighted(values, counts)
    return _ratio((weight * array).sum(axis=-1), weight.sum(axis=-1), unknown)


def iqm(values: ArrayLike, counts: ArrayLike | None = None) -> NDArray[np.float64]:
    """Interquartile mean: the mean of the middle half of the values.

    Exactly a quarter of the weight is cut off at either end; a value on the border counts with
    the part of its weight that lies inside. `scipy.stats.trim_mean(values, .25)`, which rliable
    uses, cuts off whole values, floor(n / 4) at either end: the same where 4 divides n, but of 6
    values it keeps 4 (two thirds) and of 3 all. With exact weights, the IQM means the same for 6
    seeds as for 600, and repeating every value does not change it, which a bootstrap relies on.

    Args:
        values: (..., n) any unit.
        counts: multiplicities >= 0 that broadcast with `values`, by default all 1. Values with a
            count of 0 are not there, NaN or not.

    Returns:
        (...) in the unit of `values`: NaN where a value that counts is NaN or none counts. Of one
        value, that value; of two, their mean.

    Source: Agarwal et al., Deep reinforcement learning at the edge of the statistical precipice,
    NeurIPS 2021, section 4.3; fractional weights: the usual definition of the interquartile mean.
    """
    array, weight, unknown = _weighted(values, counts)
    order = np.argsort(array, axis=-1)
    array = np.take_along_axis(array, order, axis=-1)
    total = weight.sum(axis=-1, keepdims=True)
    below = np.cumsum(np.take_along_axis(weight, order, axis=-1), axis=-1)
    inside = np.diff(np.clip(below, total / 4, 3 * total / 4), axis=-1, prepend=total / 4)
    return _ratio((inside * array).sum(axis=-1), total[..., 0] / 2, unknown)


def probability_of_improvement(
    a: ArrayLike,
    b: ArrayLike,
    counts_a: ArrayLike | None = None,
    counts_b: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """P(a > b) over all pairs of a value of `a` and a value of `b`, a tie counting one half.

    It is Mann-Whitney's U of `a` divided by the number of pairs. Pairs are not matched by seed: it
    says how likely a new run of one beats a new run of the other.

    Args:
        a: (..., n) any unit.
        b: (..., k) in the same unit.
        counts_a: multiplicities >= 0 that broadcast with `a`, by default all 1.
        counts_b: multiplicities >= 0 that broadcast with `b`, by default all 1.

    Returns:
        (...) in [0, 1]: .5 where neither is better; NaN where a value that counts is NaN or there
        is no pair. Time grows with (n + k) log(n + k).

    Source: Mann and Whitney, Ann. Math. Statist. 18 (1947); Agarwal et al., see `iqm`.
    """
    a, weight_a, unknown_a = _weighted(a, counts_a)
    b, weight_b, unknown_b = _weighted(b, counts_b)
    lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    a, weight_a = (np.broadcast_to(x, lead + x.shape[-1:]) for x in (a, weight_a))
    b, weight_b = (np.broadcast_to(x, lead + x.shape[-1:]) for x in (b, weight_b))
    wins = _wins(a, weight_a, b, weight_b, ties=False)
    wins_and_ties = _wins(a, weight_a, b, weight_b, ties=True)
    pairs = weight_a.sum(axis=-1) * weight_b.sum(axis=-1)
    return _ratio((wins + wins_and_ties) / 2, pairs, unknown_a | unknown_b)


def seeds_needed(mean: float, std: float, level: float, power: float = 0.8) -> float:
    """Smallest number of pairs with which a two-sided paired t test finds an effect.

    With n pairs, t has the noncentral t distribution with n - 1 degrees of freedom and shift
    sqrt(n) mean / std; the power is its weight beyond the two critical values. That holds for
    normal differences with the given mean and spread. From an observed effect, the answer is a
    plan, not a promise.

    Args:
        mean: mean of the differences, any unit.
        std: their standard deviation (n - 1 in the denominator), in the same unit, >= 0.
        level: of the test, in (0, 1); divide by Holm's multiplier where there are several.
        power: desired chance to reject, in (0, 1).

    Returns:
        A whole number n >= 2; inf where the mean is 0 or `MAX_SEEDS` pairs are too few; NaN where
        mean or std is NaN, or std is 0, which says nothing about the spread of further pairs.

    Raises:
        ValueError: `std` < 0, or `level` or `power` is out of range.

    Source: J. Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), chapter 2.
    """
    _check_fraction(level, "level")
    _check_fraction(power, "power")
    if std < 0:
        raise ValueError(f"std must be >= 0, got {std!r}")
    if math.isnan(mean) or math.isnan(std):
        return math.nan
    if mean == 0:
        return math.inf
    if std == 0:
        return math.nan
    effect = abs(mean) / std
    # The power grows with n: double until it is enough, then halve the gap.
    low, high = 1, 2
    while _power(effect, high, level) < power:
        if high == MAX_SEEDS:
            return math.inf
        low, high = high, min(2 * high, MAX_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(effect, middle, level) >= power else (middle, high)
    return float(high)


def _power(effect: float, n: int, level: float) -> float:
    """Chance that the two-sided t test of n pairs rejects; `effect` > 0 is mean / std."""
    critical = float(stdtrit(n - 1, 1 - level / 2))
    shift = math.sqrt(n) * effect
    if shift > _LARGE_SHIFT:
        # nctdtr overflows. Such a shift dwarfs the noise of the mean: t is shift / s, where
        # (n - 1) s^2 has the chi-square distribution.
        return 1 - float(chdtrc(n - 1, (n - 1) * (shift / critical) ** 2))
    # Where a tail underflows, nctdtr may be NaN.
    not_above, below = (
        float(np.nan_to_num(nctdtr(n - 1, shift, t), nan=0.0)) for t in (critical, -critical)
    )
    return 1 - not_above + below


def _wins(
    a: NDArray[np.float64],
    weight_a: NDArray[np.float64],
    b: NDArray[np.float64],
    weight_b: NDArray[np.float64],
    *,
    ties: bool,
) -> NDArray[np.float64]:
    """Weight of the pairs with b < a (b <= a with ties), from one sort in which b precedes a."""
    parts = [(b, np.zeros_like(weight_b), weight_b), (a, weight_a, np.zeros_like(weight_a))]
    if not ties:  # the sort is stable: equal values keep this order
        parts.reverse()
    values, of_a, of_b = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    order = np.argsort(values, axis=-1, kind="stable")
    b_before = np.cumsum(np.take_along_axis(of_b, order, axis=-1), axis=-1)
    return (np.take_along_axis(of_a, order, axis=-1) * b_before).sum(axis=-1)


def _weighted(
    values: ArrayLike, counts: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Values (..., n), 0 where unknown; weights; (...) whether a value that counts is unknown."""
    array = np.asarray(values, dtype=np.float64)
    weight = np.ones_like(array) if counts is None else np.asarray(counts, dtype=np.float64)
    array, weight = np.broadcast_arrays(array, weight)
    if array.ndim == 0:
        raise ValueError("values must have at least one axis, got a number")
    unknown = np.asarray((np.isnan(array) & (weight > 0)).any(axis=-1))
    return np.where(np.isnan(array), 0.0, array), weight, unknown


def _ratio(
    part: NDArray[np.float64], whole: NDArray[np.float64], unknown: NDArray[np.bool_]
) -> NDArray[np.float64]:
    known = ~unknown & (whole > 0)
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=known)


def _one_axis(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one axis, got shape {array.shape}")
    return array


def _check_fraction(value: float, name: str) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must be in (0, 1), got {value!r}")


MIN_SEEDS = 6
"""Fewer common seeds than this decide nothing: with five, even a sign test of differences that
all agree has p = 2 / 2^5 = .0625."""
