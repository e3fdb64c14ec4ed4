"""Means over seeds and images: closed forms, limits, and simulations of what is promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from analysis.crossed import (
    crossed_mean,
    needed,
)
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
    generator = np.random.default_rng(random)
    return (
        mean
        + generator.normal(0, seed_sd, (seeds, 1))
        + generator.normal(0, image_sd, (1, images))
        + generator.normal(0, residual_sd, (seeds, images))
    )


def test_a_balanced_layout_has_the_mean_squares_of_the_textbook() -> None:
    y = layout(seeds=7, images=30)
    seeds, images = y.shape
    rows, columns, mean = y.mean(1), y.mean(0), y.mean()
    of_rows = images * ((rows - mean) ** 2).sum() / (seeds - 1)
    of_columns = seeds * ((columns - mean) ** 2).sum() / (images - 1)
    left = y - rows[:, None] - columns + mean
    of_residual = (left**2).sum() / ((seeds - 1) * (images - 1))
    found = crossed_mean(y)
    assert found.mean == pytest.approx(mean)
    expected = (of_rows + of_columns - of_residual) / (seeds * images)
    assert found.standard_error**2 == pytest.approx(expected, rel=1e-12)
    assert found.seed_se**2 == pytest.approx(of_rows / (seeds * images), rel=1e-12)
    assert found.residual_se**2 == pytest.approx(of_residual / (seeds * images), rel=1e-12)
    assert found.seed_se**2 + found.image_se**2 == pytest.approx(found.standard_error**2)
    assert found.image_df == pytest.approx(images - 1)


def test_by_hand() -> None:
    # Rows .4, .6, .8; columns .5, .7; the residual is 0. MS_rows = 2 * .04 = .08, MS_columns =
    # 3 * .02 = .06, so v = .14 / 6. Of v, seeds have 4/7, with 2 degrees of freedom, images 1.
    found = crossed_mean([[0.3, 0.5], [0.5, 0.7], [0.7, 0.9]])
    assert found.mean == pytest.approx(0.6)
    assert found.standard_error == pytest.approx(math.sqrt(0.14 / 6))
    half = (4 / 7 * 4.302653 + 3 / 7 * 12.706205) * math.sqrt(0.14 / 6)
    assert (found.low, found.high) == pytest.approx((0.6 - half, 0.6 + half), rel=1e-6)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_one_column_is_the_paired_t_test(confidence: float) -> None:
    values = np.random.default_rng(3).normal(0.3, 0.2, 9)
    found, t = crossed_mean(values[:, None], confidence=confidence), stats.ttest_1samp(values, 0)
    expected = (values.mean(), *t.confidence_interval(confidence), t.pvalue)
    assert (found.mean, found.low, found.high, found.p) == pytest.approx(expected, rel=1e-10)
    assert found.seed_se == pytest.approx(values.std(ddof=1) / 3)
    assert math.isnan(found.image_se)


def test_images_that_do_not_differ_leave_the_paired_t_test() -> None:
    rows = np.random.default_rng(4).normal(0.3, 0.2, 8)
    found, t = crossed_mean(np.repeat(rows[:, None], 50, axis=1)), stats.ttest_1samp(rows, 0)
    expected = (*t.confidence_interval(), t.pvalue)
    assert (found.low, found.high, found.p) == pytest.approx(expected, rel=1e-9)
    assert found.image_se == pytest.approx(0, abs=1e-9)


def test_many_seeds_and_large_images_leave_the_t_test_over_images() -> None:
    y = layout(seeds=200, images=25, seed_sd=1e-6, residual_sd=1e-6, mean=0.1)
    test = stats.ttest_1samp(y.mean(0), 0)
    assert crossed_mean(y).p == pytest.approx(test.pvalue, rel=1e-6)


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


def test_no_variance_is_below_that_of_one_factor() -> None:
    for number in range(50):
        found = crossed_mean(layout(images=10, image_sd=0.0, random=number))
        assert found.standard_error >= found.seed_se
        assert found.image_se >= 0


@pytest.mark.parametrize("mean", [0.02, 0.1, 0.5, 5.0, 1e6])
def test_p_is_the_level_at_which_the_interval_reaches_0(mean: float) -> None:
    y = layout(mean=mean)
    p = crossed_mean(y).p
    assert 0 <= p <= 1
    if 1e-12 < p < 1 - 1e-9:
        found = crossed_mean(y, confidence=1 - p)
        assert min(abs(found.low), abs(found.high)) < 1e-4 * found.standard_error


def test_the_sign_and_the_order_do_not_matter() -> None:
    y = layout(mean=0.05)
    one, other = crossed_mean(y), crossed_mean(-y[::-1, ::-1])
    assert (one.mean, one.p) == pytest.approx((-other.mean, other.p))


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


@pytest.mark.parametrize(
    ("values", "weights", "confidence"),
    [
        ([0.1, 0.2], None, 0.95),
        ([[0.1, 0.2]], [1.0], 0.95),
        ([[0.1, 0.2]], [1.0, -1.0], 0.95),
        ([[0.1, 0.2]], [0.0, 0.0], 0.95),
        ([[0.1, 0.2]], [1.0, math.nan], 0.95),
        ([[0.1, 0.2]], None, 1.0),
    ],
)
def test_refusals(values: object, weights: object, confidence: float) -> None:
    with pytest.raises(ValueError, match="must"):
        crossed_mean(values, weights, confidence)  # type: ignore[arg-type]


def test_the_critical_value_holds_at_the_level_of_the_smallest_of_many_tests() -> None:
    """Where seeds give four fifths of the variance, as moments of a table of 6 x 180 come out."""
    generator, draws, level = np.random.default_rng(8), 400_000, 0.05 / 12
    rows = 0.8 * generator.chisquare(5, draws) / 5
    columns = 0.2 * generator.chisquare(179, draws) / 179
    variance = rows + columns
    t = abs(generator.standard_normal(draws)) / np.sqrt(variance)
    welch = variance**2 / (rows**2 / 5 + columns**2 / 179)  # Satterthwaite's
    critical = {df: stats.t.isf(level / 2, df) for df in (5, 179)}
    cochran = (rows * critical[5] + columns * critical[179]) / variance
    assert (t > cochran).mean() / level < 1
    assert (t > stats.t.isf(level / 2, welch)).mean() / level == pytest.approx(1.9, abs=0.15)


@pytest.mark.parametrize("image_sd", [0.0, 0.3, 1.0])
def test_new_seeds_and_images_are_covered(image_sd: float) -> None:
    generator = np.random.default_rng(5)
    replicates = 1_000
    outside = sum(
        crossed_mean(layout(image_sd=image_sd, random=generator)).p < 0.05
        for _ in range(replicates)
    )
    assert outside / replicates < 0.05 + 3 * math.sqrt(0.05 * 0.95 / replicates)
    assert outside / replicates > 0.02


def test_advice_grows_with_what_is_asked() -> None:
    found = crossed_mean(layout(images=400))
    easy, hard = needed(found, 0.1, 0.05).seeds, needed(found, 0.08, 0.05).seeds
    assert MIN_SEEDS <= easy < hard < math.inf
    assert needed(found, -0.08, 0.05).seeds == hard
    assert needed(found, 0.08, 0.01).seeds > hard
    assert needed(found, 0.08, 0.05, power=0.9).seeds > hard
    assert needed(found, 10.0, 0.05).seeds == MIN_SEEDS


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


def test_advice_on_nothing_known_is_not_known() -> None:
    found = crossed_mean(layout())
    assert math.isnan(needed(found, math.nan, 0.05).seeds)
    for level, power in ((0.0, 0.8), (0.05, 1.0)):
        with pytest.raises(ValueError, match="must be in"):
            needed(found, 0.1, level, power)
