"""Cells whose attention is held, with chosen losses, written as a study writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from analysis.groups import PARADIGMS
from chapters.dynamics import linear_orthogonal as theory
from study.cell import Budget, Cell, Options
from study.results import Results
from tests.made_up.comparisons import NUM_CLASSES, Row, make_cell, write

TIMES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
EPOCHS = 30
ALPHAS = (0.2, 0.8)
LEVEL = {"soft": 0.5, "hard": 1.0, "lvml": 0.75}
CLASSES = 20
FLOW_TIME = 300.0
"""Of a whole made-up linear cell."""


def focus_cell(
    paradigm: str = "soft", alpha: float = 0.2, seed: int = 0, lr: float = 0.1, **settings: object
) -> Cell:
    n = int(str(settings.setdefault("n", 2_000)))
    defaults = {"m": 5, "budget": Budget(EPOCHS * n, "mosaics"), "evaluation_points": TIMES}
    return make_cell(paradigm, lr, seed, alpha=alpha, **(defaults | settings))


def record(
    results: Results,
    cell: Cell,
    loss: Sequence[float] | float = 1.0,
    *,
    status: str = "done",
    accuracy: float = 0.9,
    validation_loss: float = 0.3,
    **others: Sequence[float],
) -> Cell:
    """Records a cell with these train losses, and an incentive and slope that go with them.

    A number falls to itself evenly, from log C.
    """
    times = np.array(TIMES)
    if isinstance(loss, float):
        loss = (math.log(NUM_CLASSES) * (1 - times) + loss * times).tolist()
    curves = {"loss": loss, "incentive": [0.01 * x for x in loss], "incentive_slope": loss}
    curves |= others

    def measured(evaluation: Row) -> Row:
        """All on the train split; on the others the time alone."""
        names = curves if evaluation["split"] == "train" else curves.keys() & {"flow_time"}
        place = TIMES.index(evaluation["budget_fraction"])
        return {name: curves[name][place] for name in names}

    points = TIMES if status != "diverged" else TIMES[:2]
    write(
        results,
        cell,
        accuracy,
        loss=validation_loss,
        status=status,
        points=points,
        study="fixed-focus",
        mosaics=cell.budget.amount,
        further=measured,
        num_classes=cell.options.get("num_classes", NUM_CLASSES),
    )
    return cell


def record_all(
    results: Results,
    seeds: int = 2,
    paradigms: Sequence[str] = PARADIGMS,
    alphas: Sequence[float] = ALPHAS,
    **settings: object,
) -> None:
    """Every (paradigm, alpha, seed), loss at the end LEVEL (1 - alpha) + seed / 10."""
    for name in paradigms:
        for alpha in alphas:
            for seed in range(seeds):
                end = LEVEL[name] * (1 - alpha) + seed / 10
                record(results, focus_cell(name, alpha, seed, **settings), end)


def record_linear(results: Results, seeds: int) -> None:
    """Linear models that follow Theorem 1 to the last digit."""
    times = FLOW_TIME * np.array(TIMES)
    for name in PARADIGMS:
        for alpha in ALPHAS:
            exact = theory.trajectory(name, 20, CLASSES, times, alpha)
            slope = theory.incentive_slope(name, alpha, exact["mu"], CLASSES)
            for seed in range(seeds):
                cell = focus_cell(
                    name, alpha, seed, 1.0, task="linear-orthogonal", m=20, n=5_000,
                    options=Options(num_classes=CLASSES), architecture="linear", momentum=0.0,
                )  # fmt: skip
                record(
                    results,
                    cell,
                    exact["loss"].tolist(),
                    incentive=exact["incentive"].tolist(),
                    incentive_slope=slope.tolist(),
                    flow_time=times.tolist(),
                )
