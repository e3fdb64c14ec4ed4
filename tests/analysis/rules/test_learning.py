"""Seeds that fall apart, and exact tests of how often a run learns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from analysis.rules.crossed import crossed_mean
from analysis.rules.learning import Scale, apart, learned, seed_mean
from analysis.rules.statistics import clopper_pearson, mcnemar, sign_flip

FLOOR = 0.3
SCALE = Scale(FLOOR)


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ([0.25, 0.8, 0.9], FLOOR),  # one did not learn, however many seeds there are
        ([0.26, 0.34, 0.29, 0.31, 0.27, 0.33], None),  # on both sides, without a gap
        ([0.1, 0.2, 0.15, 0.12, 0.1, 0.2], None),  # none learned
        ([0.9, 0.91, 0.92, 0.93, 0.94, 0.5], 0.7),  # whatever the gap is between
        ([0.9, 0.91, 0.92, 0.93, 0.94, 0.85], None),  # small
        ([0.9, 0.7, 0.92, 0.8, 0.75, 0.5], None),  # not large beside the others
        ([0.25, 0.9, math.nan], None),
        ([0.9], None),
    ],
)
def test_seeds_fall_apart_at_a_guess_or_at_a_large_gap(values, place):
    assert apart(values, SCALE) == pytest.approx(place)
    assert apart(values[::-1], SCALE) == pytest.approx(place)
    found = seed_mean(crossed_mean(np.array(values)[:, None]), values, SCALE)
    assert math.isnan(found.low) == (place is not None or len(values) < 4)


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ([31.2, 30.8, 30.5, 31.0, 30.9, 912.0], (31.2 + 912) / 2),
        ([31.2, 30.8, 30.5, 31.0, 30.9, 36.0], None),  # an outlier of one law
        ([0.0012, 0.0011, 0.0013, 0.0012, 0.9, 0.0012], (0.0013 + 0.9) / 2),  # in any unit
        ([5.0] * 6, None),
    ],
)
def test_seeds_of_a_quantity_fall_apart_at_a_gap_far_wider_than_they_lie(values, place):
    quantity = Scale(sign=-1, is_share=False)
    assert apart(values, quantity) == pytest.approx(place)
    found = seed_mean(crossed_mean(np.array(values)[:, None]), values, quantity)
    assert math.isnan(found.low) == (place is not None or np.ptp(values) == 0)


def test_where_less_is_better_seeds_that_learned_lie_below():
    rng = np.random.default_rng(0)
    first, second = 0.2 + 0.02 * rng.random((2, 8))
    first[:2] = 0.9
    less = learned(first, second, Scale(sign=-1))
    assert (less["learned_first"], less["learned_second"]) == (6, 8)
    assert less["given_first"] == pytest.approx(first[2:].mean())
    more = learned(1 - first, 1 - second)
    assert less["above"] == pytest.approx(1 - more["above"])
    assert less["p_learned"] == more["p_learned"]


def test_what_parts_the_seeds_of_a_pair_does_not_depend_on_whose_they_are():
    generator = np.random.default_rng(1)
    for _ in range(200):
        first, second = np.where(generator.random((2, 8)) < 0.7, 0.9, 0.1)
        first, second = first + 0.01 * generator.random(8), second + 0.01 * generator.random(8)
        turned = generator.random(8) < 0.5
        swapped = np.where(turned, second, first), np.where(turned, first, second)
        one, other = learned(first, second), learned(*swapped)
        assert not one or not other or one["above"] == pytest.approx(other["above"])


@pytest.mark.parametrize(("n", "within"), [(2, 1e-9), (5, 1e-9), (11, 1e-9), (60, 0.01)])
def test_the_sign_flip_test_is_that_of_scipy(n, within):
    """Of few seeds all signs are counted; of many the law of their mean is normal."""
    values = np.random.default_rng(n).normal(0.3, 1, n)
    found = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=20_000, rng=0
    )
    assert sign_flip(values) == sign_flip(-values) == pytest.approx(found.pvalue, abs=within)
    assert sign_flip(np.ones(6)) == 2 / 2**6
    assert sign_flip(np.zeros(6)) == 1.0
    assert math.isnan(sign_flip([0.1, math.nan]))


def test_exact_tests_and_intervals_are_those_of_scipy():
    for k, n in ((0, 12), (3, 12), (12, 12), (1, 6)):
        assert mcnemar(k, n - k) == pytest.approx(stats.binomtest(k, n).pvalue)
        if 0 < k < n:
            interval = stats.binomtest(k, n).proportion_ci()
            assert clopper_pearson(k, n) == pytest.approx((interval.low, interval.high))
    assert clopper_pearson(0, 12) == pytest.approx((0, 1 - 0.05 ** (1 / 12)))
    assert clopper_pearson(6, 6) == pytest.approx((0.05 ** (1 / 6), 1))
