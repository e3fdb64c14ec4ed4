"""Statistics over seeds equal scipy's where it has them, and hand-made cases where not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.rules.overstated import optimism
from analysis.rules.statistics import holm, t_interval

# --- t interval


@pytest.mark.parametrize(("n", "confidence"), [(2, 0.95), (100, 0.5), (100, 0.99)])
def test_equals_scipy(n, confidence):
    values = np.random.default_rng(n).normal(0.7, 0.1, n)
    expected = stats.t.interval(confidence, n - 1, loc=values.mean(), scale=stats.sem(values))
    found = t_interval(values, confidence)
    assert found == pytest.approx((values.mean(), *expected), rel=1e-12)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.25, 0.25, 0.25], [0.25] * 3),
        ([0.3], [0.3, math.nan, math.nan]),
        ([], [math.nan] * 3),
        ([0.3, math.nan, 0.4], [math.nan] * 3),
    ],
)
def test_what_does_not_vary_or_is_not_known(values, expected):
    assert t_interval(values) == pytest.approx(expected, nan_ok=True)


# --- Holm


@given(st.lists(st.sampled_from([0.0, 1e-9, 0.02, 0.3, 1.0]) | st.floats(0, 1)))
def test_holm_is_its_definition(p):
    """The k-th smallest of n is taken n - k times, no less than any smaller one, at most 1."""
    adjusted, multiplier = holm(p)
    ascending = sorted(p)
    for value, found, times in zip(p, adjusted, multiplier, strict=True):
        steps = [(len(p) - k) * each for k, each in enumerate(ascending) if each <= value]
        assert found == pytest.approx(min(max(steps), 1))
        assert times == len(p) - ascending.index(value)


# --- the optimism of a choice


def test_equal_options_mislead_as_in_a_simulation():
    generator = np.random.default_rng(6)
    n, options, studies = 6, 20, 4_000
    runs = generator.normal(size=(studies, options, n))
    best = runs[np.arange(studies), runs.mean(axis=2).argmax(axis=1)]
    p = stats.ttest_rel(best, generator.normal(size=(studies, n)), axis=1).pvalue
    found = optimism(n, 1, options)
    assert found.false_verdicts == pytest.approx((p < 0.05).mean(), abs=0.02)
    assert found.sds == pytest.approx(best.mean(), abs=0.01)
    other_way = optimism(n, options, 1)
    assert other_way.false_verdicts == pytest.approx(found.false_verdicts, rel=1e-12)
