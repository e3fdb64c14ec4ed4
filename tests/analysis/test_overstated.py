"""What is said of overstated numbers is what simulations give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from analysis.overstated import optimism


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
