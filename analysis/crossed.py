"""Means over seeds and images as crossed random effects, their tests, and what would decide.

Every seed is tested on the same images, so neither the runs of a table of shares are independent
(images are common to them) nor its images (seeds are). The model of the share y[s, i] of image i
that was right with seed s, or of a difference of two paradigms' shares, is

    y[s, i] = mu + A_s + B_i + E_si,    mu estimated by  sum_i w_i mean_s y[s, i],

with A, B and E independent, and weights w_i in proportion to the instances of each image. Its
verdict holds for new seeds *and* new images. To draw another split with each seed would not do it:
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
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import chdtri, nctdtr, stdtr, stdtrit

from analysis.statistics import MIN_SEEDS, ROUNDING, quantiles

MAX_SEEDS = 10_000
"""Beyond this, `needed` says that no number of seeds decides."""

MAX_IMAGES = 10_000_000
"""Beyond this, `needed` says that no number of images decides."""

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
        standard_error: of the mean, = sqrt(seed_se^2 + image_se^2); NaN likewise.
        seed_se: standard error over new seeds, with these images; NaN likewise.
        image_se: what other images add to it; 0 where images vary no more than chance at each seed
            explains, NaN likewise and where there is one column.
        residual_se: standard error from the interaction alone, which is part of both.
        num_seeds: S.
        num_images: I, columns with a weight above 0.
        image_df: degrees of freedom of the spread over images, <= I - 1; less than that where
            weights are unequal. That of the spread over seeds has S - 1.
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


@dataclass(frozen=True)
class Needed:
    """What would find an effect.

    Attributes:
        seeds: smallest number of seeds, with the images as they are; inf: no number is enough.
        images: where `seeds` is inf, smallest number of images, with the seeds as they are; inf:
            neither alone is enough. NaN where `seeds` is not inf.
    """

    seeds: float
    images: float


def crossed_mean(
    values: ArrayLike, weights: ArrayLike | None = None, confidence: float = 0.95
) -> CrossedMean:
    """Weighted mean over seeds and images, with a test and an interval over both.

    The variance of the mean is v = v_rows + v_columns - v_residual, and never below either of the
    first two. v_rows is the variance of the seeds' means over S; v_columns =
    f sum_i w_i^2 (mean_s y[s, i] - mean)^2 and v_residual the same of what rows and columns leave,
    over S (S - 1), with f = W2 / (W2 - 2 W3 + W2^2), Wk = sum_i w_i^k. With equal weights, v =
    (MS_rows + MS_columns - MS_residual) / (S I).

    The critical value is Cochran's, v_rows / v t(S - 1) + (1 - v_rows / v) t(image_df). Student's
    t with Satterthwaite's degrees of freedom keeps .05 as well, but at .05 / 12, which Holm needs,
    rejects up to 1.9 times too often at six seeds; Cochran's rejects no more often than it should
    at any level. One column, or no spread over images, gives the paired t test.

    Args:
        values: (S, I) share, or difference of shares, of image i with seed s. A NaN in a column
            that has weight makes every number NaN: an unknown value is not left out.
        weights: (I,) >= 0, in proportion to the instances of each image; by default equal. An
            image without weight is not there.
        confidence: of the interval, in (0, 1).

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
    nan = math.nan
    if seeds == 0 or np.isnan(y).any():
        return CrossedMean(nan, nan, nan, nan, nan, nan, nan, nan, seeds, images, of_images)
    rows = y @ w
    mean = float(rows.mean())
    if seeds < 2 or np.ptp(rows) <= ROUNDING:
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
    variance = max(v_rows + v_columns - v_residual, v_rows, v_columns)
    error, share = math.sqrt(variance), v_rows / variance
    half = float(_critical(1 - confidence, share, seeds - 1, of_images)) * error
    return CrossedMean(
        mean=mean,
        low=mean - half,
        high=mean + half,
        p=_p_value(abs(mean) / error, share, seeds - 1, of_images),
        standard_error=error,
        seed_se=math.sqrt(v_rows),
        image_se=math.sqrt(variance - v_rows) if images > 1 else nan,
        residual_se=math.sqrt(v_residual),
        num_seeds=seeds,
        num_images=images,
        image_df=of_images,
    )


def image_df(weights: ArrayLike) -> float:
    """Degrees of freedom of a spread over images, <= I - 1: 0 of one image.

    Args:
        weights: (I,) > 0, in proportion to the instances of each image.
    """
    w = np.asarray(weights, np.float64) / np.sum(weights)
    return float((w**2).sum() ** 2 / (w**4).sum() - 1)


def needed(found: CrossedMean, effect: float, level: float, power: float = 0.8) -> Needed:
    """Number of seeds, or else of images, with which the test finds an effect.

    The chance to find it depends on spreads that are themselves estimated, over seeds from few
    numbers. So the power is averaged over the spreads over seeds that the estimate leaves open
    (S - 1 times its square over a chi-square with S - 1 degrees of freedom). Name an effect that
    would matter; the one that was seen is too large where it decided.

    Args:
        found: as `crossed_mean` gives it for the seeds and images at hand.
        effect: the mean to be found, in the unit of the values; the sign does not matter.
        level: of the two-sided test, in (0, 1); divide by Holm's multiplier.
        power: desired chance to reject, in (0, 1).

    Returns:
        Seeds >= `MIN_SEEDS`, of a study of its own, not those to be added. Both NaN where the
        effect is NaN or the spread is not known.

    Raises:
        ValueError: `level` or `power` is out of range.
    """
    for name, value in (("level", level), ("power", power)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must be in (0, 1), got {value!r}")
    if math.isnan(effect) or math.isnan(found.standard_error):
        return Needed(math.nan, math.nan)
    now, images = found.num_seeds, found.num_images
    of_image = 0.0 if math.isnan(found.image_se) else found.image_se**2
    of_seed = now * found.seed_se**2 * (now - 1) / chdtri(now - 1, quantiles(64))
    residual = min(found.residual_se**2 / found.seed_se**2, 1.0)

    def with_seeds(seeds: int) -> float:
        return _power(effect, of_seed / seeds, of_image, seeds - 1, found.image_df, level)

    def with_images(number: int) -> float:
        factor = images / number
        row = of_seed / now * (1 - residual + residual * factor)
        return _power(
            effect, row, of_image * factor, now - 1, (found.image_df + 1) / factor - 1, level
        )

    seeds = smallest(with_seeds, MIN_SEEDS, MAX_SEEDS, power)
    if seeds < math.inf or images == 1:
        return Needed(seeds, math.nan if seeds < math.inf else math.inf)
    return Needed(math.inf, smallest(with_images, images, MAX_IMAGES, power))


def _critical(
    level: float, share: float | NDArray[np.float64], seed_df: float, image_df: float
) -> NDArray[np.float64]:
    """Cochran's critical value of |mean| / error; `share` in [0, 1] is that of the seeds."""
    of_seeds = -stdtrit(seed_df, level / 2)
    of_images = -stdtrit(image_df, level / 2) if image_df > 0 else of_seeds
    return np.asarray(share * of_seeds + (1 - share) * of_images)


def _p_value(t: float, share: float, seed_df: float, image_df: float) -> float:
    """The level at which Cochran's critical value is t >= 0."""
    ends = sorted(2 * float(stdtr(df, -t)) for df in (seed_df, image_df if share < 1 else seed_df))
    if ends[1] == 0 or ends[1] - ends[0] <= 1e-12 * ends[1]:
        return ends[1]
    low = max(math.log(ends[0]), -700.0) if ends[0] > 0 else -700.0

    def gap(log_p: float) -> float:
        return float(_critical(math.exp(log_p), share, seed_df, image_df)) - t

    if gap(low) <= 0:
        return math.exp(low)
    return math.exp(brentq(gap, low, math.log(ends[1]) + 1e-9, xtol=1e-10))


def _power(
    effect: float,
    of_seeds: NDArray[np.float64],
    of_images: float,
    seed_df: float,
    image_df: float,
    level: float,
) -> float:
    """Chance to reject, averaged over `of_seeds` (q,), the variance that seeds give the mean.

    |mean| / error has, nearly, a noncentral t distribution with Satterthwaite's degrees of freedom
    (Biometrics Bulletin 2, 1946).
    """
    variance = of_seeds + of_images
    inverse_df = of_seeds**2 / seed_df + (of_images**2 / image_df if of_images else 0.0)
    critical = _critical(level, of_seeds / variance, seed_df, image_df)
    shift = np.minimum(abs(effect) / np.sqrt(variance), _LARGE_SHIFT)
    # Where a tail underflows, nctdtr may be NaN.
    not_above = np.nan_to_num(nctdtr(variance**2 / inverse_df, shift, critical), nan=0.0)
    return float(1 - not_above.mean())


def smallest(chance: Callable[[int], float], least: int, most: int, power: float) -> float:
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
