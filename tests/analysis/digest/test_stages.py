"""Options are tuned on some seeds; all numbers are of the chosen ones on fresh seeds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis.digest.compare import compare
from analysis.page.comparisons import COMPARISONS, section_of
from analysis.page.sentences import answer, said
from analysis.rules.stages import cells_left
from study.results import Results
from tests.made_up.comparisons import compared, make_cell, write

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
    results: Results,
    paradigm: str,
    lr: float = 0.1,
    seeds: Sequence[int] = FRESH,
    **columns: Any,
) -> None:
    rng = np.random.default_rng(list(SCORES).index(paradigm))
    for seed in seeds:
        score = SCORES[paradigm] + rng.normal(0, 0.01)
        cell = make_cell(paradigm, lr, seed)
        write(results, cell, score, score - 0.1, stage="confirm", **columns)


def whole(results: Results) -> Results:
    for paradigm in SCORES:
        tune(results, paradigm)
        confirm(results, paradigm)
    return results


def test_options_are_those_of_the_tuning_cells_and_numbers_of_the_confirming_ones(
    results,
):
    """The functions one by one say the same."""
    both = compared(whole(results))
    table = analysis.load(results)
    early, fresh = (compare(table[table["stage"] == stage])[0] for stage in ("tune", "confirm"))
    of_choice = ["num_options", "validation_accuracy", "validation_saif", "validation_loss"]
    for name in ("summary", "paired", "chosen", "evaluations"):
        tables = [getattr(each, name).reset_index(drop=True) for each in (both, fresh)]
        kept = tables[0].columns.difference(of_choice)
        pd.testing.assert_frame_equal(*(table[kept] for table in tables))
    for name in ("options", "choice"):
        pd.testing.assert_frame_equal(getattr(both, name), getattr(early, name))
    assert set(both.evaluations["seed"]) == set(FRESH)
    assert (both.paired["verdict"] == "better").any()
    at_budget = analysis.equal_compute(table)
    choice = analysis.choose(at_budget)
    pd.testing.assert_frame_equal(choice, both.choice)
    summary = both.summary.drop(columns="cut_at")
    pd.testing.assert_frame_equal(analysis.summarise(at_budget, choice), summary)


@pytest.mark.parametrize("confirmed", [("hard", "soft"), ()])
def test_a_group_that_is_not_confirmed_yet_has_no_numbers_and_that_is_said(results, confirmed):
    for paradigm in SCORES:
        tune(results, paradigm)
        # Else another option than the chosen one.
        confirm(results, paradigm, lr=0.1 if paradigm in confirmed else 0.3)
    comparison = compared(results)
    assert comparison.unconfirmed == [name for name in SCORES if name not in confirmed]
    assert comparison.summary["paradigm"].tolist() == [*confirmed]
    rows = comparison.paired[comparison.paired["first"] == "lvml"]
    assert set(zip(rows["num_pairs"], rows["verdict"], strict=True)) == {(0, "undecided")}
    assert rows["reason"].str.contains("lvml.* not confirmed").all()
    assert "lvml" not in " ".join(answer([comparison]))
    assert "Run the study again" in " ".join(said("limits", comparison))
    earlier = compare(analysis.load(results), budget=0.9 * comparison.reach)[0]
    assert "Run the study again" not in " ".join(
        said("limits", earlier)
    )  # it would change nothing


def test_a_half_finished_study_says_so(results):
    """Six seeds of each were planned: hard has ended, soft lost one of four, lvml has none."""
    tune(results, "lvml")
    confirm(results, "hard", planned_seeds=6)
    confirm(results, "soft", seeds=FRESH[1:4], planned_seeds=6)
    confirm(results, "soft", seeds=FRESH[:1], planned_seeds=6, status="failed", points=())
    found = section_of(compared(results))
    assert COMPARISONS.answer([found])[-1] == "8 planned cells are left."
    assert re.findall("[36](?: of 6)?$", found.text(), re.MULTILINE) == ["6", "3 of 6"]
    for picture in found.pictures:
        if picture.name.startswith("compute"):
            assert "n: hard 6, soft 3 of 6;" in picture.caption
            (legend,) = picture.figure.legends
            assert [text.get_text() for text in legend.texts] == ["hard (n=6)", "soft (n=3 of 6)"]
    other_options = found.subject.choice.assign(lr=0.3)  # as at another cut
    assert cells_left(found.subject.cells, other_options) == 8


def test_seeds_that_one_paradigm_adds_are_left_of_it_alone(results):
    """Two seeds of each have ended; then four are planned of soft, and three have ended."""
    for paradigm in ("hard", "soft"):
        confirm(results, paradigm, seeds=FRESH[:2], planned_seeds=2)
    confirm(results, "soft", seeds=FRESH[2:3], planned_seeds=4)
    found = compared(results)
    assert cells_left(found.cells, found.choice) == 1
    tune(results, "lvml")
    found = compared(results)
    assert cells_left(found.cells, found.choice) == 1 + 4


def test_a_group_without_tuning_cells_was_given_its_option(results):
    tune(results, "soft", seeds=range(8))
    confirm(results, "soft", seeds=FRESH[:4])
    confirm(results, "lvml")
    comparison = compared(results)
    # Seeds that are missing are those of the second stage.
    counts = comparison.summary[["num_options", "num_seeds", "most_seeds"]]
    assert counts.to_numpy().tolist() == [[2, 4, 6], [1, 6, 6]]
    assert comparison.unconfirmed == []
    confirm(results, "lvml", lr=0.3)
    assert "lvml was not tuned" in " ".join(said("stages", compared(results)))
