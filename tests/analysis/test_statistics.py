"""Statistics over seeds equal scipy's where it has them, and hand-made cases where not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from analysis.statistics import (
    MAX_SEEDS,
    bootstrap_counts,
    counted_mean,
    holm,
    iqm,
    paired_t,
    percentile_interval,
    probability_of_improvement,
    seeds_needed,
    t_interval,
)


def _repeat(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return np.repeat(values, counts)


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


# --- paired t


@pytest.mark.parametrize("n", [2, 3, 6, 20])
def test_paired_t_equals_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.normal(0.8, 0.1, n), rng.normal(0.75, 0.2, n)
    test = paired_t(a - b, 0.9)
    expected = stats.ttest_rel(a, b)
    interval = expected.confidence_interval(0.9)
    assert test.n == n
    assert test.p == pytest.approx(expected.pvalue, rel=1e-10)
    assert (test.low, test.high) == pytest.approx((interval.low, interval.high), rel=1e-10)
    assert test.mean == pytest.approx((a - b).mean(), abs=1e-15)
    assert test.std == pytest.approx((a - b).std(ddof=1), rel=1e-12)
    turned = paired_t(b - a, 0.9)
    assert (turned.mean, turned.low, turned.high) == (-test.mean, -test.high, -test.low)
    assert turned.p == test.p


@pytest.mark.parametrize("difference", [0.1, -0.3, 0.0, 1e6])
@pytest.mark.parametrize("n", [2, 6, 7])
def test_differences_that_do_not_vary_say_nothing(difference: float, n: int) -> None:
    rounding = 1e-15 * difference * np.arange(n)
    for differences in (np.full(n, difference), difference + rounding):
        test = paired_t(differences)
        assert test.mean == pytest.approx(difference, rel=1e-12)
        assert test.std == 0
        assert np.isnan([test.low, test.high, test.p]).all()
    apart = 0.1 + 1e-6 * np.arange(n)
    assert paired_t(apart).p < 0.05
    assert math.isnan(paired_t(apart, resolution=1e-5).p)


@pytest.mark.parametrize("differences", [[], [0.1], [0.1, math.nan], [math.nan] * 3])
def test_pairs_that_say_nothing_have_no_p(differences: list[float]) -> None:
    test = paired_t(differences)
    assert np.isnan([test.low, test.high, test.p, test.std]).all()
    assert test.n == len(differences)


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


# --- bootstrap


def test_counts_are_resamples_with_replacement() -> None:
    counts = bootstrap_counts(6, 20_000, 0)
    assert counts.shape == (20_000, 6)
    assert (counts.sum(axis=1) == 6).all()
    # each value: binomial of 6 draws with chance 1/6
    assert counts.mean(axis=0) == pytest.approx([1] * 6, abs=0.03)
    assert (counts == 0).mean() == pytest.approx((5 / 6) ** 6, abs=0.005)
    assert counts.var(axis=0) == pytest.approx([5 / 6] * 6, abs=0.05)


def test_counts_have_a_generator_of_their_own() -> None:
    np.testing.assert_array_equal(bootstrap_counts(5, 10, 3), bootstrap_counts(5, 10, 3))
    assert (bootstrap_counts(5, 10, 3) != bootstrap_counts(5, 10, 4)).any()
    generator = np.random.default_rng(3)
    first, second = bootstrap_counts(5, 10, generator), bootstrap_counts(5, 10, generator)
    np.testing.assert_array_equal(first, bootstrap_counts(5, 10, 3))
    assert (first != second).any()


def test_counts_of_nothing_and_of_one() -> None:
    assert bootstrap_counts(0, 4, 0).shape == (4, 0)
    assert bootstrap_counts(1, 4, 0).tolist() == [[1]] * 4
    for n, resamples in ((-1, 4), (3, 0)):
        with pytest.raises(ValueError, match="need n >= 0 and resamples >= 1"):
            bootstrap_counts(n, resamples, 0)


def test_percentile_interval_by_hand() -> None:
    # 0, .01, .. 1: the quantiles are the numbers themselves
    samples = np.random.default_rng(0).permutation(np.linspace(0, 1, 101))
    assert percentile_interval(samples, 0.9) == pytest.approx((0.05, 0.95))
    assert percentile_interval(samples, 0.5) == pytest.approx((0.25, 0.75))


def test_bootstrap_of_a_mean_equals_scipy() -> None:
    values = np.random.default_rng(2).normal(0.7, 0.1, 12)
    counts = bootstrap_counts(12, 40_000, 0)
    ours = percentile_interval(counted_mean(values, counts))
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=40_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.002)


def test_resamples_that_are_not_known_widen_the_interval_and_then_end_it() -> None:
    samples = np.linspace(0, 1, 1_001)
    low, high = percentile_interval(samples)
    few = samples.copy()
    few[500:510] = math.nan  # 1 %
    wide_low, wide_high = percentile_interval(few)
    assert 0 < wide_low < low
    assert high < wide_high < 1
    many = samples.copy()
    many[500:530] = math.nan  # 3 %, more than the tail of 2.5 %
    assert np.isnan(percentile_interval(many)).all()


@pytest.mark.parametrize("samples", [[], [0.5], [math.nan, math.nan]])
def test_too_few_resamples_have_no_interval(samples: list[float]) -> None:
    assert np.isnan(percentile_interval(samples)).all()


# --- interquartile mean


def test_iqm_by_hand() -> None:
    # of 6 values a quarter is 1.5: the lowest and half of the second go, and so at the top
    assert iqm([0.0, 0.2, 0.3, 0.5, 0.6, 9.0]) == pytest.approx((0.1 + 0.3 + 0.5 + 0.3) / 3)
    assert iqm([9.0, 0.5, 0.0]) == pytest.approx((0 + 4 * 0.5 + 9) / 6)
    assert iqm([0.2, 0.6]) == pytest.approx(0.4)
    assert iqm([0.3]) == 0.3


@pytest.mark.parametrize("n", [4, 8, 100])
def test_iqm_equals_the_trimmed_mean_of_scipy_where_four_divides_n(n: int) -> None:
    values = np.random.default_rng(n).normal(size=n)
    assert iqm(values) == pytest.approx(stats.trim_mean(values, 0.25), abs=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 11])
def test_iqm_of_any_n_is_the_trimmed_mean_of_every_value_four_times(n: int) -> None:
    values = np.random.default_rng(n).normal(size=n)
    expected = stats.trim_mean(np.repeat(values, 4), 0.25)
    assert iqm(values) == pytest.approx(expected, abs=1e-14)
    assert iqm(values, np.full(n, 3)) == pytest.approx(expected, abs=1e-14)


def test_one_wild_seed_hardly_moves_the_iqm() -> None:
    values = np.array([0.7, 0.71, 0.72, 0.73, 0.74, 0.75])
    wild = np.where(values == 0.75, 1e6, values)
    assert iqm(wild) == iqm(values)


def test_counts_stand_for_repeated_values() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=7).round(1)  # with ties
    other = rng.normal(size=5).round(1)
    counts, counts_other = bootstrap_counts(7, 50, 1), bootstrap_counts(5, 50, 2)
    means, middles = counted_mean(values, counts), iqm(values, counts)
    wins = probability_of_improvement(values, other, counts, counts_other)
    assert means.shape == middles.shape == wins.shape == (50,)
    for i in range(50):
        drawn, drawn_other = _repeat(values, counts[i]), _repeat(other, counts_other[i])
        assert means[i] == pytest.approx(drawn.mean(), abs=1e-14)
        assert middles[i] == pytest.approx(iqm(drawn), abs=1e-14)
        assert wins[i] == pytest.approx(probability_of_improvement(drawn, drawn_other), abs=1e-14)


def test_values_may_differ_from_resample_to_resample() -> None:
    rng = np.random.default_rng(6)
    values, counts = rng.normal(size=(20, 6)), bootstrap_counts(6, 20, 0)
    for statistic in (iqm, counted_mean):
        rows = [float(statistic(v, c)) for v, c in zip(values, counts, strict=True)]
        assert statistic(values, counts) == pytest.approx(rows, abs=1e-15)


@pytest.mark.parametrize("statistic", [iqm, counted_mean])
def test_a_value_that_is_not_known_matters_only_where_it_was_drawn(
    statistic: Callable[..., np.ndarray],
) -> None:
    values = [0.2, math.nan, 0.4]
    counts = [[2, 0, 1], [1, 1, 1], [0, 3, 0], [0, 0, 0]]
    result = statistic(values, counts)
    assert result[0] == statistic([0.2, 0.2, 0.4])
    assert np.isnan(result[1:]).all()
    assert math.isnan(statistic(values))
    assert math.isnan(statistic([]))


# --- probability of improvement


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 5), (6, 6), (20, 7)])
@pytest.mark.parametrize("digits", [1, 6])
def test_probability_of_improvement_is_the_u_of_scipy(n: int, k: int, digits: int) -> None:
    rng = np.random.default_rng(n + k)
    a, b = rng.normal(0.2, 1, n).round(digits), rng.normal(0, 1, k).round(digits)
    expected = stats.mannwhitneyu(a, b).statistic / (n * k)
    assert probability_of_improvement(a, b) == pytest.approx(expected, abs=1e-15)
    assert probability_of_improvement(b, a) == pytest.approx(1 - expected, abs=1e-15)


def test_probability_of_improvement_by_hand() -> None:
    # of the six pairs three are won, one is a tie
    assert probability_of_improvement([1, 3], [0, 1, 5]) == pytest.approx(3.5 / 6)
    assert probability_of_improvement([1, 1], [1, 1]) == 0.5
    assert probability_of_improvement([2, 3], [0, 1]) == 1.0


def test_a_run_that_is_not_known_or_absent_makes_the_probability_nan() -> None:
    assert math.isnan(probability_of_improvement([math.nan, 1.0], [0.0]))
    assert math.isnan(probability_of_improvement([1.0], [math.nan]))
    assert math.isnan(probability_of_improvement([], [1.0]))
    assert probability_of_improvement([math.nan, 1.0], [0.0], [0, 1]) == 1.0


# --- seeds needed


@pytest.mark.parametrize(
    ("effect", "level", "n"),
    # as G*Power gives for small, middling and large effects, two-sided, 80 %
    [(0.2, 0.05, 199), (0.5, 0.05, 34), (0.8, 0.05, 15)],
)
def test_seeds_needed_equals_the_tables(effect: float, level: float, n: int) -> None:
    assert seeds_needed(effect, 1.0, level) == n
    assert seeds_needed(-2 * effect, 2.0, level) == n


@pytest.mark.parametrize(("effect", "level"), [(0.7, 0.05), (1.5, 0.05 / 12), (3.0, 0.05)])
def test_seeds_needed_reach_the_power_and_one_fewer_does_not(effect: float, level: float) -> None:
    n = int(seeds_needed(effect, 1.0, level))
    rng = np.random.default_rng(0)

    def rejected(n: int) -> float:
        samples = rng.normal(effect, 1.0, (40_000, n))
        return float((stats.ttest_1samp(samples, 0, axis=1).pvalue < level).mean())

    assert rejected(n) > 0.79
    assert rejected(n - 1) < 0.81


def test_seeds_needed_fall_with_the_effect_and_rise_with_what_is_asked() -> None:
    effects = np.geomspace(0.02, 1e6, 60)
    needed = [seeds_needed(effect, 1.0, 0.05) for effect in effects]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] == 2.0
    levels = [seeds_needed(0.5, 1.0, 0.05 / k) for k in range(1, 13)]
    powers = [seeds_needed(0.5, 1.0, 0.05, power) for power in (0.5, 0.8, 0.9, 0.99)]
    assert levels == sorted(levels)
    assert powers == sorted(powers)
    assert len(set(levels)) > 6
    assert len(set(powers)) == 4


def test_an_effect_that_no_number_of_seeds_finds() -> None:
    assert seeds_needed(0.0, 1.0, 0.05) == math.inf
    assert seeds_needed(0.0, 0.0, 0.05) == math.inf
    # about (1.96 + .84)^2 / effect^2: just below and just above the cap
    border = 2.8016 / math.sqrt(MAX_SEEDS)
    assert seeds_needed(0.99 * border, 1.0, 0.05) == math.inf
    assert 0.97 * MAX_SEEDS < seeds_needed(1.01 * border, 1.0, 0.05) < MAX_SEEDS


def test_without_an_effect_a_test_rejects_at_its_level_on_both_sides() -> None:
    assert seeds_needed(1e-9, 1.0, 0.3, power=0.29) == 2.0
    assert seeds_needed(1e-9, 1.0, 0.3, power=0.31) == math.inf


def test_seeds_needed_at_the_borders() -> None:
    assert math.isnan(seeds_needed(0.1, 0.0, 0.05))
    assert seeds_needed(0.1, 1e-17, 0.05 / 12) == 2.0
    assert math.isnan(seeds_needed(math.nan, 1.0, 0.05))
    assert math.isnan(seeds_needed(0.1, math.nan, 0.05))
    for arguments in ((0.1, -1.0, 0.05), (0.1, 1.0, 0.0), (0.1, 1.0, 0.05, 1.0)):
        with pytest.raises(ValueError, match="must be"):
            seeds_needed(*arguments)
