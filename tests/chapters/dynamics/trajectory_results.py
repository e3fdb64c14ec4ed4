"""Cells of the linear orthogonal setting with chosen trajectories, written as a study does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from chapters.dynamics import linear_orthogonal
from study.cell import Budget, Cell, Schedule
from study.results import Results, cell_columns
from tests.made_up.cells import cell_of
from tests.made_up.comparisons import SPLITS

POINTS = tuple(i / 20 for i in range(21))

Change = Callable[[pd.DataFrame], pd.DataFrame]


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
        "data_digest": "0123456789abcdef",
        "n": 5_000,
        "architecture": "linear",
        "batch_size": 250,
        "momentum": 0.0,
        "budget": Budget(500_000, "mosaics"),
        "evaluation_points": POINTS,
    }
    schedule = Schedule.single(paradigm, lr)
    fields = defaults | {"m": m, "num_classes": num_classes} | settings
    return cell_of(**fields, schedule=schedule, seed=seed)


def write(
    results: Results,
    cell: Cell,
    noise: float = 0.0,
    *,
    end: float = 200.0,
    status: str = "done",
    points: Sequence[float] | None = None,
    change: Change | None = None,
    follows: str | None = None,
) -> Cell:
    """Records a cell that follows the closed form.

    Args:
        results: the directory.
        cell: what was run.
        noise: each of mu, nu and loss is off by this share of itself, drawn by the seed.
        end: gradient-flow time at the end of the budget.
        status: done, diverged or censored.
        points: budget fractions that were evaluated, by default all.
        change: what becomes of the table of evaluations, columns fraction, t, mu, nu and loss.
        follows: the paradigm whose closed form it takes, by default its own.
    """
    fractions = np.array(cell.evaluation_points if points is None else points, dtype=float)
    theory = linear_orthogonal.trajectory(
        follows or cell.paradigm, cell.m, cell.options.get("num_classes", 2), end * fractions
    )
    table = theory[["t", "mu", "nu", "loss"]].assign(fraction=fractions)
    generator = np.random.default_rng([cell.seed, len(cell.paradigm)])
    for name in ("mu", "nu", "loss"):
        table[name] *= 1 + noise * generator.standard_normal(len(table))
    if change is not None:
        table = change(table)
    evaluations = [
        {
            "cell_id": cell.id,
            "step": round(2_000 * row["fraction"]),
            "mosaics_seen": round(500_000 * row["fraction"]),
            "budget_fraction": row["fraction"],
            "compute_flops": round(1e9 * row["fraction"]),
            "train_seconds": 2 * row["fraction"],
            "split": split,
            "inference": cell.paradigm,
            "num_evaluated": 500,
            "loss": row["loss"],
            "accuracy": 1.0,
            "saif": 0.5,
            "foreground_attention_mean": 0.5,
            "ftpt": 1.0,
            "ffpt": 0.0,
            "ftpf": 0.0,
            "ffpf": 0.0,
            "mu": row["mu"] + (split != "test"),  # what other splits say must not matter
            "nu": row["nu"],
            "flow_time": row["t"],
            "heatmap": [0.04] * 25,
        }
        for row in table.to_dict("records")
        for split in SPLITS
    ]
    results.write_cell(_cell_row(cell, status), evaluations)
    return cell


def _cell_row(cell: Cell, status: str) -> dict[str, Any]:
    """The row of `cells`."""
    return {
        "study": "linear-orthogonal",
        "kind": "training",
        **cell_columns(cell),
        "num_classes": cell.options["num_classes"],
        "status": status,
        "status_reason": "" if status == "done" else "loss is not finite",
        "steps": 2_000,
        "total_train_seconds": 2.0,
        "total_evaluate_seconds": 0.5,
        "total_seconds": 3.0,
        "device": "cpu",
        "threads": 1,
        "pack": 1,
        "micro_batch": 250,
        "shared_prefix": False,
        "code_version": "1a2b3c4",
        "package_versions": '{"numpy": "2.4.6"}',
        "finished_at": f"2026-01-01T00:00:{cell.seed:02d}+00:00",
    }


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
