"""The t interval equals scipy's, and hand-made cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from analysis.statistics import t_interval


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [2, 3, 12, 100])
def test_equals_scipy(n: int, confidence: float) -> None:
    values = np.random.default_rng(n).normal(0.7, 0.1, n)
    mean, low, high = t_interval(values, confidence)
    expected = stats.t.interval(confidence, n - 1, loc=values.mean(), scale=stats.sem(values))
    assert mean == pytest.approx(values.mean(), abs=1e-15)
    assert (low, high) == pytest.approx(expected, rel=1e-12)


def test_by_hand() -> None:
    # n=2: s = |a - b| / sqrt 2, standard error = |a - b| / 2 = 0.1, t_1(.975) = 12.7062
    assert t_interval([0.4, 0.6]) == pytest.approx((0.5, 0.5 - 1.27062, 0.5 + 1.27062), abs=1e-5)


def test_seeds_that_agree_have_an_interval_of_no_width() -> None:
    assert t_interval([0.25, 0.25, 0.25]) == (0.25, 0.25, 0.25)


def test_one_seed_has_no_interval() -> None:
    mean, low, high = t_interval([0.3])
    assert mean == 0.3
    assert math.isnan(low)
    assert math.isnan(high)


@pytest.mark.parametrize("values", [[], [0.3, math.nan], [0.3, math.nan, 0.4]])
def test_what_is_not_known_is_nan(values: list[float]) -> None:
    assert all(math.isnan(number) for number in t_interval(values))


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95.0, math.nan])
def test_refuses_a_confidence_out_of_range(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence must be in"):
        t_interval([0.1, 0.2], confidence)


def test_refuses_a_table() -> None:
    with pytest.raises(ValueError, match="one axis"):
        t_interval(np.zeros((2, 2)))
