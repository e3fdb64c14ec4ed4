"""Further training: changes and gaps equal paired t tests of the curves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.comparison.compare import Comparison, compare_results
from analysis.comparison.later.blocks import longer_blocks
from analysis.comparison.later.changes import CHANGE_COLUMNS, END, STARTS, changes
from analysis.section.blocks import Heading, Table, Text
from study.results import Results
from tests.made_up.comparisons import NUM_CLASSES, make_cell, make_results, write

SEEDS = range(6)
POINTS = (0.1, 0.5, 1.0)
SAIF = np.array([0.5, 0.52, 0.6, 0.58, 0.49, 0.55])
"""Of each seed at the end; before, it grows in proportion to the budget."""


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Soft, whose train accuracy is ahead of the test's by a tenth of the test's SAIF; lvml."""
    results = make_results(tmp_path_factory.mktemp("curves"))
    for seed, saif in zip(SEEDS, SAIF, strict=True):
        ahead = {"train": {"accuracy": 0.8 + saif / 10, "loss": 0.3}}
        cell = make_cell(seed=seed, evaluation_points=POINTS)
        write(results, cell, 0.8, saif, loss=0.3 + saif / 100, by_split=ahead)
        write(results, make_cell("lvml", seed=seed, evaluation_points=POINTS), 0.8, 0.9)
    return only(results)


def only(results: Results) -> Comparison:
    (comparison,) = compare_results(results)
    return comparison


def rows(table: pd.DataFrame, paradigm: str) -> pd.DataFrame:
    return table[table["paradigm"] == paradigm].set_index(["metric", "second"])


def test_changes_are_paired_t_tests(comparison: Comparison) -> None:
    table = changes(comparison)
    assert list(table.columns) == CHANGE_COLUMNS
    found = rows(table, "soft")
    for start in STARTS:
        values = (END - start) * SAIF
        test = stats.ttest_1samp(values, 0)
        row = found.loc[("saif", start)]
        assert row["num_pairs"] == len(SEEDS)
        assert (row["mean_first"], row["mean_second"]) == pytest.approx(
            (SAIF.mean(), start * SAIF.mean())
        )
        bounds = test.confidence_interval(0.95)
        assert tuple(row[["difference", "low", "high"]]) == pytest.approx((values.mean(), *bounds))
        assert row["p"] == pytest.approx(test.pvalue)
        assert row["verdict"] == "rises"


def test_gaps_are_train_minus_test(comparison: Comparison) -> None:
    found = rows(changes(comparison), "soft")
    growth = (END - STARTS[0]) * SAIF / 10
    row = found.loc[("accuracy_gap", STARTS[0])]
    assert (row["mean_first"], row["difference"]) == pytest.approx(
        (SAIF.mean() / 10, growth.mean())
    )
    assert row["verdict"] == "rises"
    # The loss does not change over training, so that nothing can be said of its change.
    row = found.loc[("loss_gap", STARTS[0])]
    assert (row["mean_first"], row["difference"]) == pytest.approx((-SAIF.mean() / 100, 0))
    assert (row["verdict"], np.isnan(row["p"])) == ("undecided", True)


def test_what_gets_worse_falls(comparison: Comparison) -> None:
    falling = comparison.evaluations.copy()
    falling["saif"] = falling["saif"].where(falling["budget_fraction"] < END, 0.0)
    table = changes(replace(comparison, evaluations=falling))
    assert set(rows(table, "soft").loc["saif", "verdict"]) == {"falls"}


def test_all_rows_are_one_table_for_holm(comparison: Comparison) -> None:
    table = changes(comparison)
    smallest = table.loc[table["p"].idxmin()]
    assert smallest["p_holm"] == pytest.approx(len(table) * smallest["p"])


def test_a_diverged_seed_counts_from_where_it_ended(results: Results) -> None:
    for seed in SEEDS:
        cell = make_cell(seed=seed, evaluation_points=POINTS)
        status = {"status": "diverged", "points": POINTS[:1]} if seed == 0 else {}
        write(results, cell, 0.8, 0.5, **status)
    found = rows(changes(only(results)), "soft")
    at_end = found["mean_first"].groupby("metric").first()
    assert at_end["saif"] == pytest.approx(0.5 * 5 / 6)
    assert at_end["accuracy"] == pytest.approx((0.8 * 5 + 1 / NUM_CLASSES) / 6)
    assert at_end["accuracy_gap"] == 0
    assert np.isnan(at_end["loss_gap"])
    assert (found["num_pairs"] == len(SEEDS)).all()


def test_a_seed_that_failed_is_missing(results: Results) -> None:
    for paradigm, seeds in (("soft", SEEDS), ("lvml", SEEDS[1:])):
        for seed in seeds:
            write(results, make_cell(paradigm, seed=seed, evaluation_points=POINTS))
    sizes = changes(only(results)).groupby("paradigm")["num_pairs"].unique().map(list)
    assert sizes.to_dict() == {"soft": [6], "lvml": [5]}


def test_other_evaluations_have_no_such_table(results: Results) -> None:
    for seed in SEEDS:
        write(results, make_cell(seed=seed, evaluation_points=(0.25, 0.5, 1.0)))
    comparison = only(results)
    assert changes(comparison).empty
    assert longer_blocks(comparison) == []
    assert changes(replace(comparison, summary=comparison.summary.iloc[:0])).empty


def test_a_cut_before_the_end_has_no_such_table(results: Results) -> None:
    cells = [write(results, make_cell(seed=s, evaluation_points=POINTS)) for s in SEEDS]
    (comparison,) = compare_results(results, budget=cells[0].budget.amount / 2)
    assert changes(comparison).empty


def test_the_page_says_who_over_fits(comparison: Comparison) -> None:
    blocks = longer_blocks(comparison)
    assert blocks[0] == Heading("Trained longer")
    scores, gaps = (block for block in blocks if isinstance(block, Table))
    assert scores.rows[0][:5] == ["soft", "SAIF", "5.4", "27.0", "54.0"]
    assert [row[:2] for row in gaps.rows] == [
        ["soft", "accuracy"], ["soft", "loss"], ["lvml", "accuracy"], ["lvml", "loss"],
    ]  # fmt: skip
    over = [b.text for b in blocks if isinstance(b, Text) and "over-fits:" in b.text]
    assert len(over) == 1
    assert over[0].startswith(
        "soft over-fits: from 10 % to 100 % of the budget the gap of train to test grows, "
        "accuracy by +4.9 points ("
    )


def test_a_gap_of_losses_grows_by_a_positive_number(tmp_path: Path) -> None:
    results = make_results(tmp_path)
    for seed, late in zip(SEEDS, SAIF / 10, strict=True):
        for name in ("soft", "lvml"):
            cell = make_cell(name, seed=seed, evaluation_points=POINTS)
            falling = {"loss": (0.3, 0.2, late)} if name == "soft" else {}
            write(results, cell, 0.8, 0.9, loss=0.3, points=POINTS, curves=falling)
    blocks = longer_blocks(only(results))
    (over,) = [b.text for b in blocks if isinstance(b, Text) and "over-fits:" in b.text]
    low, high = stats.ttest_1samp(0.3 - SAIF / 10, 0).confidence_interval(0.95)
    assert over == (
        "soft over-fits: from 10 % to 100 % of the budget the gap of train to test grows, "
        f"loss by +{(0.3 - SAIF / 10).mean():.3f} nats (+{low:.3f} to +{high:.3f})."
    )
