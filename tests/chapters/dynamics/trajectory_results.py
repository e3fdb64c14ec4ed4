"""Cells of the linear orthogonal setting with chosen trajectories, written as a study does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chapters.dynamics import linear_orthogonal
from study import paradigms
from study.cell import Budget, Cell
from study.results import Results
from tests.made_up import comparisons
from tests.made_up.comparisons import Row

POINTS = tuple(i / 20 for i in range(21))


def make_cell(
    paradigm: str = "soft",
    seed: int = 0,
    m: int = 5,
    num_classes: int = 3,
    lr: float = 0.1,
    **settings: Any,
) -> Cell:
    """A cell of a linear model; `settings` are other fields of `Cell`."""
    defaults: dict[str, Any] = {
        "task": "linear-orthogonal",
        "n": 5_000,
        "architecture": "linear",
        "batch_size": 250,
        "momentum": 0.0,
        "budget": Budget(500_000, "mosaics"),
        "evaluation_points": POINTS,
    }
    fields = defaults | {"m": m, "num_classes": num_classes} | settings
    return comparisons.make_cell(paradigm, lr, seed, **fields)


def write(
    results: Results,
    cell: Cell,
    noise: float = 0.0,
    *,
    end: float = 200.0,
    status: str = "done",
    points: Sequence[float] | None = None,
) -> Cell:
    """Records a cell that follows the closed form, one that draws that of its exact paradigm.

    Args:
        results: the directory.
        cell: what was run.
        noise: each of mu, nu and loss is off by this share of itself, drawn by the seed.
        end: gradient-flow time at the end of the budget.
        status: done, diverged or censored.
        points: budget fractions that were evaluated, by default all.
    """
    fractions = np.array(cell.evaluation_points if points is None else points, dtype=float)
    num_classes = cell.options["num_classes"]
    theory = linear_orthogonal.trajectory(
        paradigms.get(cell.paradigm).exact, cell.m, num_classes, end * fractions
    )
    table = theory.set_index(fractions)[["t", "mu", "nu", "loss"]]
    table = table.rename(columns={"t": "flow_time"})
    generator = np.random.default_rng([cell.seed, len(cell.paradigm)])
    for name in ("mu", "nu", "loss"):
        table[name] *= 1 + noise * generator.standard_normal(len(table))

    def measured(evaluation: Row) -> Row:
        fraction = evaluation["budget_fraction"]
        row = {"compute_flops": round(1e9 * fraction), **table.loc[fraction]}
        # What other splits say must not matter.
        return row | {"mu": row["mu"] + (evaluation["split"] != "test")}

    return comparisons.write(
        results,
        cell,
        status=status,
        points=table.index.tolist(),
        study="linear-orthogonal",
        seconds=2.0,
        mosaics=500_000,
        further=measured,
        num_classes=num_classes,
        steps=2_000,
        micro_batch=cell.batch_size,
        total_seconds=3.0,
    )


def write_study(
    results: Results,
    seeds: int = 3,
    noise: float = 0.01,
    pairs: Sequence[tuple[int, int]] = ((5, 3),),
    **settings: Any,
) -> None:
    """Three paradigms with some seeds in each (m, C); those with C = 20 are trained longer."""
    for m, num_classes in pairs:
        end = 200.0 if num_classes < 20 else 2_000.0
        for paradigm in ("soft", "hard", "lvml"):
            for seed in range(seeds):
                cell = make_cell(paradigm, seed, m, num_classes, **settings)
                write(results, cell, noise, end=end)
