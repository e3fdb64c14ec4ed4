"""Statistics over seeds equal scipy's where it has them, and hand-made cases where not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from analysis.statistics import holm, t_interval

# --- t interval


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


# --- Holm


def test_holm_by_hand() -> None:
    # Sorted: .01 x 4 = .04, .02 x 3 = .06, .03 x 2 = .06, .04 x 1 = .04, lifted to .06
    adjusted, multiplier = holm([0.03, 0.01, 0.04, 0.02])
    assert adjusted == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert multiplier.tolist() == [2, 4, 1, 3]


def test_holm_never_exceeds_one() -> None:
    adjusted, _ = holm([0.6, 0.9, 0.02])
    assert adjusted == pytest.approx([1.0, 1.0, 0.06])


def test_a_p_value_that_is_not_known_is_no_test() -> None:
    adjusted, multiplier = holm([math.nan, 0.01, math.nan, 0.04])
    np.testing.assert_allclose(adjusted, [math.nan, 0.02, math.nan, 0.04])
    np.testing.assert_array_equal(multiplier, [math.nan, 2, math.nan, 1])
    assert np.isnan(holm([math.nan])).all()
    assert holm([])[0].size == 0


def test_equal_p_values_are_adjusted_alike() -> None:
    adjusted, multiplier = holm([0.02, 0.5, 0.02])
    assert adjusted == pytest.approx([0.06, 0.5, 0.06])
    assert multiplier.tolist() == [3, 1, 3]


def test_holm_lies_between_no_adjustment_and_bonferroni_in_any_order() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 0.2, 12)
    adjusted, _ = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(12 * p, 1)).all()
    order = rng.permutation(12)
    np.testing.assert_array_equal(holm(p[order])[0], adjusted[order])
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()


def test_holm_holds_its_promise() -> None:
    # 5 true hypotheses among 6: at least one false rejection in at most 5 % of the families
    rng = np.random.default_rng(1)
    families = rng.uniform(size=(4_000, 6))
    families[:, 0] = 1e-9
    wrong = [(holm(p)[0][1:] < 0.05).any() for p in families]
    assert 0.03 < np.mean(wrong) < 0.06


@pytest.mark.parametrize("p", [[-0.1], [0.5, 1.1]])
def test_holm_refuses_what_is_no_probability(p: list[float]) -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        holm(p)
