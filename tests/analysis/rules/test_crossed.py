"""Means over seeds and images: closed forms, limits, and simulations of what is promised.

Then what background images add to a variance, pair by pair.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from analysis.rules.backgrounds import Backgrounds
from analysis.rules.crossed import Part, crossed_mean, needed_seeds
from analysis.rules.statistics import MIN_SEEDS


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
def test_a_balanced_layout_has_the_mean_squares_of_the_textbook(image_sd):
    """And an interval by Cochran's rule: the t of each part at its share of the variance."""
    y = layout(seeds=7, images=30, image_sd=image_sd)
    seeds, images = y.shape
    rows, columns = y.mean(1), y.mean(0)
    left = y - rows[:, None] - columns + y.mean()
    residual = (left**2).sum() / ((seeds - 1) * (images - 1)) / (seeds * images)
    of_seeds = rows.var(ddof=1) / seeds
    of_images = max(0, columns.var(ddof=1) / images - residual)
    found = crossed_mean(y)
    parts = [found.seed_se, found.image_se, found.standard_error, found.residual_se]
    ends = np.sqrt([of_seeds, of_images, of_seeds + of_images, residual])
    assert parts == pytest.approx(ends, rel=1e-12)
    critical = stats.t.ppf(0.975, [seeds - 1, images - 1])
    half = np.average(critical, weights=[of_seeds, of_images]) * found.standard_error
    assert [found.low, found.high] == pytest.approx([y.mean() - half, y.mean() + half], rel=1e-9)
    turned = crossed_mean(-y[::-1, ::-1])
    assert (turned.mean, turned.p) == pytest.approx((-found.mean, found.p))


@pytest.mark.parametrize("images", [1, 50])
@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_images_that_do_not_differ_leave_the_paired_t_test(confidence, images):
    rows = np.random.default_rng(3).normal(0.3, 0.2, 9)
    found = crossed_mean(np.repeat(rows[:, None], images, axis=1), confidence=confidence)
    t = stats.ttest_1samp(rows, 0)
    expected = (rows.mean(), *t.confidence_interval(confidence), t.pvalue)
    assert (found.mean, found.low, found.high, found.p) == pytest.approx(expected, rel=1e-9)
    assert found.seed_se == pytest.approx(rows.std(ddof=1) / 3)
    none = math.nan if images == 1 else 0
    assert found.image_se == pytest.approx(none, abs=1e-9, nan_ok=True)


def test_weights_are_instances():
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
def test_p_is_the_level_at_which_the_interval_reaches_0(mean):
    y = layout(mean=mean)
    p = crossed_mean(y).p
    assert 0 <= p <= 1
    if 1e-12 < p < 1 - 1e-9:
        found = crossed_mean(y, confidence=1 - p)
        assert min(abs(found.low), abs(found.high)) < 1e-4 * found.standard_error


@pytest.mark.parametrize(
    "values", [np.full((6, 3), 0.5), np.array([[0.1, 0.3]]), np.tile([0.0, 1.0, 0.3], (6, 1))]
)
def test_seeds_that_do_not_vary_do_not_tell_how_seeds_vary(values):
    found = crossed_mean(values)
    assert found.mean == pytest.approx(values.mean())
    assert np.isnan([found.low, found.high, found.p, found.standard_error]).all()
    assert math.isnan(needed_seeds(found, 0.1, 0.05))


def test_what_is_not_known_is_nan():
    y = layout(images=4)
    y[2, 1] = math.nan
    assert math.isnan(crossed_mean(y).mean)
    assert not math.isnan(crossed_mean(y, [1, 0, 1, 1]).p)
    assert math.isnan(crossed_mean(np.zeros((0, 3))).mean)


@pytest.mark.parametrize("image_sd", [0.0, 0.3])
def test_new_seeds_and_images_are_covered(image_sd):
    generator, replicates = np.random.default_rng(5), 1_000
    p = [crossed_mean(layout(image_sd=image_sd, random=generator)).p for _ in range(replicates)]
    outside = np.mean(np.array(p) < 0.05)
    assert 0.02 < outside < 0.05 + 3 * math.sqrt(0.05 * 0.95 / replicates)


def test_advice_grows_with_what_is_asked():
    found = crossed_mean(layout(images=400))
    easy, hard = needed_seeds(found, 0.1, 0.05), needed_seeds(found, 0.08, 0.05)
    assert MIN_SEEDS == needed_seeds(found, 10.0, 0.05) <= easy < hard < math.inf
    assert needed_seeds(found, -0.08, 0.05) == hard
    assert needed_seeds(found, 0.08, 0.01) > hard
    assert needed_seeds(found, 0.08, 0.05, power=0.9) > hard
    assert math.isnan(needed_seeds(found, math.nan, 0.05))


def test_no_seeds_are_advised_where_images_decide():
    found = crossed_mean(layout(seeds=24, images=40, seed_sd=0.01, image_sd=0.5, residual_sd=0.1))
    assert needed_seeds(found, 0.1, 0.05) == math.inf
    over_seeds = crossed_mean(layout()[:, :1])
    assert needed_seeds(over_seeds, 1e-5, 0.05) == needed_seeds(over_seeds, 0.0, 0.05) == math.inf


# --- background images

FOREGROUNDS, BACKGROUNDS, HELD = 20, 60, 5


def test_it_is_the_sum_over_pairs_of_other_foregrounds_and_seeds():
    generator = np.random.default_rng(0)
    foreground, background = (
        generator.integers(FOREGROUNDS, size=30),
        generator.integers(BACKGROUNDS, size=(30, HELD)),
    )
    values = generator.standard_normal((3, 30))
    in_common = np.array([[(a[:, None] == b).sum() for b in background] for a in background])
    other = foreground[:, None] != foreground
    residuals = values - values.mean(axis=1, keepdims=True)
    excess = np.where(other, in_common - in_common[other].mean(), 0)
    pairs = [*itertools.permutations(residuals, 2)]
    products = np.mean([first @ excess @ second for first, second in pairs])
    centre = np.eye(30) - 1 / 30
    of_one = (excess * (centre @ in_common @ centre)).sum()  # what a variance of 1 would give
    expected = in_common[other].mean() * products / of_one
    found = Backgrounds(foreground, background).part(values)
    assert found.variance == pytest.approx(expected, rel=1e-10)
    assert found.images == len(np.unique(background))
    # the order of instances and the names of images are arbitrary
    order = generator.permutation(30)
    renamed = Backgrounds(-foreground[order], 7 - 2 * background[order]).part(values[:, order])
    assert renamed.variance == pytest.approx(found.variance, rel=1e-10)


def test_instances_with_the_same_backgrounds_do_not_tell_them_apart():
    foreground, background = np.arange(12) % 4, np.tile([1, 2, 3], (12, 1))
    assert not Backgrounds(foreground, background).is_known


def test_backgrounds_widen_an_interval_and_more_seeds_are_asked_for():
    values = np.random.default_rng(2).normal(0.1, 0.2, (6, 40))
    plain = crossed_mean(values)
    none, found = (
        crossed_mean(values, backgrounds=Part(variance, 59.0, 60)) for variance in (0.0, 0.03**2)
    )
    assert (none.low, none.high, none.p) == (plain.low, plain.high, plain.p)
    assert found.standard_error == pytest.approx(math.hypot(plain.standard_error, 0.03))
    assert (found.background_se, found.num_backgrounds) == (pytest.approx(0.03), 60)
    assert found.high - found.low > plain.high - plain.low
    assert needed_seeds(found, 0.09, 0.05) > needed_seeds(plain, 0.09, 0.05)
