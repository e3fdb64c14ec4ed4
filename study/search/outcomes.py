"""Reads the metrics of a suggestion's cells from the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from study import tasks
from study.search.space import OBJECTIVES


@dataclass(frozen=True)
class Outcome:
    """What Optuna is told of a suggestion.

    Attributes:
        values: mean over seeds of each objective; None where it was stopped early.
        stopped_at: per cent of the budget, and the mean there; None where it was not.
    """

    values: list[float] | None = None
    stopped_at: tuple[int, float] | None = None


def outcome_of(
    cells: pd.DataFrame, evaluations: pd.DataFrame, objective: Sequence[str]
) -> Outcome | str:
    """The outcome of a suggestion whose cells are recorded, or why it has none.

    Args:
        cells: of the suggestion, as `Results.cells` gives them.
        evaluations: as `Results.evaluations` gives them.
        objective: metrics of `OBJECTIVES`.
    """
    if (cells["status"] == "censored").any():
        if len(objective) > 1:
            return "stopped early, with two objectives"
        return Outcome(stopped_at=last_before_censored(cells, evaluations, objective[0]))
    values = seed_means(cells, evaluations, objective)
    return Outcome(values) if np.isfinite(values).all() else "a metric has no value"


def seed_means(
    cells: pd.DataFrame, evaluations: pd.DataFrame, objective: Sequence[str]
) -> list[float]:
    """Mean over cells of each validation metric at the end of the budget.

    Args:
        cells: as `Results.cells` gives them, done or diverged.
        evaluations: as `Results.evaluations` gives them.
        objective: metrics of `OBJECTIVES`.

    Returns:
        One fraction a metric; a diverged cell counts as SAIF 0 and accuracy 1/C, or Bleu 0.
    """
    last = _validation(evaluations).drop_duplicates("cell_id", keep="last").set_index("cell_id")
    scores = cells.set_index("cell_id")[["task", "status", "num_classes"]]
    scores = scores.join(last[list(OBJECTIVES)])
    diverged = scores["status"] == "diverged"
    scores.loc[diverged, "saif"] = 0.0
    guess = scores["task"].map(lambda task: tasks.modality(task).chance) / scores["num_classes"]
    scores.loc[diverged, "accuracy"] = guess
    return [float(np.mean(scores[metric].to_numpy(float))) for metric in objective]


def last_before_censored(
    cells: pd.DataFrame, evaluations: pd.DataFrame, metric: str
) -> tuple[int, float]:
    """The furthest point of the censored cells, in per cent of the budget, and their mean there.

    Args:
        cells: as `Results.cells` gives them.
        evaluations: as `Results.evaluations` gives them.
        metric: of the validation split.
    """
    censored = cells.loc[cells["status"] == "censored", "cell_id"]
    rows = _validation(evaluations)
    rows = rows[rows["cell_id"].isin(censored)]
    furthest = float(rows["budget_fraction"].max())
    there = rows.loc[rows["budget_fraction"] == furthest, metric]
    return round(100 * furthest), float(np.mean(there.to_numpy(float)))


def _validation(evaluations: pd.DataFrame) -> pd.DataFrame:
    rows = evaluations[evaluations["split"] == "validation"]
    return rows.sort_values(["cell_id", "budget_fraction"])
