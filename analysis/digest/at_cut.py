"""The values of every cell at one cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.digest.cut import Cut, read_around
from analysis.digest.measures import measures
from analysis.digest.read import Source, with_measures
from analysis.groups import GROUP, OPTION, finite_evaluations, in_order
from study.results import FURTHER, INSTANCES, KEY, METRICS

_STEPS = ["step", "mosaics_seen", "compute_flops"]
_COUNTS = [*_STEPS, "num_evaluated"]
_PLACE = ["cell_id", "split"]
_ORDER = [*GROUP, *OPTION, "seed", "cell_id"]


@dataclass(frozen=True, eq=False)
class CutCells:
    """Cells and their values at the cut.

    Attributes:
        cells: one row per cell.
        cuts: one row per comparison and split, see `analysis.digest.cut.Evaluations`.
        table: one row per (cell, split), as `analysis.equal_compute` describes it. Where values
            are interpolated, `weight` is the share of the later evaluation, at `next_fraction`,
            and `between_<metric>` how far a value may be off that rises or falls steadily.
        measures: columns of `table` for the measures of their own that recorded runs have.
    """

    cells: pd.DataFrame
    cuts: pd.DataFrame
    table: pd.DataFrame
    measures: list[str]


def cut_cells(source: Source, cut: Cut, columns: Sequence[str]) -> CutCells:
    """Cuts every cell where its comparison is cut.

    Args:
        source: cells and their evaluations.
        cut: where and how to cut.
        columns: of the evaluations. Between evaluations, metrics and costs (steps, mosaics,
            compute, time) are interpolated.

    Raises:
        ResultsError: see `analysis.digest.cut.read_around`.
    """
    found = read_around(source, cut, columns)
    recorded = cut.with_saif(found.rows).drop(columns=["task", "heatmap"], errors="ignore")
    rows = with_measures(recorded)
    own = rows.columns.difference(recorded.columns).tolist()
    within, after = (rows[rows["next"] == later].drop(columns="next") for later in (False, True))
    table = in_order(source.cells, _ORDER).merge(found.places, on="cell_id")
    table = _interpolated(table.merge(within, on=KEY, how="left"), after, own)
    return CutCells(source.cells, found.cuts, _counted(table, own).assign(axis=cut.axis), own)


def _interpolated(table: pd.DataFrame, after: pd.DataFrame, own: Sequence[str]) -> pd.DataFrame:
    """The values at the cut, of those within it and the evaluations after it."""
    weight = table["weight"]
    exactly = ~(weight > 0)
    if exactly.all():
        return table
    names = sorted({*METRICS, *FURTHER, *own, "train_seconds", *_STEPS} & {*table})
    old = table[names].astype(float)
    change = table[_PLACE].merge(after, on=_PLACE, how="left")[names].astype(float) - old
    values = old + change.mul(weight, axis="index")
    off = change.abs().mul(np.maximum(weight, 1 - weight), axis="index")
    values[exactly], off[exactly] = old, 0.0  # 0 times NaN is NaN
    off = off.drop(columns=_STEPS, errors="ignore").add_prefix("between_")
    return table.assign(**values.round(dict.fromkeys(_STEPS, 0))).join(off)


def _counted(table: pd.DataFrame, own: Sequence[str]) -> pd.DataFrame:
    """The table with what lost cells count as."""
    table = table.astype(dict.fromkeys(set(_COUNTS) & set(table), "Int64"))
    of_data = {"foreground_share"}
    names = sorted({*METRICS, *FURTHER, *own} & {*table} - of_data)
    # A value that is not finite is not known: a done cell may have an infinite loss.
    table[names] = table[names].astype(float).replace([np.inf, -np.inf], np.nan)
    for name in ("saif", "accuracy", *own):
        table[f"last_{name}"] = table[name]
    lost = table["diverged"]
    table.loc[lost | table.pop("unknown"), names] = np.nan
    for task in table["task"].unique():
        mine = lost & (table["task"] == task)
        for name, measure in measures(task, own).items():
            if name in names:
                table.loc[mine, name] = measure.lost(table["num_classes"].astype(float))
    if "foreground_share" in table:
        share = table.groupby(["comparison_id", "split"])["foreground_share"].transform("max")
        table.loc[lost & share.eq(0), "saif"] = np.nan  # no instance has a known foreground
    table.loc[lost, [*table.filter(like="between_")]] = 0.0  # it counts as a constant
    return table


def heatmaps_of(table: pd.DataFrame, evaluations: pd.DataFrame) -> pd.Series:
    """The heat map of each row of a table at the cut; None: it has none.

    Args:
        table: rows at the cut; `weight` and `next_fraction` interpolate, see `CutCells`.
        evaluations: evaluations of its cells, with their heat maps.
    """
    held = evaluations.reindex(columns=[*KEY, "heatmap"]).dropna(subset="heatmap")
    recorded = held.set_index(KEY)["heatmap"].astype(object).map(np.asarray)
    trained, weight = table["saif"].notna() & ~table["diverged"], table["weight"]
    first, then = (
        recorded.reindex(pd.MultiIndex.from_frame(table[[*_PLACE, name]])).set_axis(table.index)
        for name in ("budget_fraction", "next_fraction")
    )
    then = then.where(weight > 0, first)
    values = (1 - weight) * first + weight * then
    return values.where(trained & first.notna() & then.notna(), None)


def with_images(table: pd.DataFrame, evaluations: pd.DataFrame) -> pd.DataFrame:
    """The rows at the cut with the columns `INSTANCES` and `base_images`, as far as recorded.

    Args:
        table: rows at the cut.
        evaluations: of the cells whose images are wanted, with the columns `KEY` and perhaps
            those.
    """
    held = evaluations.reindex(columns=[*KEY, *INSTANCES, "base_images"])
    return table.merge(held.dropna(subset="instances"), on=KEY, how="left")


def rows_within(evaluations: pd.DataFrame, found: CutCells, cut: Cut) -> pd.DataFrame:
    """The finite evaluations up to the cut, with SAIF at its threshold.

    Rows that stand for a cell without evaluations stay.
    """
    limits = evaluations[["comparison_id", "split"]].merge(found.cuts, how="left")
    limits = limits.set_axis(evaluations.index)
    by_fraction = evaluations["budget_fraction"] <= limits["fraction"]
    by_value = evaluations[cut.column].astype(float) <= limits["value"]
    finite = evaluations.index.isin(finite_evaluations(evaluations).index)
    kept = evaluations["split"].isna() | (finite & (by_fraction | by_value))
    return cut.with_saif(evaluations[kept])
