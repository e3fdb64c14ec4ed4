"""Asynchronous successive halving, which is Tune's: judges options, never across paradigms."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from ray.tune.schedulers import TrialScheduler

from study.cell import Cell
from study.search.over_seeds import recorded
from study.search.under_tune import Halving
from tests.made_up.comparisons import make_cell, write

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


def test_the_best_third_at_a_rung_goes_on():
    """At 20 and 60 %, once an option, among the options of its paradigm alone."""
    judge = Judge()
    for option, fraction, accuracy, group, stops in (
        ("a", 0.1, 0.0, "soft", False),  # there is no rung yet
        ("a", 0.2, 0.5, "soft", False),
        ("b", 0.3, 0.4, "soft", True),
        ("a", 0.3, 0.1, "soft", False),  # it has its place
        ("c", 0.2, 0.4, "hybrid", False),
        ("d", 0.2, 0.6, "soft", False),
        ("e", 0.2, 0.5, "soft", True),
        ("a", 0.6, 0.7, "soft", False),
        ("d", 0.6, 0.65, "soft", True),
        ("g", 0.6, 0.8, "soft", False),  # its first evaluation
        ("g", 0.9, 0.0, "soft", False),
        ("f", 1.0, 0.0, "soft", False),  # a stop would save nothing
    ):
        assert judge.verdict(option, fraction, accuracy, group) == stops, (option, fraction)


def test_what_is_no_option_that_tunes_is_neither_judged_nor_compared_with():
    scheduler = Halving()
    trial: Any = SimpleNamespace(trial_id="x", config={"job": {"group": "a", "watched": False}})
    scheduler.on_trial_add(Mock(), trial)
    for accuracy in (1.0, 0.1):
        result = {"budget_percent": 20.0, "accuracy": accuracy}
        assert scheduler.on_trial_result(Mock(), trial, result) == TrialScheduler.CONTINUE
    assert scheduler._of_group == {}


# --- after a restart, and with the analysis


def _group(cell: Cell) -> str:
    return "/".join(cell.group)


def test_a_restarted_study_judges_as_one_that_ran_through(results):
    """By what is recorded of options that ended or were stopped."""
    through = Judge()
    for lr, accuracy in ((0.1, 0.5), (0.2, 0.9), (0.3, 0.7), (0.4, 0.6), (0.5, 0.95)):
        cells = [make_cell("soft", lr, seed, evaluation_points=TENTHS) for seed in (0, 1)]
        points = []
        for fraction in TENTHS:
            points.append(fraction)
            if through.verdict(str(lr), fraction, accuracy * fraction, _group(cells[0])):
                break
        status = "done" if points[-1] == 1 else "censored"
        for cell, luck in zip(cells, (-0.01, 0.01), strict=True):
            write(results, cell, accuracy + luck, status=status, points=points)
    assert set(results.cells()["status"]) == {"done", "censored"}
    restarted = Judge("accuracy", recorded(results))
    for number, accuracy in enumerate(np.linspace(0, 1, 60)):
        for fraction in (0.2, 0.6):
            asked = (f"{number} at {fraction}", fraction, accuracy * fraction, _group(cells[0]))
            assert through.verdict(*asked) == restarted.verdict(*asked)


@pytest.mark.parametrize("metric", ["accuracy", "saif"])
@pytest.mark.parametrize("diverged_at", [0, 1, 2])
def test_a_seed_that_diverged_before_the_restart_counts_as_a_guess(results, metric, diverged_at):
    """As it does while its option trains; here before the first rung, or after it."""
    cells = [make_cell("soft", 0.1, seed, evaluation_points=TENTHS) for seed in (0, 1)]
    write(results, cells[0], accuracy=0.9, saif=0.8)
    points = TENTHS[1 : 1 + diverged_at]
    write(results, cells[1], accuracy=0.9, saif=0.8, status="diverged", points=points)
    num_classes = results.cells()["num_classes"].iloc[0]
    at_rung, guess = {"accuracy": (0.18, 1 / num_classes), "saif": (0.16, 0.0)}[metric]
    mean = at_rung if diverged_at == 2 else (at_rung + guess) / 2
    for other, stops in ((mean + 0.01, False), (mean - 0.01, True)):
        judge = Judge(metric, recorded(results))
        accuracy = other if metric == "accuracy" else 1 - other
        assert judge.verdict("other", 0.2, accuracy, _group(cells[0])) == stops


def test_what_has_no_number_takes_no_place(results):
    split = {name: {"accuracy": math.nan} for name in ("train", "validation", "test")}
    write(results, make_cell("soft", 0.1, evaluation_points=TENTHS), by_split=split)
    judge = Judge("accuracy", recorded(results))
    assert not judge.verdict("other", 0.2, 0.1, _group(make_cell("soft", 0.1)))
