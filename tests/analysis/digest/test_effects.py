"""Effects equal a paired t test over seeds of level minus base; which pairs stand side by side."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from analysis.digest.compare import Comparison, compare_results
from analysis.digest.factors.effects import effects, pairs
from analysis.rules.learning import apart
from analysis.rules.statistics import holm
from tests.made_up.settings import BASE, PARADIGMS, scores, write_settings

LEVELS = {"m": "m=5", "depth": "depth 1"}


def differences(level: str, metric: str, paradigms: Sequence[str]) -> NDArray[np.float64]:
    """Of a level to the base, one a seed that all have; of two paradigms of the first's lead."""
    values = sum(
        sign * (scores(level, name) - scores(BASE, name))
        for sign, name in zip((1, -1), paradigms, strict=False)
    )
    values = values[:, ("saif", "accuracy").index(metric)]
    return values[~np.isnan(values)]


def test_effects_are_paired_t_tests(results):
    """A failed seed is no pair, and a diverged one counts."""
    write_settings(results)
    found = effects(compare_results(results))
    subjects = [*PARADIGMS, "lvml - soft"]
    cases = itertools.product(LEVELS, subjects, ("saif", "accuracy"))
    assert {*zip(found["factor"], found["subject"], found["metric"], strict=True)} == {*cases}
    for row in found.to_dict("records"):
        level = LEVELS[row["factor"]]
        values = differences(level, row["metric"], row["subject"].split(" - "))
        test = stats.ttest_1samp(values, 0)
        numbers = [row[name] for name in ("num_pairs", "difference", "low", "high", "p")]
        expected = [len(values), values.mean(), *test.confidence_interval(0.95), test.pvalue]
        if apart(values) is not None:  # a seed of lvml diverged
            expected[2:4] = [math.nan, math.nan]
        assert numbers == pytest.approx(expected, nan_ok=True)
        assert (row["first"], row["second"]) == (level, BASE)
        decided = row["p_holm"] < 0.05
        assert decided == (row["verdict"] != "undecided") == (row["reason"] == "")
        # What changes is found and nothing else.
        gains = row["factor"] == "m" and row["subject"] in ("lvml", "lvml - soft")
        assert (row["verdict"] == "better") == (gains and row["metric"] == "saif")
    for _, rows in found.groupby("factor"):
        np.testing.assert_allclose(rows["p_holm"], holm(rows["p"])[0])


def pairs_of(paradigms: str) -> Comparison:
    """A comparison of every pair of paradigms, the later minus the earlier."""
    rows = [pair[::-1] for pair in itertools.combinations(paradigms.split(), 2)]
    paired = pd.DataFrame(rows, columns=["first", "second"])
    return SimpleNamespace(paired=paired)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["hard soft lvml"], "lvml soft, lvml hard, soft hard"),
        ([], ""),
        (["yours mine lvml"], "lvml mine, lvml yours, mine yours"),
        # Sampled hard attention stands for the exact one where no setting has that.
        (["hard-sampled soft lvml"], "lvml soft, lvml hard-sampled, soft hard-sampled"),
        (["hard soft", "hard-sampled soft"], "soft hard"),
        (["soft lvml lvml-sampled"], "lvml-sampled soft, lvml soft, lvml-sampled lvml"),
    ],
)
def test_pairs_are_against_soft_and_hard_and_sampled_ones_against_the_exact(settings, expected):
    assert ", ".join(map(" ".join, pairs(map(pairs_of, settings)))) == expected
