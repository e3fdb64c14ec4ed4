"""Changes over training equal paired t tests; plateaus are of curves that a hand can read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.comparison.compare import Comparison, compare_results
from analysis.open_questions import END, STARTS, changes, half_time, plateaus
from study.results import Results
from tests.made_up.comparisons import NUM_CLASSES, make_cell, make_results, write

SEEDS = range(6)
TIMES = (*STARTS, END)
SAIF = np.array([0.5, 0.52, 0.6, 0.58, 0.49, 0.55])
"""Of each seed at the end; before, it grows in proportion to the budget."""

POINTS = tuple(np.linspace(0, 1, 21))
LOG_C = math.log(NUM_CLASSES)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Soft, whose train accuracy is ahead of the test's by a tenth of the test's SAIF; lvml."""
    results = make_results(tmp_path_factory.mktemp("curves"))
    for seed, saif in zip(SEEDS, SAIF, strict=True):
        ahead = {"train": {"accuracy": 0.8 + saif / 10, "loss": 0.3}}
        cell = make_cell(seed=seed, evaluation_points=TIMES)
        write(results, cell, 0.8, saif, loss=0.3 + saif / 100, by_split=ahead)
        write(results, make_cell("lvml", seed=seed, evaluation_points=TIMES), 0.8, 0.9)
    return only(results)


def only(results: Results) -> Comparison:
    (comparison,) = compare_results(results)
    return comparison


def rows(table: pd.DataFrame, paradigm: str) -> pd.DataFrame:
    return table[table["paradigm"] == paradigm].set_index(["metric", "second"])


def test_changes_are_paired_t_tests(comparison: Comparison) -> None:
    found = rows(changes(comparison), "soft")
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
        cell = make_cell(seed=seed, evaluation_points=TIMES)
        status = {"status": "diverged", "points": TIMES[:1]} if seed == 0 else {}
        write(results, cell, 0.8, 0.5, **status)
    found = rows(changes(only(results)), "soft")
    at_end = found["mean_first"].groupby("metric").first()
    assert at_end["saif"] == pytest.approx(0.5 * 5 / 6)
    assert at_end["accuracy"] == pytest.approx((0.8 * 5 + 1 / NUM_CLASSES) / 6)
    assert at_end["accuracy_gap"] == 0
    assert np.isnan(found.loc[("loss_gap", STARTS[0]), "difference"])
    assert (found["num_pairs"] == len(SEEDS)).all()


def test_a_seed_that_failed_is_no_pair(results: Results) -> None:
    for paradigm, seeds in (("soft", SEEDS), ("lvml", SEEDS[1:])):
        for seed in seeds:
            write(results, make_cell(paradigm, seed=seed, evaluation_points=TIMES))
    sizes = changes(only(results)).groupby("paradigm")["num_pairs"].unique().map(list)
    assert sizes.to_dict() == {"soft": [6], "lvml": [5]}


def test_other_evaluations_tell_nothing(results: Results) -> None:
    for seed in SEEDS:
        write(results, make_cell(seed=seed, evaluation_points=(0.25, 0.5, 1.0)))
    table = changes(only(results))
    assert (set(table["num_pairs"]), set(table["verdict"])) == ({0}, {"undecided"})


def falling(until: float) -> list[float]:
    """A loss that falls evenly from log C and is half of it at this share of the budget."""
    return [LOG_C * max(0.0, 1 - each / (2 * until)) for each in POINTS]


def compared(path: Path, halves: dict[str, Sequence[float]]) -> list[Comparison]:
    """Paradigm -> when each seed halves its loss, as a share of the budget."""
    results = make_results(path)
    for paradigm, of_seeds in halves.items():
        for seed, half in enumerate(of_seeds):
            cell = make_cell(paradigm, seed=seed, evaluation_points=POINTS)
            write(results, cell, points=POINTS, mosaics=8_000, curves={"loss": falling(half)})
    return compare_results(results)


def of_soft(found: Sequence[Comparison]) -> pd.Series:
    return plateaus(found).set_index("paradigm").loc["soft"]


def test_the_half_is_interpolated() -> None:
    assert half_time([0, 10, 20], [LOG_C, LOG_C, 0.0], NUM_CLASSES) == pytest.approx(15)
    assert half_time([0, 10], [LOG_C, 0.6 * LOG_C], NUM_CLASSES) == math.inf
    assert half_time([0, 10], [0.1, 2.0], NUM_CLASSES) == 0


def test_the_ratio_is_the_geometric_mean_over_seeds(tmp_path: Path) -> None:
    lvml = (0.1, 0.12, 0.1, 0.11, 0.1, 0.12)
    ratios = np.array([1.5, 2.0, 1.6, 1.7, 1.9, 1.8])
    found = compared(tmp_path, {"lvml": lvml, "soft": lvml * ratios, "hard": lvml})
    soft, hard = plateaus(found).to_dict("records")
    assert (soft["paradigm"], hard["paradigm"]) == ("soft", "hard")
    assert soft["ratio"] == pytest.approx(np.exp(np.log(ratios).mean()), rel=1e-6)
    assert soft["low"] < soft["ratio"] < soft["high"]
    assert (soft["verdict"], soft["num_seeds"], soft["num_lost"]) == ("later", 6, 0)
    assert hard["ratio"] == pytest.approx(1)
    assert hard["verdict"] == "undecided"
    assert 1 < soft["theory"] < 2


def test_who_never_gets_there_counts_with_the_end(tmp_path: Path) -> None:
    soft = of_soft(compared(tmp_path, {"lvml": [0.2] * 6, "soft": [0.4] * 5 + [5.0]}))
    assert (soft["num_late"], soft["num_lost"]) == (1, 0)
    assert soft["ratio"] == pytest.approx((2**5 * 5) ** (1 / 6), rel=1e-6)


def test_seeds_in_which_lvml_does_not_are_lost(tmp_path: Path) -> None:
    halves = {"lvml": [0.2] * 6 + [5.0], "soft": [0.4, 0.41] * 3 + [0.4]}
    soft = of_soft(compared(tmp_path, halves))
    assert (soft["num_seeds"], soft["num_lost"]) == (6, 1)
    assert soft["verdict"] == "undecided"  # six seeds may lose none


def test_a_seed_that_diverged_is_lost_and_the_others_count(tmp_path: Path) -> None:
    compared(tmp_path, {"lvml": [0.2] * 7, "soft": [0.4, 0.42] * 3})
    write(
        Results(tmp_path),
        make_cell("soft", seed=6, evaluation_points=POINTS),
        points=POINTS[:3],
        status="diverged",
        curves={"loss": falling(0.4)[:3]},
    )
    soft = of_soft(compare_results(tmp_path))
    assert (soft["num_seeds"], soft["num_lost"], soft["num_late"]) == (6, 1, 0)
