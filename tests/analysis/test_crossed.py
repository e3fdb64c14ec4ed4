"""Means over seeds and images: closed forms, limits, and simulations of what is promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from analysis.crossed import crossed_mean, needed
from analysis.statistics import MIN_SEEDS


def layout(
    seeds: int = 6,
    images: int = 40,
    *,
    seed_sd: float = 0.1,
    image_sd: float = 0.3,
    residual_sd: float = 0.3,
    mean: float = 0.0,
    random: int | np.random.Generator = 0,
) -> NDArray[np.float64]:
    normal = np.random.default_rng(random).normal
    of_seeds, of_images = normal(0, seed_sd, (seeds, 1)), normal(0, image_sd, (1, images))
    return mean + of_seeds + of_images + normal(0, residual_sd, (seeds, images))


@pytest.mark.parametrize("image_sd", [0.0, 0.3, 1.0])
def test_a_balanced_layout_has_the_mean_squares_of_the_textbook(image_sd: float) -> None:
    """And an interval by Cochran's rule: the t of each part at its share of the variance."""
    y = layout(seeds=7, images=30, image_sd=image_sd)
    seeds, images = y.shape
    rows, columns, mean = y.mean(1), y.mean(0), y.mean()
    of_rows, of_columns = images * rows.var(ddof=1), seeds * columns.var(ddof=1)
    left = y - rows[:, None] - columns + mean
    of_residual = (left**2).sum() / ((seeds - 1) * (images - 1))
    found = crossed_mean(y)
    of_images = max(0, of_columns - of_residual)
    ends = np.array([of_rows, of_images, of_rows + of_images, of_residual]) / (seeds * images)
    parts = [found.seed_se, found.image_se, found.standard_error, found.residual_se]
    assert parts == pytest.approx(np.sqrt(ends), rel=1e-12)
    assert (found.mean, found.image_df) == pytest.approx((mean, images - 1))
    critical = stats.t.ppf(0.975, [seeds - 1, images - 1]) @ ends[:2] / ends[2]
    half = critical * found.standard_error
    assert (found.low, found.high) == pytest.approx((mean - half, mean + half), rel=1e-9)
    turned = crossed_mean(-y[::-1, ::-1])
    assert (turned.mean, turned.p) == pytest.approx((-found.mean, found.p))


@pytest.mark.parametrize("images", [1, 50])
@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_images_that_do_not_differ_leave_the_paired_t_test(confidence: float, images: int) -> None:
    rows = np.random.default_rng(3).normal(0.3, 0.2, 9)
    found = crossed_mean(np.repeat(rows[:, None], images, axis=1), confidence=confidence)
    t = stats.ttest_1samp(rows, 0)
    expected = (rows.mean(), *t.confidence_interval(confidence), t.pvalue)
    assert (found.mean, found.low, found.high, found.p) == pytest.approx(expected, rel=1e-9)
    assert found.seed_se == pytest.approx(rows.std(ddof=1) / 3)
    none = math.nan if images == 1 else 0
    assert found.image_se == pytest.approx(none, abs=1e-9, nan_ok=True)


def test_weights_are_instances() -> None:
    y = layout(images=5)
    weights = np.array([1, 2, 3, 0, 4])
    found = crossed_mean(y, weights)
    assert found.mean == pytest.approx((y @ weights / 10).mean())
    assert found.num_images == 4
    assert found == crossed_mean(y[:, weights > 0], weights[weights > 0])
    scaled = crossed_mean(y, weights / 7)
    assert scaled.standard_error == pytest.approx(found.standard_error, rel=1e-12)
    assert found.image_df < 3


@pytest.mark.parametrize("mean", [0.02, 0.5, 1e6])
def test_p_is_the_level_at_which_the_interval_reaches_0(mean: float) -> None:
    y = layout(mean=mean)
    p = crossed_mean(y).p
    assert 0 <= p <= 1
    if 1e-12 < p < 1 - 1e-9:
        found = crossed_mean(y, confidence=1 - p)
        assert min(abs(found.low), abs(found.high)) < 1e-4 * found.standard_error


@pytest.mark.parametrize(
    "values", [np.full((6, 3), 0.5), np.array([[0.1, 0.3]]), np.tile([0.0, 1.0, 0.3], (6, 1))]
)
def test_seeds_that_do_not_vary_do_not_tell_how_seeds_vary(values: NDArray[np.float64]) -> None:
    found = crossed_mean(values)
    assert found.mean == pytest.approx(values.mean())
    assert np.isnan([found.low, found.high, found.p, found.standard_error]).all()
    plan = needed(found, 0.1, 0.05)
    assert np.isnan([plan.seeds, plan.images]).all()


def test_what_is_not_known_is_nan() -> None:
    y = layout(images=4)
    y[2, 1] = math.nan
    assert math.isnan(crossed_mean(y).mean)
    assert not math.isnan(crossed_mean(y, [1, 0, 1, 1]).p)
    assert math.isnan(crossed_mean(np.zeros((0, 3))).mean)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, math.nan]])
def test_refusals(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="must"):
        crossed_mean([[0.1, 0.2]], weights)
    with pytest.raises(ValueError, match="must be in"):
        crossed_mean([[0.1, 0.2]], confidence=1.0)
    with pytest.raises(ValueError, match="must be in"):
        needed(crossed_mean(layout()), 0.1, 0.0)


@pytest.mark.parametrize("image_sd", [0.0, 0.3])
def test_new_seeds_and_images_are_covered(image_sd: float) -> None:
    generator, replicates = np.random.default_rng(5), 1_000
    p = [crossed_mean(layout(image_sd=image_sd, random=generator)).p for _ in range(replicates)]
    outside = np.mean(np.array(p) < 0.05)
    assert 0.02 < outside < 0.05 + 3 * math.sqrt(0.05 * 0.95 / replicates)


def test_advice_grows_with_what_is_asked() -> None:
    found = crossed_mean(layout(images=400))
    easy, hard = needed(found, 0.1, 0.05).seeds, needed(found, 0.08, 0.05).seeds
    assert MIN_SEEDS == needed(found, 10.0, 0.05).seeds <= easy < hard < math.inf
    assert needed(found, -0.08, 0.05).seeds == hard
    assert needed(found, 0.08, 0.01).seeds > hard
    assert needed(found, 0.08, 0.05, power=0.9).seeds > hard
    assert math.isnan(needed(found, math.nan, 0.05).seeds)


def test_images_are_advised_where_no_number_of_seeds_is_enough() -> None:
    found = crossed_mean(layout(seeds=24, images=40, seed_sd=0.01, image_sd=0.5, residual_sd=0.1))
    plan = needed(found, 0.1, 0.05)
    assert plan.seeds == math.inf
    assert 100 < plan.images < 500  # (2.8 * .5 / .1)^2 = 196 with certainty about the spread
    neither = crossed_mean(layout(images=40, image_sd=0.5, seed_sd=0.5))
    assert needed(neither, 0.1, 0.05).images == math.inf
    over_seeds = crossed_mean(layout()[:, :1])
    assert needed(over_seeds, 1e-5, 0.05) == needed(over_seeds, 0.0, 0.05)
    assert needed(over_seeds, 0.0, 0.05).seeds == math.inf
