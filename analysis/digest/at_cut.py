"""The values of every cell at one cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.digest.cut import COUNTS, MEASURES, Cut, read_around
from analysis.digest.measures import declared_names, measures_of
from analysis.digest.read import Source, with_measures
from analysis.groups import GROUP, OPTION, finite_evaluations, in_order
from study.results import KEY

_STEPS = ["step", "mosaics_seen", "compute_flops"]
_PLACE = ["cell_id", "split"]
_ORDER = [*GROUP, *OPTION, "seed", "cell_id"]


class CutCells(NamedTuple):
    """The values of cells at the cut.

    Attributes:
        cuts: one row per comparison and split, see `analysis.digest.cut.Evaluations`.
        table: one row per (cell, split), as `analysis.equal_compute` describes it. Where values
            are interpolated, `weight` is the share of the later evaluation, at `next_fraction`,
            and `between_<metric>` how far a value may be off that rises or falls steadily.
        measures: columns of `table` for the measures of their own that recorded runs have.
    """

    cuts: pd.DataFrame
    table: pd.DataFrame
    measures: list[str]


def cut_cells(source: Source, cut: Cut) -> CutCells:
    """Cuts every cell where its comparison is cut.

    Between evaluations, measures and costs (steps, mosaics, compute, time) are interpolated.

    Args:
        source: cells and their evaluations.
        cut: where and how to cut.

    Raises:
        ResultsError: see `analysis.digest.cut.read_around`.
    """
    found = read_around(source, cut)
    recorded = cut.with_saif(found.rows).drop(columns=["task", "heatmap"], errors="ignore")
    rows = with_measures(recorded)
    own = rows.columns.difference(recorded.columns).tolist()
    if "loss" in {*declared_names(source.cells).explode()}:  # a column, but of few a measure
        own.append("loss")
    later = rows.pop("next")
    table = in_order(source.cells, _ORDER).merge(found.places, on="cell_id")
    table = table.merge(rows[~later], on=KEY, how="left")
    table = _interpolated(table, rows[later], [*MEASURES, *own])
    return CutCells(found.cuts, _counted(table, own).assign(axis=cut.axis), own)


def _interpolated(table: pd.DataFrame, after: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The values at the cut, of those within it and the evaluations after it."""
    weight = table["weight"].fillna(0.0)
    if not weight.any():
        return table
    moved = [*dict.fromkeys(names), "train_seconds", *_STEPS]
    old = table[moved].astype(float)
    change = table[_PLACE].merge(after, on=_PLACE, how="left")[moved].astype(float) - old
    change[weight == 0] = 0.0  # whatever is known of the evaluation after it
    values = old + change.mul(weight, axis="index")
    off = change.abs().mul(np.maximum(weight, 1 - weight), axis="index")
    off = off.drop(columns=_STEPS).add_prefix("between_")
    return table.assign(**values.round(dict.fromkeys(_STEPS, 0))).join(off)


def _counted(table: pd.DataFrame, own: Sequence[str]) -> pd.DataFrame:
    """The table with what lost cells count as."""
    table = table.astype(dict.fromkeys(COUNTS, "Int64"))
    names = [*dict.fromkeys([*MEASURES, *own])]
    # A value that is not finite is not known: a done cell may have an infinite loss.
    table[names] = table[names].astype(float).replace([np.inf, -np.inf], np.nan)
    for name in ("saif", "accuracy", *own):
        table[f"last_{name}"] = table[name]
    if "loss" in own:
        is_measure = declared_names(table).map(lambda names: "loss" in names, na_action="ignore")
        table["last_loss"] = table["loss"].where(is_measure.eq(True))
    lost = table["diverged"]
    share = table["foreground_share"]  # of the data, whatever became of the cell
    table.loc[lost | table.pop("unknown"), names] = np.nan
    for _, mine in table[lost].groupby("comparison_id"):
        for name, measure in measures_of(mine, own).items():
            table.loc[mine.index, name] = measure.lost(mine["num_classes"].astype(float))
    most = share.groupby([table["comparison_id"], table["split"]]).transform("max")
    table.loc[lost & most.eq(0), "saif"] = np.nan  # no instance has a known foreground
    table.loc[lost, [*table.filter(like="between_")]] = 0.0  # it counts as a constant
    return table.assign(foreground_share=share)


def heatmaps_of(table: pd.DataFrame, evaluations: pd.DataFrame) -> pd.Series:
    """The heat map of each row of a table at the cut; None: it has none.

    Args:
        table: rows at the cut; `weight` and `next_fraction` interpolate, see `CutCells`.
        evaluations: evaluations of its cells, perhaps with their heat maps.
    """
    held = evaluations.reindex(columns=[*KEY, "heatmap"]).dropna(subset="heatmap")
    held["heatmap"] = held["heatmap"].astype(object).map(np.asarray)
    after = held.rename(columns={"budget_fraction": "next_fraction", "heatmap": "then"})
    rows = table.merge(held, "left").merge(after, "left").set_axis(table.index)
    weight, then = rows["weight"], rows["then"].where(rows["weight"] > 0, rows["heatmap"])
    trained = rows["saif"].notna() & ~rows["diverged"] & rows["heatmap"].notna() & then.notna()
    return ((1 - weight) * rows["heatmap"] + weight * then).where(trained, None)


def rows_within(evaluations: pd.DataFrame, found: CutCells, cut: Cut) -> pd.DataFrame:
    """The finite evaluations up to the cut, with SAIF at its threshold and all measures.

    Rows that stand for a cell without evaluations stay.
    """
    limits = evaluations[["comparison_id", "split"]].merge(found.cuts, how="left")
    limits = limits.set_axis(evaluations.index)
    by_fraction = evaluations["budget_fraction"] <= limits["fraction"]
    by_value = evaluations[cut.column].astype(float) <= limits["value"]
    finite = evaluations.index.isin(finite_evaluations(evaluations).index)
    kept = evaluations["split"].isna() | (finite & (by_fraction | by_value))
    rows = cut.with_saif(evaluations[kept])
    return rows.reindex(columns=rows.columns.union(found.measures, sort=False))
