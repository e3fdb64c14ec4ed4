"""Asynchronous successive halving: equals a reference, judges options, never across paradigms."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import analysis
from study.cell import Cell
from study.results import Results
from study.search.halving import GRACE_PERCENT, REDUCTION_FACTOR, Judge
from tests.made_up.comparisons import make_cell, make_results, write

RUNGS = (20, 60)
TENTHS = tuple(i / 10 for i in range(11))


def row(
    schedule: str, fraction: float, accuracy: float, paradigm: str = "soft", seed: int = 0
) -> dict[str, Any]:
    """An evaluation as a trial reports it."""
    return {
        "cell_id": f"{paradigm} {schedule} {seed}",
        "comparison_id": "0123",
        "paradigm": paradigm,
        "schedule": schedule,
        "stage": "tune",
        "budget_fraction": fraction,
        "accuracy": accuracy,
        "saif": 1 - accuracy,
    }


def reference(rows: Iterable[dict[str, Any]]) -> list[bool]:
    """The rule as the paper has it, with quantiles for the best third, on plain lists."""
    recorded: dict[tuple[str, int], dict[str, float]] = {}
    stopped = set()
    verdicts = []
    for report in rows:
        option, percent = (report["paradigm"], report["schedule"]), 100 * report["budget_fraction"]
        reached = [rung for rung in RUNGS if rung <= percent + 1e-6]
        if reached and percent < 100:
            at_rung = recorded.setdefault((report["paradigm"], reached[-1]), {})
            if report["schedule"] not in at_rung:
                others = list(at_rung.values())
                at_rung[report["schedule"]] = report["accuracy"]
                if others and report["accuracy"] < np.quantile(others, 1 - 1 / REDUCTION_FACTOR):
                    stopped.add(option)
        verdicts.append(option in stopped and percent < 100)
    return verdicts


REPORTS = st.lists(
    st.builds(
        row,
        st.sampled_from([f"lr={i}" for i in range(6)]),
        st.sampled_from(TENTHS),
        st.floats(0, 1, allow_nan=False, width=32),
        st.sampled_from(["soft", "hybrid"]),
        st.integers(0, 2),
    ),
    max_size=60,
)


@given(REPORTS)
@settings(max_examples=150)
def test_verdicts_equal_a_plain_reference(reports: list[dict[str, Any]]) -> None:
    judge = Judge()
    assert [judge.verdict(report) for report in reports] == reference(reports)


def test_the_constants_give_the_rungs_of_the_reference() -> None:
    expected = (GRACE_PERCENT, GRACE_PERCENT * REDUCTION_FACTOR)
    assert expected == RUNGS
    assert RUNGS[-1] * REDUCTION_FACTOR > 100


@given(REPORTS)
@settings(max_examples=50)
def test_paradigms_and_comparisons_do_not_influence_one_another(
    reports: list[dict[str, Any]],
) -> None:
    together, alone = Judge(), Judge()
    mixed = []
    for report in reports:
        rival = {**report, "schedule": f"rival of {report['schedule']}", "accuracy": 1.0}
        together.verdict({**rival, "comparison_id": "4567"})
        mixed.append(together.verdict(report))
    hybrids = [i for i, report in enumerate(reports) if report["paradigm"] == "hybrid"]
    assert [alone.verdict(reports[i]) for i in hybrids] == [mixed[i] for i in hybrids]


@given(st.permutations(range(9)), st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_the_best_option_goes_on_in_any_order_of_arrival(order: list[int], seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002  Tune draws from it; no verdict may depend on it
    judge, running = Judge(), list(order)
    for fraction in TENTHS:
        running = [i for i in running if not judge.verdict(row(f"lr={i}", fraction, i / 10))]
    assert 8 in running
    if order == sorted(order, reverse=True):
        assert running == [8]


def test_the_order_of_arrival_is_all_that_counts() -> None:
    ascending, descending = Judge(), Judge()
    assert not any(ascending.verdict(row(f"lr={i}", 0.2, i / 10)) for i in range(5))
    verdicts = [descending.verdict(row(f"lr={i}", 0.2, i / 10)) for i in (4, 3, 2, 1, 0)]
    assert verdicts == [False, True, True, True, True]


def test_all_seeds_of_an_option_share_its_fate() -> None:
    judge = Judge()
    assert not judge.verdict(row("good", 0.2, 0.8, seed=0))
    assert judge.verdict(row("bad", 0.2, 0.5, seed=0))
    assert judge.verdict(row("bad", 0.0, 0.9, seed=1))  # before it costs anything
    assert not judge.verdict(row("good", 0.2, 0.1, seed=1))  # the first seed has decided


def test_an_evaluation_that_is_reported_again_counts_once() -> None:
    once, twice = Judge(), Judge()
    for judge, times in ((once, 1), (twice, 5)):
        # reported at .8 after .6: at one rung, and not at the rung below for want of another
        reports = [row("a", 0.6, 0.9), row("a", 0.8, 0.2), row("b", 0.2, 0.5)]
        for report in reports:
            verdicts = {judge.verdict(report) for _ in range(times)}
            assert verdicts == {False}
    for accuracy in (0.1, 0.3, 0.6):
        later = row(f"c{accuracy}", 0.2, accuracy)
        assert once.verdict(later) == twice.verdict(later) == (accuracy < 0.5)


@pytest.mark.parametrize("fraction", [0.0, 0.1, 1.0])
def test_nothing_is_stopped_in_the_first_rung_or_at_the_end(fraction: float) -> None:
    judge = Judge()
    assert not any(judge.verdict(row(f"lr={i}", fraction, -i)) for i in range(10))


def test_a_stopped_option_is_not_stopped_at_the_end() -> None:
    judge = Judge()
    judge.verdict(row("good", 0.2, 0.9))
    assert judge.verdict(row("bad", 0.2, 0.1))
    assert not judge.verdict(row("bad", 1.0, 0.1, seed=1))


def test_a_cell_without_a_finite_metric_is_left_to_end_by_itself() -> None:
    judge = Judge()
    assert not judge.verdict(row("lost", 0.2, math.nan))
    assert not judge.verdict(row("good", 0.2, 0.4))  # compared with no one
    assert judge.verdict(row("bad", 0.2, 0.1))


def test_what_confirms_is_neither_judged_nor_compared_with() -> None:
    judge = Judge()
    for fraction in TENTHS:
        assert not judge.verdict({**row("chosen", fraction, 1.0), "stage": "confirm"})
    assert not judge.verdict(row("a", 0.2, 0.5))  # nothing better was reported
    assert not judge.verdict({**row("worse", 0.2, 0.1), "stage": "confirm"})


def test_it_judges_by_the_metric_that_was_asked_for() -> None:
    accuracy, saif = Judge("accuracy"), Judge("saif")
    for judge in (accuracy, saif):
        judge.verdict(row("a", 0.2, 0.5))
    assert accuracy.verdict(row("b", 0.2, 0.4))
    assert not saif.verdict(row("b", 0.2, 0.4))  # row() has saif = 1 - accuracy


# --- after a restart, and with the analysis


def _train(results: Results, cells: list[Cell], judge: Judge, accuracy: dict[float, float]) -> int:
    """Trains cells one after another, as a study with a scheduler does; how many evaluations."""
    count = 0
    for cell in cells:
        points = []
        for fraction in cell.evaluation_points:
            points.append(fraction)
            count += 1
            value = accuracy[cell.lr] * fraction  # as `write` lets them grow
            report = row(cell.schedule.text, fraction, value, cell.paradigm)
            if judge.verdict({**report, "comparison_id": cell.comparison_id}):
                break
        status = "done" if points[-1] == 1 else "censored"
        write(results, cell, accuracy[cell.lr], status=status, points=points)
    return count


def _recorded(results: Results) -> pd.DataFrame:
    return results.cells().merge(results.evaluations(), on="cell_id")


ACCURACY = {0.1: 0.5, 0.2: 0.9, 0.3: 0.7, 0.4: 0.6}


def _grid(seeds: int = 3) -> list[Cell]:
    return [
        make_cell(paradigm, lr, seed, evaluation_points=TENTHS)
        for seed in range(seeds)
        for lr in ACCURACY
        for paradigm in ("soft", "hard")
    ]


@pytest.mark.parametrize("restart_at", [0, 3, 5, 9, 17])
def test_a_restarted_study_judges_as_one_that_ran_through(tmp_path: Path, restart_at: int) -> None:
    through, restarted = make_results(tmp_path / "a"), make_results(tmp_path / "b")
    cells = _grid()
    count = _train(through, cells, Judge(), ACCURACY)
    before = _train(restarted, cells[:restart_at], Judge(), ACCURACY)
    judge = Judge()
    judge.prime(_recorded(restarted))
    judge.prime(_recorded(restarted))  # twice changes nothing
    after = _train(restarted, cells[restart_at:], judge, ACCURACY)
    assert before + after == count
    columns = ["cell_id", "status"]
    pd.testing.assert_frame_equal(through.cells()[columns], restarted.cells()[columns])


def test_every_paradigm_keeps_its_best_option_and_the_rest_is_censored(tmp_path: Path) -> None:
    results = make_results(tmp_path)
    cells = _grid()
    random.Random(0).shuffle(cells)
    count = _train(results, cells, Judge(), ACCURACY)
    assert count < 0.75 * len(cells) * len(TENTHS)
    choice = analysis.choose(analysis.equal_compute(analysis.load(results)))
    assert choice.set_index("paradigm")["lr"].to_dict() == {"soft": 0.2, "hard": 0.2}
    assert (choice["num_seeds"] == 3).all()
    assert (results.cells()["status"] == "censored").any()
