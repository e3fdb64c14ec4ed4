"""Means over the seeds of an option, as recorded: what a search improves, what ASHA ranks by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from study import tasks
from study.results import Results

_FACTS = [
    "cell_id", "cell", "comparison_id", "paradigm", "schedule", "stage", "task", "num_classes",
    "status", "finished_at",
]  # fmt: skip
_METRICS = ["cell_id", "split", "budget_fraction", "accuracy", "saif"]


def recorded(results: Results, cell_ids: Iterable[str] | None = None) -> pd.DataFrame:
    """Cells joined with their evaluations on the validation split; one row if there are none.

    Args:
        results: that hold them.
        cell_ids: only of these cells; None: of all.
    """
    cells, evaluations = results.tables(cell_ids, _FACTS, _METRICS)
    rows = evaluations.to_pandas()
    return cells.to_pandas().merge(rows[rows["split"] == "validation"], how="left", on="cell_id")


def means(option: pd.DataFrame, metric: str) -> dict[float, float]:
    """Fraction of the budget -> mean of a metric over an option's seeds, where each has a number.

    A seed that diverged counts as a guess from there to the end, as while it trained.

    Args:
        option: rows of `recorded`.
        metric: a column of theirs.
    """
    values = option.pivot(index="budget_fraction", columns="cell_id", values=metric)
    diverged = option[option["status"] == "diverged"].drop_duplicates("cell_id")
    for cell in diverged.to_dict("records"):
        guess = tasks.modality(cell["task"]).guess(cell["num_classes"])
        values.loc[1.0, cell["cell_id"]] = guess[metric]
    values = values.sort_index()
    ids = diverged["cell_id"]
    values[ids] = values[ids].bfill()
    found: dict[Any, float] = values.mean(axis=1, skipna=False).dropna().to_dict()
    return found
