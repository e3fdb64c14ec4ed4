"""Options are tuned on some seeds; all numbers are of the chosen ones on fresh seeds."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis.comparison.compare import Comparison, compare, compare_results
from analysis.comparison.report.answer import answer
from analysis.comparison.report.limits import limits, of_stages, tuned
from analysis.comparison.report.table_one import table_one_notes
from analysis.groups import paradigm_order
from analysis.overstated import optimism
from study.results import Results
from tests.made_up.comparisons import make_cell, write

TUNING, FRESH = (0, 1), (100, 101, 102, 103, 104, 105)
RATES = {0.1: 0.8, 0.3: 0.7}
"""Learning rate -> accuracy of the tuning seeds: the smaller is chosen."""

SCORES = {"hard": 0.5, "soft": 0.6, "lvml": 0.8}


def tune(
    results: Results,
    paradigm: str,
    seeds: Sequence[int] = TUNING,
    stage: str | None = "tune",
    **columns: str,
) -> None:
    for lr, accuracy in RATES.items():
        for seed in seeds:
            write(results, make_cell(paradigm, lr, seed), accuracy, 0.3, stage=stage, **columns)


def confirm(
    results: Results, paradigm: str, lr: float = 0.1, seeds: Sequence[int] = FRESH
) -> None:
    rng = np.random.default_rng(list(SCORES).index(paradigm))
    for seed in seeds:
        score = SCORES[paradigm] + rng.normal(0, 0.01)
        write(results, make_cell(paradigm, lr, seed), score, score - 0.1, stage="confirm")


def whole(results: Results) -> Results:
    for paradigm in SCORES:
        tune(results, paradigm)
        confirm(results, paradigm)
    return results


def only(results: Results) -> Comparison:
    (comparison,) = compare_results(results)
    return comparison


NUMBERS = ("summary", "paired", "chosen", "evaluations")


def test_numbers_are_those_of_the_confirming_cells_alone(results: Results) -> None:
    both = only(whole(results))
    table = analysis.load(results)
    (fresh,) = compare(table[table["stage"] == "confirm"])
    of_choice = ["num_options", "validation_accuracy", "validation_saif", "validation_loss"]
    for name in NUMBERS:
        one, other = (
            getattr(each, name).drop(columns=of_choice, errors="ignore").reset_index(drop=True)
            for each in (both, fresh)
        )
        pd.testing.assert_frame_equal(one, other)
    assert set(both.chosen["seed"]) == set(both.evaluations["seed"]) == set(FRESH)
    assert (both.paired["verdict"] == "better").any()


def test_options_and_choice_are_those_of_the_tuning_cells_alone(results: Results) -> None:
    both = only(whole(results))
    table = analysis.load(results)
    (early,) = compare(table[table["stage"] == "tune"])
    pd.testing.assert_frame_equal(both.options, early.options)
    pd.testing.assert_frame_equal(both.choice, early.choice)
    (told,) = tuned(both)
    assert re.findall(r"\d+", told) == ["6", "2", "6"]  # options, tuning seeds, fresh ones


def test_the_functions_one_by_one_say_the_same(results: Results) -> None:
    comparison = only(whole(results))
    at_budget = analysis.equal_compute(analysis.load(results))
    choice = analysis.choose(at_budget)
    pd.testing.assert_frame_equal(choice, comparison.choice)
    summary = comparison.summary.drop(columns="cut_at")
    pd.testing.assert_frame_equal(analysis.summarise(at_budget, choice), summary)


def test_a_group_that_is_not_confirmed_yet_has_no_numbers_and_that_is_said(
    results: Results,
) -> None:
    for paradigm in SCORES:
        tune(results, paradigm)
    confirm(results, "hard")
    confirm(results, "soft")
    confirm(results, "lvml", lr=0.3)  # another option than the chosen one
    comparison = only(results)
    assert comparison.unconfirmed == ["lvml"]
    assert comparison.summary["paradigm"].tolist() == ["hard", "soft"]
    rows = comparison.paired[comparison.paired["first"] == "lvml"]
    assert (rows["num_pairs"] == 0).all()
    assert rows["reason"].str.contains("lvml is not confirmed").all()
    assert "lvml" not in " ".join(answer([comparison]))


def test_where_no_group_is_confirmed_there_are_no_numbers(results: Results) -> None:
    for paradigm in SCORES:
        tune(results, paradigm)
        confirm(results, paradigm, lr=0.3)
    comparison = only(results)
    assert comparison.summary.empty
    assert comparison.unconfirmed == paradigm_order(SCORES)
    assert (comparison.paired["verdict"] == "undecided").all()
    assert any(text.startswith("Not confirmed yet") for text in limits(comparison))


def test_a_group_without_tuning_cells_was_given_its_option(results: Results) -> None:
    tune(results, "soft")
    confirm(results, "soft")
    confirm(results, "lvml")
    comparison = only(results)
    assert comparison.summary["num_options"].tolist() == [2, 1]
    assert comparison.unconfirmed == []
    confirm(results, "lvml", lr=0.3)
    assert "lvml was not tuned" in " ".join(of_stages(only(results)))


@pytest.mark.parametrize("stage", ["tune", None])  # None: of a study of one stage
def test_tuning_alone_is_one_stage_and_its_optimism_is_said(
    results: Results, stage: str | None
) -> None:
    for paradigm in SCORES:
        tune(results, paradigm, range(6), stage)
    write(results, make_cell("soft", 0.5, 0), 0.2, stage=stage)  # lacks seeds
    comparison = only(results)
    assert not comparison.staged
    assert (comparison.summary["num_seeds"] == 6).all()
    (text,) = of_stages(comparison)
    assert f"best of 3 equal options looks {optimism(6, 3, 2).sds:.1f} standard" in text
    assert text in limits(comparison)
    assert any(note.endswith(text) for note in table_one_notes([comparison]))


def test_one_option_a_group_needs_no_word(results: Results) -> None:
    for seed in range(6):
        write(results, make_cell("soft", 0.1, seed))
    assert [*tuned(only(results)), *of_stages(only(results))] == []


def test_seeds_that_are_missing_are_those_of_the_second_stage(results: Results) -> None:
    tune(results, "soft", seeds=range(8))
    confirm(results, "soft", seeds=FRESH[:4])
    tune(results, "hard")
    confirm(results, "hard")
    found = only(results).summary.set_index("paradigm")
    assert (found["num_seeds"]["soft"], found["most_seeds"]["soft"]) == (4, 6)
