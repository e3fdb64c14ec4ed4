"""What is said of overstated numbers is what simulations give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from analysis.overstated import exaggeration, optimism

LEVEL = 0.05 / 12
"""Of the smallest of twelve tests, as of four paradigms."""


def test_equal_options_mislead_as_in_a_simulation() -> None:
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


def test_one_option_each_does_not_mislead() -> None:
    found = optimism(12, 1, 1)
    assert found.false_verdicts == pytest.approx(0.05, abs=0.001)
    assert found.sds == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match="num_seeds"):
        optimism(1, 1, 1)


def test_decided_differences_are_overstated() -> None:
    assert exaggeration(6, LEVEL) == pytest.approx(1.77, abs=0.01)  # a referee's simulation
    assert (
        exaggeration(6, LEVEL)
        > exaggeration(12, LEVEL)
        > exaggeration(24, LEVEL)
        > exaggeration(100, LEVEL)
    )
    assert exaggeration(100, LEVEL) == pytest.approx(1, abs=0.001)
    generator = np.random.default_rng(7)
    pairs = generator.normal(1, 1, (20_000, 6))
    decided = pairs[stats.ttest_1samp(pairs, 0, axis=1).pvalue < 0.05]
    assert exaggeration(6, 0.05, 1.0) == pytest.approx(abs(decided.mean(axis=1)).mean(), abs=0.01)
    with pytest.raises(ValueError, match="effect"):
        exaggeration(6, 0.05, 0.0)
