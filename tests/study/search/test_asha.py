"""Asynchronous successive halving: equals a reference, judges options, never across paradigms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.tune.schedulers import TrialScheduler

from study.cell.work import Job
from study.plan.jobs import option_jobs
from study.results import Results
from study.search.under_tune import Halving
from tests.made_up.comparisons import make_cell, make_results, write

RUNGS = (20, 60)
TENTHS = tuple(i / 10 for i in range(11))


class Judge:
    """A scheduler, told of evaluations of trials by what it reads of them."""

    def __init__(self, *how: Any) -> None:
        self._scheduler = Halving(*how)
        self._trials: dict[tuple[str, str], Any] = {}

    def verdict(self, option: str, fraction: float, accuracy: float, group: str = "soft") -> bool:
        """Whether an option is stopped; its SAIF is 1 - accuracy."""
        if (group, option) not in self._trials:
            config = {"job": {"group": group, "watched": True}}
            trial = SimpleNamespace(trial_id=f"{group} {option}", config=config)
            self._trials[group, option] = trial
            self._scheduler.on_trial_add(Mock(), trial)
        result = {"budget_percent": round(100 * fraction, 9), "accuracy": accuracy}
        result["saif"] = 1 - accuracy
        told = self._scheduler.on_trial_result(Mock(), self._trials[group, option], result)
        return told == TrialScheduler.STOP


Report = tuple[str, float, float, str]


def reference(reports: Iterable[Report]) -> list[bool]:
    """The rule as the paper has it, with quantiles for the best third, on plain lists.

    So the best option goes on, and nothing is stopped before the first rung or at the end.
    """
    recorded: dict[tuple[str, int], dict[str, float]] = {}
    verdicts = []
    for option, fraction, accuracy, group in reports:
        percent, stops = 100 * fraction, False
        reached = [rung for rung in RUNGS if rung <= percent + 1e-6]
        if reached and percent < 100:
            at_rung = recorded.setdefault((group, reached[-1]), {})
            if option not in at_rung:
                others = list(at_rung.values())
                at_rung[option] = accuracy
                stops = bool(others and accuracy < np.quantile(others, 2 / 3))
        verdicts.append(stops)
    return verdicts


REPORTS = st.lists(
    st.tuples(
        st.sampled_from([f"lr={i}" for i in range(6)]),
        st.sampled_from(TENTHS),
        st.floats(0, 1, allow_nan=False, width=32),
        st.sampled_from(["soft", "hybrid"]),
    ),
    max_size=60,
)


@given(REPORTS)
@settings(max_examples=150)
def test_verdicts_equal_a_plain_reference(reports: list[Report]) -> None:
    """Also of an evaluation that is reported again, and in any order of arrival."""
    judge = Judge()
    assert [judge.verdict(*report) for report in reports] == reference(reports)


def test_what_is_no_option_that_tunes_is_neither_judged_nor_compared_with() -> None:
    scheduler = Halving()
    trial: Any = SimpleNamespace(trial_id="x", config={"job": {"group": "a", "watched": False}})
    scheduler.on_trial_add(Mock(), trial)
    for accuracy in (1.0, 0.1):
        result = {"budget_percent": 20.0, "accuracy": accuracy}
        assert scheduler.on_trial_result(Mock(), trial, result) == TrialScheduler.CONTINUE
    assert scheduler._of_group == {}


# --- after a restart, and with the analysis


def _train(results: Results, jobs: Iterable[Job], judge: Judge) -> int:
    """Trains options one after another, as a study does; how many evaluations."""
    count = 0
    for job in jobs:
        first = job.cells[0]
        points = []
        for fraction in first.evaluation_points:
            points.append(fraction)
            count += 1
            # The seeds' values are as `write` lets them grow.
            values = [(ACCURACY[cell.lr] + 0.01 * cell.seed) * fraction for cell in job.cells]
            mean = sum(values) / len(values)
            if judge.verdict(first.schedule.text, fraction, mean, "/".join(first.group)):
                break
        status = "done" if points[-1] == 1 else "censored"
        for cell in job.cells:
            accuracy = ACCURACY[cell.lr] + 0.01 * cell.seed
            write(results, cell, accuracy, status=status, points=points)
    return count


def _recorded(results: Results) -> pd.DataFrame:
    rows = results.evaluations()[["cell_id", "split", "budget_fraction", "accuracy", "saif"]]
    return results.cells().merge(rows, how="left", on="cell_id")


ACCURACY = {0.1: 0.5, 0.2: 0.9, 0.3: 0.7, 0.4: 0.6}


def _options(seeds: int = 3) -> list[Job]:
    return option_jobs(
        make_cell(paradigm, lr, seed, evaluation_points=TENTHS)
        for seed in range(seeds)
        for lr in ACCURACY
        for paradigm in ("soft", "hard")
    )


@pytest.mark.parametrize("restart_at", [0, 1, 3, 6])
def test_a_restarted_study_judges_as_one_that_ran_through(tmp_path: Path, restart_at: int) -> None:
    through, restarted = make_results(tmp_path / "a"), make_results(tmp_path / "b")
    options = _options()
    count = _train(through, options, Judge())
    before = _train(restarted, options[:restart_at], Judge())
    judge = Judge("accuracy", _recorded(restarted))
    assert before + _train(restarted, options[restart_at:], judge) == count
    columns = ["cell_id", "status"]
    pd.testing.assert_frame_equal(through.cells()[columns], restarted.cells()[columns])


@pytest.mark.parametrize("metric", ["accuracy", "saif"])
@pytest.mark.parametrize("diverged_at", [0, 1, 2])
def test_a_seed_that_diverged_before_the_restart_counts_as_a_guess(
    tmp_path: Path, metric: str, diverged_at: int
) -> None:
    """As it does while its option trains; here before the first rung, or after it."""
    results = make_results(tmp_path)
    cells = [make_cell("soft", 0.1, seed, evaluation_points=TENTHS) for seed in (0, 1)]
    write(results, cells[0], accuracy=0.9, saif=0.8)
    points = TENTHS[1 : 1 + diverged_at]
    write(results, cells[1], accuracy=0.9, saif=0.8, status="diverged", points=points)
    num_classes = results.cells()["num_classes"].iloc[0]
    at_rung, guess = {"accuracy": (0.18, 1 / num_classes), "saif": (0.16, 0.0)}[metric]
    mean = at_rung if diverged_at == 2 else (at_rung + guess) / 2
    for other, stops in ((mean + 0.01, False), (mean - 0.01, True)):
        judge = Judge(metric, _recorded(results))
        accuracy = other if metric == "accuracy" else 1 - other
        assert judge.verdict("other", 0.2, accuracy, "/".join(cells[0].group)) == stops


def test_what_has_no_number_takes_no_place(tmp_path: Path) -> None:
    results = make_results(tmp_path)
    split = {name: {"accuracy": math.nan} for name in ("train", "validation", "test")}
    write(results, make_cell("soft", 0.1, evaluation_points=TENTHS), by_split=split)
    judge = Judge("accuracy", _recorded(results))
    assert not judge.verdict("other", 0.2, 0.1, "/".join(make_cell("soft", 0.1).group))
