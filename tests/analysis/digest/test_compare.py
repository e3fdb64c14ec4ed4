"""Equal compute and choice: hand-made cases and what must never matter."""

from __future__ import annotations

import itertools
import math

import pandas as pd
import pytest

import analysis
from analysis.digest.compare import compare, compare_results
from study.results import ResultsError
from tests.made_up.comparisons import (
    BUDGET,
    NUM_CLASSES,
    SPLITS,
    at_the_cut,
    compared,
    make_cell,
    write,
    write_seeds,
)


def _of(table: pd.DataFrame, paradigm: str) -> pd.Series:
    """The only row of a paradigm, of tables by split on the test split."""
    rows = table[table["paradigm"] == paradigm]
    if len(rows) > 1:
        rows = rows[rows["split"] == "test"]
    assert len(rows) == 1
    return rows.iloc[0]


# --- the cut


def test_without_a_budget_the_cut_is_where_every_done_cell_has_been(results):
    ended = {"soft": "done", "hard": "done", "lvml": "diverged", "hybrid": "censored"}
    points = {"lvml": (0.25,), "hybrid": (0.25, 0.5), "hard": (0.25, 0.5, 0.75)}
    for paradigm, status in ended.items():
        cell = make_cell(paradigm)
        write(results, cell, saif=0.8, status=status, points=points.get(paradigm))
    rows = at_the_cut(results)
    reached = rows.drop_duplicates("cell_id").set_index("paradigm")["budget_fraction"]
    assert reached.to_dict() == {"soft": 0.75, "hard": 0.75, "lvml": 0.25, "hybrid": 0.5}
    assert _of(rows, "soft")["saif"] == pytest.approx(0.6)
    assert not _of(rows, "hybrid")["diverged"]


def test_a_row_that_is_there_twice_counts_once_in_any_order(results):
    write_seeds(results, {"soft": 0.4, "hard": 0.5}, 3)
    table = analysis.load(results)
    again = table.sample(frac=0.3, random_state=1)
    again = again.assign(saif=again["saif"] + 1e-9, train_seconds=0.0, study="another")
    orders = (table, pd.concat([again, table[::-1]]), pd.concat([table, again]))
    once, one, two = (compare(each)[0] for each in orders)
    assert len(one.evaluations) == len(once.evaluations)
    for name in ("options", "choice", "summary", "paired"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(once, name))
        pd.testing.assert_frame_equal(getattr(two, name), getattr(one, name), check_exact=True)


@pytest.mark.parametrize(("column", "value"), [("saif", math.nan), ("status", "censored")])
def test_rows_that_contradict_each_other_are_refused(results, column, value):
    cell = write(results, make_cell())
    evaluations = analysis.load(results)
    at = (evaluations["split"] == "test") & (evaluations["budget_fraction"] == 1)
    twice = pd.concat([evaluations, evaluations[at].assign(**{column: value})])
    with pytest.raises(ResultsError, match=f"cell {cell.id} .*twice.* with different {column}"):
        analysis.equal_compute(twice)


# --- diverged cells


@pytest.mark.parametrize("points", [(), (0.25, 0.5), (0.25, 0.5, 0.75)])
@pytest.mark.parametrize(("budget", "at"), [(None, 1), (BUDGET / 2 + 10, 0.5)])
def test_a_diverged_cell_counts_with_its_numbers_up_to_its_last_and_then_as_nothing_learned(
    results, points, budget, at
):
    """On every split; of its last evaluation the loss was lost."""
    write(results, make_cell("soft"), 0.8, 0.6)
    write(results, make_cell("hard"), 0.8, 0.6, status="diverged", points=points)
    evaluations = analysis.load(results)
    lost = evaluations["paradigm"].eq("hard") & evaluations["budget_fraction"].gt(0.6)
    evaluations.loc[lost, "loss"] = math.nan
    rows = analysis.equal_compute(evaluations, budget)
    hard = rows[rows["paradigm"] == "hard"]
    assert sorted(hard["split"]) == sorted(SPLITS)
    ended = at == 1 or not points
    assert set(hard["diverged"]) == {ended}
    last = pytest.approx(0.6 * 0.5 if points else math.nan, nan_ok=True)
    assert _of(rows, "hard")["last_saif"] == last
    counted = [0, 1 / NUM_CLASSES] if ended else [0.6 * at, 0.8 * at]
    for row in hard[["saif", "accuracy"]].to_numpy(float):
        assert row == pytest.approx(counted)
    assert hard[["loss", "foreground_attention_mean"]].isna().all(axis=None) == ended


# --- comparisons


def test_comparisons_are_never_mixed(results):
    """What the refusal advises parts them."""
    for settings in ({}, {"split": "shared-base"}):
        write(results, make_cell(**settings))
    evaluations = analysis.load(results)
    told = r"\[disjoint bases\] and .*\[shared-base bases\] .*analysis\.comparisons\(evaluations\)"
    with pytest.raises(ResultsError, match=told):
        analysis.equal_compute(evaluations)
    parts = analysis.comparisons(evaluations)
    assert [part["comparison_id"].nunique() for part in parts] == [1, 1]


def test_a_comparison_whose_cells_all_failed_is_left_out(results):
    write(results, make_cell(m=5), status="failed", points=())
    assert compare_results(results) == []
    write(results, make_cell())
    assert compared(results).m == 10


# --- choice


LOW, HIGH = {"accuracy": 0.6}, {"accuracy": 0.9}
LOST = {"status": "diverged", "points": (0.5,)}


@pytest.mark.parametrize("seeds_of", [
    # Not the best seed.
    {0.1: [{"accuracy": 0.8}] * 2, 0.2: [{"accuracy": 0.95}, LOW]},
    # By validation alone.
    {0.1: [{"by_split": {"validation": HIGH, "test": LOW, "train": LOW}}],
     0.2: [{"by_split": {"validation": LOW, "test": HIGH, "train": HIGH}}]},
    # Ties go to the lower loss; .1 + .2 and .3 differ in the last bit.
    {0.1: [{"accuracy": 0.3, "loss": 0.4}, {"accuracy": 0.0, "loss": 0.4}],
     0.2: [{"accuracy": 0.1, "loss": 0.5}, {"accuracy": 0.2, "loss": 0.5}]},
    # A diverged option loses a tie, and counts as a guess.
    {0.1: [{"accuracy": 1 / NUM_CLASSES}], 0.2: [HIGH | LOST]},
    # A stopped one cannot be chosen, and bars no other by the seeds that it has.
    {0.1: [LOW], 0.2: [HIGH, HIGH | {"status": "censored", "points": (0.25,)}]},
    # Nor one that lacks a seed, which may be an easy one, or that is nowhere known.
    {0.1: [LOW] * 2, 0.2: [HIGH]},
    {0.1: [LOW], 0.2: [{"accuracy": math.nan}]},
], ids=itertools.count())  # fmt: skip
def test_what_is_chosen(results, seeds_of):
    for lr, seeds in seeds_of.items():
        for seed, scores in enumerate(seeds):
            write(results, make_cell("soft", lr, seed), **scores)
    row = _of(analysis.choose(at_the_cut(results)), "soft")
    assert row["lr"] == row["last_lr"] == 0.1
    assert (row["num_seeds"], row["num_options"]) == (len(seeds_of[0.1]), 2)
    assert math.isnan(row["switch_point"])


@pytest.mark.parametrize(("select", "best"), [("accuracy", (0.2, 0.3)), ("saif", (0.1, 0.6))])
def test_an_option_is_all_rates_and_the_switch_point_and_saif_may_choose(results, select, best):
    options = {(0.1, 0.3): (0.7, 0.2), (0.2, 0.3): (0.9, 0.3), (0.1, 0.6): (0.8, 0.6)}
    for (last_lr, switch_point), scores in options.items():
        cell = make_cell("hybrid", last_lr=last_lr, switch_point=switch_point)
        write(results, cell, *scores)
    row = _of(analysis.choose(at_the_cut(results), select), "hybrid")
    assert (row["lr"], row["last_lr"], row["switch_point"]) == (0.1, *best)
    assert row["num_options"] == 3


@pytest.mark.parametrize("points", [(), (0.25, 0.5, 0.75)])
def test_a_censored_seed_counts_wherever_it_was_stopped_and_never_lowers_the_cut(results, points):
    for lr, accuracy in ((0.1, 0.9), (0.2, 0.6)):
        for seed in range(2):
            write(results, make_cell(lr=lr, seed=seed), accuracy)
    third = write(results, make_cell(lr=0.1, seed=2), 0.9, status="censored", points=points)
    table = analysis.load(results)
    for budget in (None, BUDGET / 4):
        (before,) = compare(table[table["cell_id"] != third.id], budget)
        (comparison,) = compare(table, budget)
        assert [each.choice["lr"].item() for each in (before, comparison)] == [0.1, 0.2]
        assert comparison.cut == before.cut
        counts = comparison.options[["num_censored", "num_seeds"]].to_numpy().tolist()
        assert counts == [[1, 3], [0, 2]]
        row = _of(comparison.summary, "soft")
        assert (row["num_seeds"], row["most_seeds"]) == (2, 3)
        assert set(comparison.evaluations["status"]) == {"done"}


def test_a_hybrid_that_has_not_switched_is_none(results):
    for switch_point, accuracy in ((0.25, 0.6), (0.5, 0.9), (0.75, 0.9)):
        write(results, make_cell("hybrid", switch_point=switch_point), accuracy=accuracy)
    write(results, make_cell("soft"))
    evaluations = analysis.load(results)
    for budget, switched in ((BUDGET, 3), (BUDGET / 2, 1), (BUDGET / 4, 0)):
        (comparison,) = compare(evaluations, budget)
        hybrid = comparison.options[comparison.options["paradigm"] == "hybrid"]
        assert hybrid["num_unswitched"].tolist() == [0] * switched + [1] * (3 - switched)
        assert ("hybrid" in set(comparison.choice["paradigm"])) is (switched > 0)


# --- summary


def test_a_comparison_keeps_the_evaluations_of_the_chosen_up_to_the_cut(results):
    for paradigm in ("soft", "lvml", "hybrid", "hard-sampled", "hard"):
        for lr in (0.1, 0.2):
            write(results, make_cell(paradigm, lr, switch_point=0.25))
    comparison = compared(results, budget=BUDGET / 2)
    kept = comparison.evaluations
    assert comparison.cut == 0.5
    assert set(kept["budget_fraction"]) == {0.25, 0.5}
    assert set(kept.groupby("paradigm")["schedule"].nunique()) == {1}
    order = ["hard", "hard-sampled", "soft", "hybrid", "lvml"]  # as in the paper
    assert comparison.summary["paradigm"].tolist() == order
