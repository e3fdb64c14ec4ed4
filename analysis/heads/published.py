"""Numbers of the paper, and ours beside them.

Figure 3 of "Dissecting the Interplay of Attention Paths" (arXiv 2405.15926): a network of two
layers with four heads each. They are of one network, so no interval stands beside them.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from analysis.heads.settings import Setting
from analysis.statistics import interval_columns

TASK, HEADS = "omniglot", 8

ACCURACY = 0.838
"""Accuracy of the trained network before pruning."""

DROPS = (0.020, 0.008, 0.043, 0.084, 0.078, 0.073, 0.095, 0.089)
"""Accuracy lost without one head, by increasing score of it."""

SOURCE = (
    "Published numbers (arXiv 2405.15926, figure 3) are of 1,623 characters and one network: they "
    "have no interval, and another network differs from them."
)


def drops(setting: Setting) -> tuple[float, ...]:
    """The published drops where the setting is of their task and number of heads; else none."""
    return DROPS if setting.task == TASK and sum(setting.heads) == HEADS else ()


def beside(setting: Setting, trained: pd.DataFrame, ranks: pd.DataFrame) -> pd.DataFrame:
    """The published numbers beside ours; empty of other tasks and numbers of heads.

    Args:
        setting: the setting.
        trained, ranks: as `analysis.heads.means` gives them.

    Returns:
        One row a published number: `measure` (accuracy, drop), `rank` of the head's score
        (missing for the accuracy), `num_seeds`, `ours` with `_low` and `_high`, NaN where we have
        none, and `published`.
    """
    records: list[tuple[Any, ...]] = []
    of_task = drops(setting)
    if of_task:
        mine = trained[trained["num_seeds"] > 0]
        known = len(mine) == 1  # of several learning rates none is that of the paper
        ours = _ours(mine.iloc[0] if known else None, "accuracy_test")
        records.append(("accuracy", math.nan, *ours, ACCURACY))
    by_rank = ranks.set_index("rank")
    for rank, drop in enumerate(of_task, start=1):
        row = by_rank.loc[rank] if rank in by_rank.index else None
        records.append(("drop", rank, *_ours(row, "drop"), drop))
    columns = ["measure", "rank", "num_seeds", *interval_columns("ours"), "published"]
    return pd.DataFrame(records, columns=columns)


def _ours(row: Any, measure: str) -> tuple[float, ...]:
    if row is None:
        return (0, math.nan, math.nan, math.nan)
    return (int(row["num_seeds"]), *(row[column] for column in interval_columns(measure)))
