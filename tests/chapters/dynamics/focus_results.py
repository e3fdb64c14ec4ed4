"""Cells whose attention is held, with chosen losses, written as a study writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from analysis.groups import PARADIGMS
from study.cell import Budget, Cell
from study.results import Results
from tests.made_up.comparisons import NUM_CLASSES, Row, make_cell, write

TIMES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
EPOCHS = 30
ALPHAS = (0.2, 0.8)
LEVEL = {"soft": 0.5, "hard": 1.0, "lvml": 0.75}


def focus_cell(
    paradigm: str = "soft", alpha: float = 0.2, seed: int = 0, lr: float = 0.1, **settings: object
) -> Cell:
    n = int(str(settings.setdefault("n", 2_000)))
    defaults = {"m": 5, "budget": Budget(EPOCHS * n, "mosaics"), "evaluation_points": TIMES}
    return make_cell(paradigm, lr, seed, alpha=alpha, **(defaults | settings))


def record(
    results: Results,
    cell: Cell,
    loss: float = 1.0,
    *,
    status: str = "done",
    accuracy: float = 0.9,
    validation_loss: float = 0.3,
    **others: Sequence[float],
) -> Cell:
    """Records a cell whose train loss falls evenly from log C to this one.

    An incentive and slope go with it; others are further columns of the train split.
    """
    times = np.array(TIMES)
    losses = math.log(NUM_CLASSES) * (1 - times) + loss * times
    curves = {"loss": losses, "incentive": 0.01 * losses, "incentive_slope": losses} | others

    def measured(evaluation: Row) -> Row:
        if evaluation["split"] != "train":
            return {}
        place = TIMES.index(evaluation["budget_fraction"])
        return {name: float(values[place]) for name, values in curves.items()}

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
