"""Effects equal a paired t test over seeds of level minus base."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from analysis.digest.across.effects import effects
from analysis.digest.across.factors import Family, families
from analysis.digest.compare import Comparison
from analysis.rules.learning import apart
from analysis.rules.statistics import holm
from tests.made_up.settings import BASE, PARADIGMS, scores

LEVELS = {"m": "m=5", "depth": "depth 1"}


@pytest.fixture
def family(compared: list[Comparison]) -> Family:
    (family,) = families(compared)
    return family


def differences(level: str, metric: str, paradigms: Sequence[str]) -> NDArray[np.float64]:
    """Of a level to the base, one a seed that all have; of two paradigms of the first's lead."""
    values = sum(
        sign * (scores(level, name) - scores(BASE, name))
        for sign, name in zip((1, -1), paradigms, strict=False)
    )
    values = values[:, ("saif", "accuracy").index(metric)]
    return values[~np.isnan(values)]


@pytest.mark.parametrize("factor", LEVELS)
def test_effects_are_paired_t_tests(family: Family, factor: str) -> None:
    """A failed seed is no pair, and a diverged one counts."""
    table = effects(family, factor)
    subjects = [*PARADIGMS, "lvml - soft"]
    assert {*zip(table["subject"], table["metric"], strict=True)} == {
        *itertools.product(subjects, ("saif", "accuracy"))
    }
    for row in table.to_dict("records"):
        values = differences(LEVELS[factor], row["metric"], row["subject"].split(" - "))
        test = stats.ttest_1samp(values, 0)
        numbers = [row[name] for name in ("num_pairs", "difference", "low", "high", "p")]
        expected = [len(values), values.mean(), *test.confidence_interval(0.95), test.pvalue]
        if apart(values) is not None:  # a seed of lvml diverged
            expected[2:4] = [math.nan, math.nan]
        assert numbers == pytest.approx(expected, nan_ok=True)
        assert (row["first"], row["second"]) == (LEVELS[factor], BASE)
        decided = row["p_holm"] < 0.05
        assert decided == (row["verdict"] != "undecided") == (row["reason"] == "")
        # What changes is found and nothing else.
        gains = factor == "m" and row["subject"] in ("lvml", "lvml - soft")
        assert (row["verdict"] == "better") == (gains and row["metric"] == "saif")
    np.testing.assert_allclose(table["p_holm"], holm(table["p"])[0])
