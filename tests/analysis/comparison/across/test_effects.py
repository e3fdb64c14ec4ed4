"""Effects equal a paired t test over seeds of level minus base."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from analysis.comparison.across.effects import effects
from analysis.comparison.across.factors import Family, families
from analysis.comparison.compare import Comparison
from analysis.learning import apart
from analysis.statistics import MIN_SEEDS, sign_flip
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


def adjusted(p: Sequence[float]) -> NDArray[np.float64]:
    """Holm's p values, by their definition."""
    order = np.argsort(p)
    steps = np.sort(p) * np.arange(len(p), 0, -1)
    found = np.empty(len(p))
    found[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return found


@pytest.mark.parametrize("factor", LEVELS)
def test_effects_are_paired_t_tests(family: Family, factor: str) -> None:
    table = effects(family, factor)
    assert set(table["subject"]) == {*PARADIGMS, "lvml - soft"}
    assert len(table) == 2 * (len(PARADIGMS) + 1)
    p_values = []
    for row in table.to_dict("records"):
        values = differences(LEVELS[factor], row["metric"], row["subject"].split(" - "))
        test = stats.ttest_1samp(values, 0)
        assert (row["first"], row["second"]) == (LEVELS[factor], BASE)
        assert row["num_pairs"] == len(values)
        numbers = [row[name] for name in ("difference", "low", "high", "p")]
        expected = [values.mean(), *test.confidence_interval(0.95), test.pvalue]
        if apart(values) is not None:  # a seed of lvml diverged
            expected[1:] = [math.nan, math.nan, sign_flip(values)]
        p_values.append(expected[-1])
        assert numbers == pytest.approx(expected, nan_ok=True)
    np.testing.assert_allclose(table["p_holm"], adjusted(p_values), rtol=1e-9)
    decided = table["p_holm"] < 0.05
    assert list(table["verdict"] != "undecided") == list(decided)
    assert list(table["reason"] == "") == list(decided)


def test_what_changes_is_found_and_nothing_else(family: Family) -> None:
    table = pd.concat([effects(family, factor) for factor in family.factors])
    found = table[table["verdict"] != "undecided"]
    assert set(zip(found["first"], found["subject"], found["metric"], strict=True)) == {
        ("m=5", "lvml", "saif"),
        ("m=5", "lvml - soft", "saif"),
    }
    assert set(found["verdict"]) == {"better"}


def test_a_failed_seed_is_no_pair_and_a_diverged_one_counts(family: Family) -> None:
    sizes = effects(family, "m").groupby("subject")["num_pairs"].first().to_dict()
    assert sizes == {"hard": 7, "soft": 6, "lvml": 7, "lvml - soft": 6}
    table = effects(family, "depth").set_index(["subject", "metric"])
    assert set(table["num_pairs"]) == {7}
    assert table.loc[("lvml", "saif"), "difference"] < -0.05  # one of seven lost its 60 points


def test_fewer_than_six_common_seeds_decide_nothing(family: Family) -> None:
    base = family.base.comparison
    few = base.chosen[base.chosen["seed"] < MIN_SEEDS - 1]
    setting = replace(family.base, comparison=replace(base, chosen=few))
    table = effects(replace(family, base=setting), "m")
    assert set(table["num_pairs"]) == {MIN_SEEDS - 1}
    assert set(table["verdict"]) == {"undecided"}


def test_a_factor_that_never_varies_alone_has_no_effects(family: Family) -> None:
    assert effects(replace(family, others=()), "m").empty
