"""Changes over training equal paired t tests; plateaus are of curves that a hand can read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.comparison.compare import compare_results
from analysis.open_questions import END, STARTS, changes, plateaus
from study.results import Results
from tests.made_up.comparisons import NUM_CLASSES, compared, make_cell, make_results, write

SEEDS = range(6)
TIMES = (*STARTS, END)
SAIF = np.array([0.5, 0.52, 0.6, 0.58, 0.49, 0.55])
"""Of each seed at the end; before, it grows in proportion to the budget."""

POINTS = tuple(np.linspace(0, 1, 11))
LOG_C = math.log(NUM_CLASSES)


def rows(table: pd.DataFrame, paradigm: str) -> pd.DataFrame:
    return table[table["paradigm"] == paradigm].set_index(["metric", "second"])


def test_changes_are_paired_t_tests(results: Results) -> None:
    """Of soft, whose train accuracy is ahead of the test's by a tenth of the test's SAIF."""
    for seed, saif in zip(SEEDS, SAIF, strict=True):
        ahead = {"train": {"accuracy": 0.8 + saif / 10}}
        cell = make_cell(seed=seed, evaluation_points=TIMES)
        write(results, cell, 0.8, saif, by_split=ahead)
    table = changes(compared(results))
    smallest = table.loc[table["p"].idxmin()]  # all rows are one table for Holm
    assert smallest["p_holm"] == pytest.approx(len(table) * smallest["p"])
    found = rows(table, "soft")
    # Gaps are train minus test.
    cases = [*(("saif", 1.0, start) for start in STARTS), ("accuracy_gap", 0.1, STARTS[0])]
    for metric, scale, start in cases:
        values = scale * (END - start) * SAIF
        test = stats.ttest_1samp(values, 0)
        row = found.loc[(metric, start)]
        names = ["mean_first", "mean_second", "difference", "low", "high", "p"]
        ends = [scale * SAIF.mean(), scale * start * SAIF.mean(), values.mean()]
        expected = [*ends, *test.confidence_interval(0.95), test.pvalue]
        assert [row[name] for name in names] == pytest.approx(expected)
        assert (row["num_pairs"], row["verdict"]) == (len(SEEDS), "rises")


def test_a_diverged_seed_counts_from_where_it_ended_and_a_failed_one_is_no_pair(
    results: Results,
) -> None:
    for seed in SEEDS:
        cell = make_cell(seed=seed, evaluation_points=TIMES)
        lost = {"status": "diverged", "points": TIMES[:1]} if seed == 0 else {}
        write(results, cell, 0.8, 0.5, **lost)
        if seed:
            write(results, make_cell("lvml", seed=seed, evaluation_points=TIMES))
    table = changes(compared(results))
    sizes = table.groupby("paradigm")["num_pairs"].agg({"min", "max"})
    assert sizes.loc[["soft", "lvml"]].to_numpy().tolist() == [[6, 6], [5, 5]]
    found = rows(table, "soft")
    at_end = found["mean_first"].groupby("metric").first()
    expected = [0.5 * 5 / 6, (0.8 * 5 + 1 / NUM_CLASSES) / 6]
    assert at_end[["saif", "accuracy"]].tolist() == pytest.approx(expected)
    assert found.loc["loss_gap", "difference"].isna().all()


def falling(until: float) -> list[float]:
    """A loss that falls evenly from log C and is half of it at this share of the budget."""
    return [LOG_C * max(0.0, 1 - each / (2 * until)) for each in POINTS]


def plateau(path: Path, halves: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    """Of paradigms whose seeds halve their loss at these shares of the budget; NaN diverges."""
    results = make_results(path)
    for paradigm, of_seeds in halves.items():
        for seed, half in enumerate(of_seeds):
            lost = math.isnan(half)
            points = POINTS[:3] if lost else POINTS
            write(
                results,
                make_cell(paradigm, seed=seed, evaluation_points=POINTS),
                points=points,
                mosaics=8_000,
                status="diverged" if lost else "done",
                curves={"loss": falling(0.4 if lost else half)[: len(points)]},
            )
    return plateaus(compare_results(results)).set_index("paradigm")


def test_the_ratio_is_the_geometric_mean_over_seeds(tmp_path: Path) -> None:
    lvml = (0.1, 0.12, 0.1, 0.11, 0.1, 0.12)
    ratios = np.array([1.5, 2.0, 1.6, 1.7, 1.9, 1.8])
    soft, hard = plateau(tmp_path, {"lvml": lvml, "soft": lvml * ratios, "hard": lvml}).to_dict(
        "records"
    )
    low, high = stats.t.interval(0.95, 5, np.log(ratios).mean(), stats.sem(np.log(ratios)))
    expected = [stats.gmean(ratios), math.exp(low), math.exp(high)]
    assert [soft[name] for name in ("ratio", "low", "high")] == pytest.approx(expected, rel=1e-6)
    assert (soft["verdict"], soft["num_seeds"], soft["num_lost"]) == ("later", 6, 0)
    assert (hard["ratio"], hard["verdict"]) == (pytest.approx(1), "undecided")
    assert 1 < soft["theory"] < 2


@pytest.mark.parametrize(
    ("lvml", "soft", "seeds", "lost", "late", "ratio"),
    [
        # Who never gets there counts with the end.
        ([0.2] * 6, [0.4] * 5 + [5.0], 6, 0, 1, (2**5 * 5) ** (1 / 6)),
        # Seeds in which lvml does not are lost, as is what diverged; six seeds may lose none.
        ([0.2] * 6 + [5.0], [0.4] * 7, 6, 1, 0, 2),
        ([0.2] * 7, [0.4] * 6 + [math.nan], 6, 1, 0, 2),
    ],
)
def test_seeds_that_do_not_get_there(
    tmp_path: Path,
    lvml: list[float],
    soft: list[float],
    seeds: int,
    lost: int,
    late: int,
    ratio: float,
) -> None:
    row = plateau(tmp_path, {"lvml": lvml, "soft": soft}).loc["soft"]
    assert (row["num_seeds"], row["num_lost"], row["num_late"]) == (seeds, lost, late)
    assert row["ratio"] == pytest.approx(ratio, rel=1e-6)
    assert lost == 0 or row["verdict"] == "undecided"
