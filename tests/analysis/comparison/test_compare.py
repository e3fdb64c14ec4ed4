"""Equal compute, choice and summary: hand-made cases and what must never matter."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis.comparison.compare import Comparison, compare, comparisons
from analysis.comparison.option_warnings import STOPPED, barred, barred_sentences
from analysis.groups import paradigm_order
from study.cell import Budget
from study.results import Results, ResultsError
from tests.made_up.comparisons import BUDGET, NUM_CLASSES, SPLITS, make_cell, make_results, write


def _row(table: pd.DataFrame, split: str = "test", **where: object) -> pd.Series:
    table = table[table["split"] == split]
    for name, value in where.items():
        table = table[table[name] == value]
    assert len(table) == 1
    return table.iloc[0]


def _group(table: pd.DataFrame, paradigm: str) -> pd.Series:
    rows = table[table["paradigm"] == paradigm]
    assert len(rows) == 1
    return rows.iloc[0]


def _write_grid(results: Results) -> None:
    for paradigm in ("soft", "hard", "lvml", "hybrid"):
        for lr in (0.01, 0.1):
            for seed in range(3):
                write(
                    results,
                    make_cell(paradigm, lr, seed),
                    accuracy=0.7 + lr + 0.01 * seed,
                    saif=0.4 + 0.02 * seed + (0.1 if paradigm == "lvml" else 0),
                    status="diverged" if (paradigm, lr, seed) == ("soft", 0.1, 1) else "done",
                    points=(0.25, 0.5) if (paradigm, lr, seed) == ("soft", 0.1, 1) else None,
                )


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The table of a study of all paradigms."""
    results = make_results(tmp_path_factory.mktemp("grid"))
    _write_grid(results)
    return analysis.load(results)


@pytest.fixture(scope="module")
def compared(grid: pd.DataFrame) -> dict[float | None, Comparison]:
    """What the table gives without a budget, and at half of it."""
    found = {}
    for budget in (None, BUDGET / 2):
        (found[budget],) = compare(grid, budget)
    return found


# --- the cut


def test_without_a_budget_the_cut_is_where_every_done_cell_has_been(results: Results) -> None:
    write(results, make_cell("soft"), saif=0.8)
    write(results, make_cell("hard"), saif=0.8)
    write(results, make_cell("lvml"), status="diverged", points=(0.25,))
    write(results, make_cell("hybrid"), status="censored", points=(0.25, 0.5))
    table = analysis.load(results)
    lost = (table["paradigm"] == "hard") & (table["budget_fraction"] > 0.75)
    at_budget = analysis.equal_compute(table[~lost])
    reached = at_budget.drop_duplicates("cell_id").set_index("paradigm")["budget_fraction"]
    assert reached.to_dict() == {"soft": 0.75, "hard": 0.75, "lvml": 0.25, "hybrid": 0.5}
    assert _row(at_budget, paradigm="soft")["saif"] == pytest.approx(0.6)
    assert not _row(at_budget, paradigm="hybrid")["diverged"]


def test_a_row_that_is_there_twice_counts_once(
    grid: pd.DataFrame, compared: dict[float | None, Comparison]
) -> None:
    again = grid.sample(frac=0.3, random_state=1)
    again = again.assign(saif=again["saif"] + 1e-9, train_seconds=0.0, study="another")
    twice = pd.concat([grid, again]).sample(frac=1, random_state=2)
    once, (found,) = compared[None], compare(twice)
    for name in ("options", "choice", "summary", "paired"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(once, name))
    assert len(found.evaluations) == len(once.evaluations)
    other_order = compare(twice.sample(frac=1, random_state=3))[0].summary
    pd.testing.assert_frame_equal(other_order, found.summary, check_exact=True)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("accuracy", 0.7),
        ("saif", math.nan),
        ("compute_flops", BUDGET - 5),
        ("status", "censored"),
    ],
)
def test_rows_that_contradict_each_other_are_refused(
    results: Results, column: str, value: Any
) -> None:
    cell = write(results, make_cell())
    evaluations = analysis.load(results)
    at = (evaluations["split"] == "test") & (evaluations["budget_fraction"] == 1)
    twice = pd.concat([evaluations, evaluations[at].assign(**{column: value})])
    with pytest.raises(ResultsError, match=f"cell {cell.id} .*twice.* with unlike {column}"):
        analysis.equal_compute(twice)


def test_another_m_changes_nothing(results: Results) -> None:
    write(results, make_cell("soft"))
    alone = analysis.equal_compute(analysis.load(results))
    write(results, make_cell("soft", m=5))
    table = analysis.load(results)
    both = analysis.equal_compute(table[(table["m"] == 10) | (table["budget_fraction"] == 0.25)])
    pd.testing.assert_frame_equal(both[both["m"] == 10].reset_index(drop=True), alone)


def test_refuses_an_empty_table(results: Results) -> None:
    write(results, make_cell())
    with pytest.raises(ResultsError, match="no finished cell"):
        analysis.equal_compute(analysis.load(results, cell_ids=[]))


# --- diverged cells


def test_a_cell_that_diverged_before_the_cut_counts_as_nothing_learned(results: Results) -> None:
    write(results, make_cell("soft"))
    write(results, make_cell("hard"), accuracy=0.8, saif=0.6, status="diverged", points=(0.5,))
    row = _row(analysis.equal_compute(analysis.load(results)), paradigm="hard")
    assert row["diverged"]
    assert (row["saif"], row["accuracy"]) == (0.0, 1 / NUM_CLASSES)
    assert (row["last_saif"], row["last_accuracy"]) == pytest.approx((0.3, 0.4))
    assert row["budget_fraction"] == 0.5
    assert math.isnan(row["loss"])
    assert math.isnan(row["foreground_attention_mean"])


@pytest.mark.parametrize("budget", [BUDGET / 4, BUDGET / 2, BUDGET / 2 + 10])
def test_a_cell_that_diverged_after_the_cut_counts_with_its_numbers(
    results: Results, budget: float
) -> None:
    write(results, make_cell("soft"), saif=0.6)
    write(results, make_cell("hard"), saif=0.6, status="diverged", points=(0.25, 0.5))
    at_budget = analysis.equal_compute(analysis.load(results), budget)
    row, other = _row(at_budget, paradigm="hard"), _row(at_budget, paradigm="soft")
    assert not row["diverged"]
    assert row["saif"] == row["last_saif"] == other["saif"] > 0


def test_a_cell_that_diverged_before_any_evaluation_is_there_on_every_split(
    results: Results,
) -> None:
    write(results, make_cell("soft"))
    write(results, make_cell("hard"), status="diverged", points=())
    at_budget = analysis.equal_compute(analysis.load(results))
    hard = at_budget[at_budget["paradigm"] == "hard"]
    assert set(hard["split"]) == set(SPLITS)
    assert hard["diverged"].all()
    assert (hard["saif"] == 0).all()
    assert (hard["accuracy"] == 1 / NUM_CLASSES).all()
    assert hard["last_saif"].isna().all()
    assert hard["step"].isna().all()


def test_where_all_diverged_there_is_still_a_comparison(results: Results) -> None:
    write(results, make_cell("soft"), status="diverged", points=())
    (comparison,) = compare(analysis.load(results))
    assert comparison.cut == 1.0
    assert _group(comparison.summary, "soft")["num_diverged"] == 1
    assert _group(comparison.summary, "soft")["saif"] == 0


def test_what_a_diverged_cell_recorded_after_its_loss_was_lost_is_not_read(
    results: Results,
) -> None:
    write(results, make_cell("soft"))
    write(results, make_cell("hard"), saif=0.6, status="diverged")
    evaluations = analysis.load(results)
    lost = (evaluations["paradigm"] == "hard") & (evaluations["budget_fraction"] > 0.6)
    evaluations.loc[lost, "loss"] = math.nan
    row = _row(analysis.equal_compute(evaluations), paradigm="hard")
    assert row["diverged"]
    assert row["last_saif"] == pytest.approx(0.3)


# --- comparisons


CHANGES = {
    "n": {"n": 500},
    "architecture": {"architecture": "other"},
    "batch_size": {"batch_size": 32},
    "budget_amount": {"budget": Budget(2 * BUDGET)},
    "data_digest": {"data_digest": "f" * 16},
    "split_scheme": {"split": "shared-base"},
    "momentum": {"momentum": 0.5},
}
"""Column -> a setting in which cells are of another comparison."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> dict[str | None, pd.DataFrame]:
    """Column that is changed -> the table of one cell; None: of that without a change."""
    results = make_results(tmp_path_factory.mktemp("mixed"))
    cells = {None: write(results, make_cell("soft"), accuracy=0.5)}
    for number, (column, change) in enumerate(CHANGES.items(), 1):
        cells[column] = write(results, make_cell("soft", **change), accuracy=0.5 + 0.05 * number)
    table = analysis.load(results)
    return {column: table[table["cell_id"] == cell.id] for column, cell in cells.items()}


@pytest.mark.parametrize("column", CHANGES)
def test_comparisons_are_never_mixed(mixed: dict[str | None, pd.DataFrame], column: str) -> None:
    evaluations = pd.concat([mixed[None], mixed[column]])
    with pytest.raises(ResultsError, match=f"differ in {column}") as refused:
        analysis.equal_compute(evaluations)
    (advised,) = re.findall(r"(analysis[.\w]+)\(evaluations\)", str(refused.value))
    assert functools.reduce(getattr, advised.split(".")[1:], analysis) is comparisons
    parts = comparisons(evaluations)
    assert [part["comparison_id"].nunique() for part in parts] == [1, 1]
    assert sum(map(len, parts)) == len(evaluations)


def test_another_study_of_the_same_cells_is_the_same_comparison(results: Results) -> None:
    write(results, make_cell(seed=0), study="first")
    write(results, make_cell(seed=1), study="second")
    assert len(compare(analysis.load(results))) == 1


# --- choice


def test_the_best_seed_mean_wins_not_the_best_seed(results: Results) -> None:
    for lr, scores in {0.1: (0.80, 0.80), 0.2: (0.95, 0.60)}.items():
        for seed, accuracy in enumerate(scores):
            write(results, make_cell("soft", lr, seed), accuracy)
    choice = analysis.choose(analysis.equal_compute(analysis.load(results)))
    row = _group(choice, "soft")
    assert row["lr"] == row["last_lr"] == 0.1
    assert math.isnan(row["switch_point"])
    assert (row["num_seeds"], row["num_options"]) == (2, 2)
    assert row["validation_accuracy"] == pytest.approx(0.8)


def test_it_chooses_by_validation_alone(results: Results) -> None:
    high, low = {"accuracy": 0.9}, {"accuracy": 0.6}
    write(results, make_cell(lr=0.1), by_split={"validation": high, "test": low, "train": low})
    write(results, make_cell(lr=0.2), by_split={"validation": low, "test": high, "train": high})
    at_budget = analysis.equal_compute(analysis.load(results))
    choice = analysis.choose(at_budget)
    assert _group(choice, "soft")["lr"] == 0.1
    assert _group(analysis.summarise(at_budget, choice), "soft")["accuracy"] == 0.6


def test_ties_go_to_the_lower_loss(results: Results) -> None:
    # .1 + .2 and .3 differ in the last bit: equal sums of shares are a tie all the same
    for lr, scores, loss in ((0.1, (0.1, 0.2), 0.5), (0.2, (0.3, 0.0), 0.4)):
        for seed, accuracy in enumerate(scores):
            write(results, make_cell("soft", lr, seed), accuracy, loss=loss)
    choice = analysis.choose(analysis.equal_compute(analysis.load(results)))
    assert _group(choice, "soft")["lr"] == 0.2


def test_a_diverged_option_loses_a_tie(results: Results) -> None:
    write(results, make_cell(lr=0.1), accuracy=0.9, status="diverged", points=(0.5,))
    write(results, make_cell(lr=0.2), accuracy=1 / NUM_CLASSES)
    at_budget = analysis.equal_compute(analysis.load(results))
    assert _group(analysis.choose(at_budget), "soft")["lr"] == 0.2


def test_saif_may_choose(results: Results) -> None:
    write(results, make_cell(lr=0.1), accuracy=0.9, saif=0.1)
    write(results, make_cell(lr=0.2), accuracy=0.8, saif=0.7)
    at_budget = analysis.equal_compute(analysis.load(results))
    for select, lr in (("accuracy", 0.1), ("saif", 0.2)):
        assert _group(analysis.choose(at_budget, select), "soft")["lr"] == lr


def test_switch_point_and_last_rate_are_part_of_the_option(results: Results) -> None:
    for switch_point, last_lr, accuracy in ((0.3, 0.1, 0.7), (0.3, 0.2, 0.9), (0.6, 0.2, 0.8)):
        for seed in range(2):
            cell = make_cell("hybrid", seed=seed, switch_point=switch_point, last_lr=last_lr)
            write(results, cell, accuracy)
    row = _group(analysis.choose(analysis.equal_compute(analysis.load(results))), "hybrid")
    assert (row["lr"], row["last_lr"], row["switch_point"]) == (0.1, 0.2, 0.3)
    assert (row["num_options"], row["num_seeds"]) == (3, 2)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Two options of two seeds, and a third seed of the better, stopped at different points."""
    results = make_results(tmp_path_factory.mktemp("stopped"))
    for seed in range(2):
        write(results, make_cell(lr=0.1, seed=seed), accuracy=0.9)
        write(results, make_cell(lr=0.2, seed=seed), accuracy=0.6)
    done = analysis.load(results)
    thirds = []
    for seed, points in enumerate(((), (0.25,), (0.25, 0.5, 0.75)), 2):
        cell = make_cell(lr=0.1, seed=seed)
        write(results, cell, accuracy=0.9, status="censored", points=points)
        thirds.append(analysis.load(results, [cell.id]))
    return done, thirds


@pytest.mark.parametrize("budget", [None, BUDGET / 4, BUDGET])
def test_a_censored_seed_counts_wherever_it_was_stopped_and_never_lowers_the_cut(
    stopped: tuple[pd.DataFrame, list[pd.DataFrame]], budget: float | None
) -> None:
    done, thirds = stopped
    before = compare(done, budget)[0]
    assert _group(before.choice, "soft")["lr"] == 0.1
    for third in thirds:
        (comparison,) = compare(pd.concat([done, third]), budget)
        assert comparison.cut == before.cut
        assert comparison.options["num_censored"].tolist() == [1, 0]
        assert comparison.options["num_seeds"].tolist() == [3, 2]
        assert _group(comparison.choice, "soft")["lr"] == 0.2
        row = _group(comparison.summary, "soft")
        assert (row["num_seeds"], row["most_seeds"]) == (2, 3)
        assert row["accuracy"] == pytest.approx(0.6 * comparison.cut)
        assert (comparison.evaluations["status"] == "done").all()


def test_options_are_compared_over_the_same_seeds(results: Results) -> None:
    """As many seeds are not the same seeds: some are easier than others."""
    for lr, seeds, accuracy in ((0.1, (0, 1), 0.6), (0.2, (0, 2), 0.9)):
        for seed in seeds:
            write(results, make_cell("soft", lr, seed), accuracy=accuracy)
    write(results, make_cell("hard"))
    (comparison,) = compare(analysis.load(results))
    assert comparison.choice["paradigm"].tolist() == ["hard"]
    write(results, make_cell("soft", 0.1, 2), accuracy=0.6)
    (comparison,) = compare(analysis.load(results))
    assert _group(comparison.choice, "soft")["lr"] == 0.1


def test_seeds_of_options_that_cannot_be_chosen_bar_no_other(results: Results) -> None:
    write(results, make_cell("soft", 0.1, 0))
    for seed, status in ((0, "done"), (1, "censored")):
        points = None if status == "done" else (0.25, 0.5)
        write(results, make_cell("soft", 0.2, seed), status=status, points=points)
    (comparison,) = compare(analysis.load(results))
    assert barred(comparison.options).tolist() == ["", STOPPED]
    assert _group(comparison.choice, "soft")["lr"] == 0.1


def test_a_hybrid_that_has_not_switched_is_none(results: Results) -> None:
    for switch_point, accuracy in ((0.25, 0.6), (0.5, 0.9), (0.75, 0.9)):
        write(results, make_cell("hybrid", switch_point=switch_point), accuracy=accuracy)
    write(results, make_cell("soft"))
    evaluations = analysis.load(results)
    for budget, switched in ((BUDGET, 3), (BUDGET / 2, 1), (BUDGET / 4, 0)):
        (comparison,) = compare(evaluations, budget)
        hybrid = comparison.options[comparison.options["paradigm"] == "hybrid"]
        assert hybrid["num_unswitched"].tolist() == [0] * switched + [1] * (3 - switched)
        assert ("hybrid" in set(comparison.choice["paradigm"])) is (switched > 0)


@pytest.mark.parametrize(
    ("broken", "fact"),
    [
        ({"accuracy": math.nan}, "no known validation accuracy"),
        ({"status": "censored", "points": (0.5,)}, "stopped early"),
        (None, "lacks seeds"),
    ],
)
def test_why_an_option_cannot_be_chosen_is_said(
    results: Results, broken: dict[str, Any] | None, fact: str
) -> None:
    for seed in range(2):
        write(results, make_cell("soft", seed=seed))
        if seed == 0 or broken is not None:
            write(results, make_cell("soft", 0.2, seed), **(broken or {}))
    (comparison,) = compare(analysis.load(results))
    (said,) = barred_sentences(comparison.options, comparison.cells)
    assert "soft: 1 of 2 options" in said
    assert fact in said


def test_where_every_option_of_a_group_is_censored_the_others_stand(results: Results) -> None:
    write(results, make_cell("soft"), accuracy=0.8)
    alone = compare(analysis.load(results))[0].summary
    for lr in (0.1, 0.2):
        write(results, make_cell("hard", lr, 0), accuracy=0.9)
        write(results, make_cell("hard", lr, 1), accuracy=0.9, status="censored", points=(0.5,))
    summary = compare(analysis.load(results))[0].summary
    assert summary["paradigm"].tolist() == ["soft"]
    columns = ["saif", "accuracy", "cut", "compute_flops", "num_options"]
    pd.testing.assert_frame_equal(summary[columns], alone[columns])


def test_where_nothing_can_be_chosen_the_summary_is_empty(results: Results) -> None:
    write(results, make_cell(), status="censored", points=(0.25,))
    (comparison,) = compare(analysis.load(results))
    assert comparison.choice.empty
    assert comparison.summary.empty


# --- summary


def test_summary_by_hand(results: Results) -> None:
    for seed, saif in enumerate((0.4, 0.6)):
        write(results, make_cell("soft", seed=seed), accuracy=0.9, saif=saif, loss=0.2)
    at_budget = analysis.equal_compute(analysis.load(results))
    row = _group(analysis.summarise(at_budget, analysis.choose(at_budget)), "soft")
    assert (row["saif"], row["accuracy"], row["loss"]) == pytest.approx((0.5, 0.9, 0.2))
    assert (row["saif_low"], row["saif_high"]) == pytest.approx((0.006166, 0.993834), abs=1e-6)
    assert np.isnan([row["accuracy_low"], row["accuracy_high"]]).all()  # seeds that agree


def test_a_diverged_seed_counts_in_the_mean(results: Results) -> None:
    write(results, make_cell(seed=0), accuracy=0.75, saif=0.6)
    write(results, make_cell(seed=1), status="diverged", points=(0.5,))
    at_budget = analysis.equal_compute(analysis.load(results))
    row = _group(analysis.summarise(at_budget, analysis.choose(at_budget)), "soft")
    assert row["saif"] == pytest.approx(0.3)
    assert row["accuracy"] == pytest.approx((0.75 + 1 / NUM_CLASSES) / 2)
    assert (row["num_seeds"], row["num_diverged"]) == (2, 1)
    assert math.isnan(row["loss"])


def test_the_split_and_confidence_asked_for(results: Results) -> None:
    for seed in range(3):
        write(results, make_cell(seed=seed), by_split={"train": {"accuracy": 0.9 + 0.01 * seed}})
    at_budget = analysis.equal_compute(analysis.load(results))
    choice = analysis.choose(at_budget)
    wide = _group(analysis.summarise(at_budget, choice, "train", 0.99), "soft")
    narrow = _group(analysis.summarise(at_budget, choice, "train", 0.5), "soft")
    assert wide["accuracy"] == narrow["accuracy"] == pytest.approx(0.91)
    assert wide["accuracy_low"] < narrow["accuracy_low"] < 0.91


def test_paradigms_come_in_the_order_of_the_paper(
    compared: dict[float | None, Comparison],
) -> None:
    assert compared[None].summary["paradigm"].tolist() == ["hard", "soft", "hybrid", "lvml"]
    assert paradigm_order(["soft", "hard-sampled", "lvml", "hard", "soft"]) == [
        "hard",
        "hard-sampled",
        "soft",
        "lvml",
    ]


def test_a_comparison_keeps_the_evaluations_of_the_chosen_up_to_the_cut(
    compared: dict[float | None, Comparison],
) -> None:
    comparison = compared[BUDGET / 2]
    kept = comparison.evaluations
    assert comparison.cut == 0.5
    assert set(kept["budget_fraction"]) == {0.25, 0.5}
    assert set(kept.groupby("paradigm")["schedule"].nunique()) == {1}
