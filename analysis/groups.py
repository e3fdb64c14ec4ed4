"""The terms of a comparison, and the order in which its parts are shown.

A *comparison* is all cells that differ in nothing but schedule and seed (`comparison_id`); a
*group* is one paradigm of it; an *option* is one learning rate, last learning rate and switch
point of a group, run with several seeds.

Cells that another kind of sections shows (`study.reported.SectionOf`) are in no comparison.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from study.reported import SECTIONS
from study.results import RECORDED

GROUP = ["task", "m", "paradigm"]
OPTION = ["lr", "last_lr", "switch_point", "schedule"]
"""Columns of an option; `schedule` adds something only if it has more than two phases."""

PARADIGM_ORDER = (
    "hard", "hard-sampled", "hard-running", "soft", "hybrid", "hybrid-sampled", "hybrid-running",
    "lvml", "lvml-sampled",
)  # fmt: skip

STAND_INS = {
    "hard": ("hard-running", "hard-sampled"),
    "hybrid": ("hybrid-running", "hybrid-sampled"),
}
"""Where a comparison has no exact hard attention, these stand for it, the first that there is."""

PARADIGMS = ("soft", "hard", "lvml")
"""Paradigms that sections 3 and 4 of the paper define, in the order of its panels."""

_TRAINED = ("training", RECORDED)
"""Kinds of cells that spent a budget."""

Select = str
"""Name of the measure that chooses among options: ``accuracy``, ``saif``, or one of its own."""

Axis = Literal["flops", "seconds", "mosaics"]

AXIS_NAMES: dict[str, Axis] = {"examples": "mosaics"}
"""What an axis is called, too: recorded runs are trained on examples."""

AXES: dict[Axis, str] = {
    "flops": "compute_flops",
    "seconds": "train_seconds",
    "mosaics": "mosaics_seen",
}
"""Axis that a comparison may hold equal -> its column."""


def paradigm_order(names: Iterable[str]) -> list[str]:
    """As in `PARADIGM_ORDER`, then the others by name; each once."""
    return sorted(set(names), key=_rank)


def in_order(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The rows sorted by columns, paradigms in `paradigm_order`, with a new index."""
    return table.sort_values(
        by, key=lambda c: c.map(_rank) if c.name == "paradigm" else c, ignore_index=True
    )


def best_first(
    options: pd.DataFrame, group: list[str], score: str, ties: list[str], sign: int = 1
) -> pd.DataFrame:
    """The options that can be chosen, by group, best first.

    Args:
        options: one row an option, with `can_be_chosen` and `validation_loss`.
        group: columns that name the group of an option.
        score: column of the validation score; an option without a score cannot be chosen. Ties go
            to the lower validation loss.
        ties: columns whose smaller value decides if the losses are equal, too.
        sign: times this, a higher score is better.
    """
    table = options[options["can_be_chosen"] & options[score].notna()]
    # Means of the same shares, summed in another order, differ in the last bit: still a tie.
    rounded = {
        "_score": -sign * table[score].round(12),
        "_loss": table["validation_loss"].round(12),
    }
    ordered = in_order(table.assign(**rounded), [*group, *rounded, *ties])
    return ordered.drop(columns=[*rounded])


def is_recorded(cells: pd.DataFrame) -> pd.Series:
    """Whether each row is of a run that another training loop trained."""
    return cells["kind"] == RECORDED


def trains_nothing(cells: pd.DataFrame) -> pd.Series:
    """Whether each row has no budget: it is of a kind that takes no training steps."""
    return ~cells["kind"].isin(_TRAINED)


def claimed(cells: pd.DataFrame) -> pd.Series:
    """Of each row the module of the section that shows it; empty: it belongs to a comparison.

    Of a kind of cell that no section shows, the name of the kind.
    """
    columns = cells["kind"], cells["task"], cells["alpha"].notna()
    return pd.Series([*map(_claimed, *columns)], cells.index, dtype=object)


@functools.cache
def _claimed(kind: str, task: str, held: bool) -> str:
    shown = (name for name, each in SECTIONS.items() if each.shows(kind, task, held))
    return next(shown, "" if kind in _TRAINED else kind)


def is_compared(cells: pd.DataFrame) -> pd.Series:
    """Whether each row belongs to a comparison: no other section shows it."""
    return claimed(cells) == ""


def stacked(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables of the same columns stacked; empty ones do not change the types of others."""
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else parts[0]


def rows_of(choice: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the chosen options; missing switch points are equal."""
    return rows.merge(choice[GROUP + OPTION], on=GROUP + OPTION)


def with_chosen(options: pd.DataFrame, choice: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The options that were tried, with the column `chosen`: whether each was.

    Args:
        options: one row an option.
        choice: the chosen ones.
        keys: columns that name an option; missing values are equal.
    """
    table = options.merge(choice[keys].assign(chosen=True), on=keys, how="left")
    return table.assign(chosen=table["chosen"].eq(True))


def finite_evaluations(rows: pd.DataFrame) -> pd.DataFrame:
    """Leaves out the rows that a diverged cell recorded with a loss that is not finite.

    Also leaves out the rows that stand for a cell without evaluations, and those of recorded runs
    at which nothing was measured.
    """
    lost = (rows["status"] == "diverged") & ~np.isfinite(rows["loss"].astype(float))
    measured = rows.reindex(columns=["accuracy", "saif", "measures"]).notna().any(axis=1)
    lost = lost.where(~is_recorded(rows), ~measured)
    return rows[rows["split"].notna() & ~lost]


def _rank(name: str) -> str:
    known = PARADIGM_ORDER.index(name) if name in PARADIGM_ORDER else len(PARADIGM_ORDER)
    return f"{known}{name}"
