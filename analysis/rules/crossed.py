"""Means over seeds and images as random effects, their tests, and what would decide.

Every seed is tested on the same images, so neither the runs of a table of shares are independent
(images are common to them) nor its images (seeds are). The model of the share y[s, i] of image i
that was right with seed s, or of a difference of two paradigms' shares, is

    y[s, i] = mu + A_s + B_i + E_si,    mu estimated by  sum_i w_i mean_s y[s, i],

with A, B and E independent, and weights w_i in proportion to the instances of each image. What
background images add (`analysis.rules.backgrounds`) comes on top. Its verdict holds for new seeds
*and* new images. To draw another split with each seed would not do it:
test sets that overlap are common to the runs all the same (Nadeau & Bengio 2003), and what varies
should vary in the measured spread (Bouthillier et al. 2021).

Sources: Searle, Casella & McCulloch, Variance Components (1992), chapter 4, for the moments; Owen
& Eckles, Annals of Applied Statistics 6 (2012), who add the two one-way variances and so count the
interaction twice; Cochran & Cox, Experimental Designs (1950), and Cochran, Biometrics 20 (1964),
for the critical value; Nadeau & Bengio, Machine Learning 52 (2003); Bouthillier et al., MLSys
(2021). `benchmarks/calibration.py` simulates what they keep; docs/validity.md has the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import chdtri, nctdtr, stdtr, stdtrit

from analysis.rules.statistics import MIN_SEEDS, ROUNDING, quantiles

MAX_SEEDS = 10_000
"""Beyond this, `needed_seeds` says that no number of seeds decides."""

_NODES = 64
"""Pairs of spreads, over seeds and images, that stand for all that an estimate leaves open."""

_GOLDEN = (math.sqrt(5) - 1) / 2
_LARGE_SHIFT = 1e3  # in standard errors: any test rejects; nctdtr would overflow soon


@dataclass(frozen=True)
class CrossedMean:
    """A mean over seeds and images, and the test that it is 0.

    Attributes:
        mean: in the unit of the values.
        low: lower bound of the mean for new seeds and new images; NaN with fewer than two seeds or
            where these do not vary.
        high: upper bound; NaN likewise.
        p: two-sided p value of the hypothesis that the mean is 0; NaN likewise. It is below
            1 - confidence exactly where 0 is outside the interval.
        standard_error: of the mean, = sqrt(seed_se^2 + image_se^2 + background_se^2), without
            what is not known; NaN likewise.
        seed_se: standard error over new seeds, with these images; NaN likewise.
        image_se: what other images add to it; 0 where images vary no more than chance at each seed
            explains, NaN likewise and where there is one column.
        residual_se: standard error from the interaction alone, which is part of both.
        num_seeds: S.
        num_images: I, columns with a weight above 0.
        image_df: degrees of freedom of the spread over images, <= I - 1; less than that where
            weights are unequal. That of the spread over seeds has S - 1.
        background_se: what other background images add to it; NaN where they are not known.
        num_backgrounds: how many there are; 0: not known.
        background_df: degrees of freedom of the spread over them.
    """

    mean: float
    low: float
    high: float
    p: float
    standard_error: float
    seed_se: float
    image_se: float
    residual_se: float
    num_seeds: int
    num_images: int
    image_df: float
    background_se: float = math.nan
    num_backgrounds: int = 0
    background_df: float = 0.0


class Part(NamedTuple):
    """A part of the variance of a mean.

    Attributes:
        variance: an estimate, which counts as 0 below 0.
        df: degrees of freedom of its estimate.
        images: of how many images it is.
    """

    variance: float
    df: float
    images: int


def crossed_mean(
    values: ArrayLike,
    weights: ArrayLike | None = None,
    confidence: float = 0.95,
    backgrounds: Part | None = None,
) -> CrossedMean:
    """Weighted mean over seeds and images, with a test and an interval over both.

    The variance of the mean is v = v_rows + v_columns - v_residual, and never below either of the
    first two; what backgrounds add comes on top. v_rows is the variance of the seeds' means over
    S; v_columns = f sum_i w_i^2 (mean_s y[s, i] - mean)^2 and v_residual the same of what rows and
    columns leave, over S (S - 1), with f = W2 / (W2 - 2 W3 + W2^2), Wk = sum_i w_i^k. With equal
    weights, v = (MS_rows + MS_columns - MS_residual) / (S I).

    The critical value is Cochran's: the mean of Student's t of seeds, with S - 1 degrees of
    freedom, images and backgrounds, weighted by their parts of v. Student's t with
    Satterthwaite's degrees of freedom keeps .05 as well, but at .05 / 12, which Holm needs,
    rejects up to 1.9 times too often at six seeds; Cochran's rejects no more often than it should
    at any level. One column, or no spread over images, gives the paired t test.

    Args:
        values: (S, I) share, or difference of shares, of image i with seed s. A NaN in a column
            that has weight makes every number NaN: an unknown value is not left out.
        weights: (I,) >= 0, in proportion to the instances of each image; by default equal. An
            image without weight is not there.
        confidence: of the interval, in (0, 1).
        backgrounds: what background images add to the variance; None: not known.

    Raises:
        ValueError: shapes do not fit, a weight is negative or none is positive, or `confidence` is
            out of range.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence!r}")
    y, w = _weighted(values, weights)
    seeds, images = y.shape
    w2, w3 = (float((w**k).sum()) for k in (2, 3))
    of_images = image_df(w)
    rows, nan = y @ w, math.nan
    mean = float(rows.mean()) if seeds else nan
    if seeds < 2 or np.isnan(y).any() or np.ptp(rows) <= ROUNDING:
        return CrossedMean(mean, nan, nan, nan, nan, nan, nan, nan, seeds, images, of_images)
    v_rows = float(rows.var(ddof=1)) / seeds
    v_columns = v_residual = 0.0
    if images > 1:
        columns = y.mean(axis=0)
        spread = w2 / (w2 - 2 * w3 + w2**2) * w**2
        v_columns = float(spread @ (columns - mean) ** 2)
        # The sum of squares that rows and columns leave, of each column, without its (S, I) array.
        about_rows = ((y - rows[:, None]) ** 2).sum(axis=0)
        left = about_rows - seeds * (columns - mean) ** 2
        v_residual = max(float(spread @ left), 0.0) / (seeds * (seeds - 1))
    of_both = max(v_rows + v_columns - v_residual, v_rows, v_columns)
    others = backgrounds or Part(0.0, 0.0, 0)
    variances = v_rows, of_both - v_rows, max(others.variance, 0.0)
    dfs = seeds - 1, of_images, others.df
    error = math.sqrt(sum(variances))
    half = float(_critical(1 - confidence, variances, dfs)) * error
    return CrossedMean(
        mean=mean,
        low=mean - half,
        high=mean + half,
        p=_p_value(abs(mean) / error, variances, dfs),
        standard_error=error,
        seed_se=math.sqrt(v_rows),
        image_se=math.sqrt(of_both - v_rows) if images > 1 else nan,
        residual_se=math.sqrt(v_residual),
        num_seeds=seeds,
        num_images=images,
        image_df=of_images,
        background_se=math.sqrt(variances[2]) if backgrounds else nan,
        num_backgrounds=others.images,
        background_df=others.df,
    )


def image_df(weights: ArrayLike) -> float:
    """Degrees of freedom of a spread over images, <= I - 1: 0 of one image.

    Args:
        weights: (I,) > 0, in proportion to the instances of each image.
    """
    w = np.asarray(weights, np.float64) / np.sum(weights)
    return float((w**2).sum() ** 2 / (w**4).sum() - 1)


def needed_seeds(found: CrossedMean, effect: float, level: float, power: float = 0.8) -> float:
    """Number of seeds with which the test finds an effect, with the images as they are.

    The chance to find it depends on spreads that are themselves estimated, over seeds and images
    from few numbers. So the power is averaged over what the estimates leave open: each is its
    degrees of freedom times the mean square over a chi-square. That over backgrounds is taken as
    seen. Name an effect that would matter; the one that was seen is too large where it decided.

    Args:
        found: as `crossed_mean` gives it for the seeds and images at hand.
        effect: the mean to be found, in the unit of the values; the sign does not matter.
        level: of the two-sided test, in (0, 1); divide by Holm's multiplier.
        power: desired chance to reject, in (0, 1).

    Returns:
        Seeds >= `MIN_SEEDS`, of a study of its own, not those to be added; inf: no number up to
        `MAX_SEEDS` is enough, since the effect is too small, or smaller than what images vary. NaN
        where the effect is NaN or the spread is not known.

    Raises:
        ValueError: `level` or `power` is out of range.
    """
    for name, value in (("level", level), ("power", power)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must be in (0, 1), got {value!r}")
    if math.isnan(effect) or math.isnan(found.standard_error):
        return math.nan
    now, residual = found.num_seeds, found.residual_se**2
    of_image, of_background = np.nan_to_num([found.image_se, found.background_se]) ** 2
    even = quantiles(_NODES)
    of_seeds = now * found.seed_se**2 * (now - 1) / chdtri(now - 1, even)
    if found.num_images > 1:
        # Another order of the same quantiles, so that the pairs fill the square evenly.
        shuffled = even[np.argsort(np.arange(_NODES) * _GOLDEN % 1)]
        columns = (of_image + residual) * found.image_df / chdtri(found.image_df, shuffled)
        of_image = np.maximum(columns - residual, 0.0)
    dfs = found.image_df, found.background_df

    def chance(seeds: int) -> float:
        return _power(
            effect, (of_seeds / seeds, of_image, of_background), (seeds - 1, *dfs), level
        )

    return _smallest(chance, MIN_SEEDS, MAX_SEEDS, power)


def _critical(level: float, variances: Sequence[Any], dfs: Sequence[float]) -> NDArray[np.float64]:
    """Cochran's critical value of |mean| / error, of the parts of the variance of the mean."""
    weighted = sum(
        variance * -stdtrit(df, level / 2)
        for variance, df in zip(variances, dfs, strict=True)
        if np.any(variance)
    )
    return np.asarray(weighted / sum(variances))


def _p_value(t: float, variances: Sequence[float], dfs: Sequence[float]) -> float:
    """The level at which Cochran's critical value is t >= 0."""
    of_parts = [
        2 * float(stdtr(df, -t)) for variance, df in zip(variances, dfs, strict=True) if variance
    ]
    least, most = min(of_parts), max(of_parts)
    if most == 0 or most - least <= 1e-12 * most:
        return most
    low = max(math.log(least), -700.0) if least > 0 else -700.0

    def gap(log_p: float) -> float:
        return float(_critical(math.exp(log_p), variances, dfs)) - t

    if gap(low) <= 0:
        return math.exp(low)
    return math.exp(brentq(gap, low, math.log(most) + 1e-9, xtol=1e-10))


def _power(effect: float, variances: Sequence[Any], dfs: Sequence[float], level: float) -> float:
    """Chance to reject, averaged over variances, (q,), that seeds and images may give the mean.

    |mean| / error has, nearly, a noncentral t distribution with Satterthwaite's degrees of freedom
    (Biometrics Bulletin 2, 1946).
    """
    variance = sum(variances)
    inverse_df = sum(part**2 / df for part, df in zip(variances, dfs, strict=True) if np.any(part))
    critical = _critical(level, variances, dfs)
    shift = np.minimum(abs(effect) / np.sqrt(variance), _LARGE_SHIFT)
    # Where a tail underflows, nctdtr may be NaN.
    not_above = np.nan_to_num(nctdtr(variance**2 / inverse_df, shift, critical), nan=0.0)
    return float(1 - not_above.mean())


def _smallest(chance: Callable[[int], float], least: int, most: int, power: float) -> float:
    """Smallest whole number from `least` with which a growing chance is enough; inf: none."""
    high = least
    while chance(high) < power:
        if high == most:
            return math.inf
        high = min(2 * high, most)
    low = max(least - 1, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) >= power else (middle, high)
    return float(high)


def _weighted(
    values: ArrayLike, weights: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(S, I) values and (I,) weights that sum to 1, of the columns that have weight."""
    y = np.asarray(values, dtype=np.float64)
    if y.ndim != 2:
        raise ValueError(f"values must have two axes, got shape {y.shape}")
    w = np.ones(y.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != y.shape[1:]:
        raise ValueError(f"weights must have shape {y.shape[1:]}, got {w.shape}")
    if not (w >= 0).all() or not w.any():
        raise ValueError("weights must be >= 0, and at least one above 0")
    there = w > 0
    return y[:, there], w[there] / w.sum()
