"""The values of every cell at one cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.digest.cut import Cut, Evaluations, read_around
from analysis.digest.reading import measures_of, with_measures
from analysis.digest.sources import Source
from analysis.groups import GROUP, OPTION, finite_evaluations, in_order
from study import tasks
from study.results import FURTHER, INSTANCES, KEY, METRICS, SPLITS, ResultsError

_STEPS = ["step", "mosaics_seen", "compute_flops"]
_COUNTS = [*_STEPS, "num_evaluated"]
UNBOUNDED = {"loss"} | {
    measure.column
    for task in tasks.TASKS.values()
    for measure in task.modality.measures
    if not measure.bounded
}
"""Metrics that may exceed 1."""

_ROUNDING = 1e-6
_PLACE = ["cell_id", "split"]
_ORDER = [*GROUP, *OPTION, "seed", "cell_id"]


@dataclass(frozen=True, eq=False)
class CutCells:
    """Cells and their values at the cut.

    Attributes:
        cells: one row a cell.
        cuts: one row a comparison and split, see `analysis.digest.cut.Evaluations`.
        table: one row a (cell, split), as `analysis.equal_compute` describes it. Where values are
            interpolated, `weight` is the share of the later evaluation, at `next_fraction`, and
            `between_<metric>` how far a value may be off that rises or falls steadily.
        measures: columns of `table` for the measures of their own that recorded runs have, where
            the column `measures` was asked for.
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
    heatmap = [] if cut.threshold is None else ["heatmap"]
    found = read_around(source, cut, [*columns, *heatmap])
    cells = in_order(source.cells, _ORDER)
    at_cut = _interpolated(found, cut)
    measures = measures_of(at_cut)
    table = _counted(_table(cells, at_cut, found.cuts), measures).assign(axis=cut.axis)
    return CutCells(source.cells, found.cuts, table, measures)


def _interpolated(found: Evaluations, cut: Cut) -> pd.DataFrame:
    """One row a (cell, split), and its values at the cut, if it has any within it."""
    rows = with_measures(
        cut.with_saif(found.rows).drop(columns=["task", "heatmap"], errors="ignore")
    )
    last = found.places.merge(rows[~rows["next"]].drop(columns="next"), on=KEY, how="left")
    after = last[_PLACE].merge(rows[rows["next"]], on=_PLACE, how="left")
    share, between = last["weight"], last["weight"] > 0
    if not between.any():
        return last
    for name in {*METRICS, *FURTHER, *_STEPS, "train_seconds", *measures_of(rows)} & set(last):
        old, new = last[name].astype(float), after[name].astype(float)
        values = old + share * (new - old)
        if name in _STEPS:
            values = values.round()
        else:
            most = share.where(share > 0.5, 1 - share) * (new - old).abs()
            last[f"between_{name}"] = most.where(between, 0.0)
        last[name] = values.where(between, old)  # 0 times NaN is NaN
    return last


def _table(cells: pd.DataFrame, at_cut: pd.DataFrame, cuts: pd.DataFrame) -> pd.DataFrame:
    """One row a (cell, split), also of lost cells without any evaluation within the cut."""
    measured = at_cut["split"].unique()
    splits = [name for name in SPLITS if name in measured] or [*SPLITS]
    table = cells.merge(pd.DataFrame({"split": splits}), how="cross")
    table = table.merge(at_cut, on=_PLACE, how="left")
    table = table.merge(cuts[["comparison_id", "split", "cut"]], how="left").fillna({"cut": 1.0})
    lost = table["status"].isin(["diverged", "censored"])
    return table[table["budget_fraction"].notna() | lost].reset_index(drop=True)


def _counted(table: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """The table with what lost cells count as."""
    table = table.astype(dict.fromkeys(set(_COUNTS) & set(table), "Int64"))
    # A value that is not finite is not known: a done cell may have an infinite loss.
    metrics = [name for name in (*METRICS, *FURTHER, *measures) if name in table]
    metrics = [name for name in metrics if name != "foreground_share"]  # it is of the data
    table[metrics] = table[metrics].astype(float).where(np.isfinite(table[metrics].astype(float)))
    _refuse_impossible(table, measures)
    for name in ("saif", "accuracy", *measures):
        table[f"last_{name}"] = table[name]
    diverged, went_on = table["status"] == "diverged", table.pop("went_on")
    on_any = went_on.eq(True).groupby(table["cell_id"]).transform("any")
    went_on = went_on.where(went_on.notna(), on_any).eq(True)
    # Lost behind the cut, but last measured on this split before it: what it had there is unknown.
    unknown = diverged & went_on & ~table.pop("reached").eq(True)
    table["diverged"] = diverged & ~went_on
    table.loc[table["diverged"] | unknown, metrics] = np.nan
    table.loc[table["diverged"], [*table.filter(like="between_")]] = 0.0  # it counts as a constant
    table.loc[table["diverged"] & ~_nowhere_known(table), "saif"] = 0.0
    table.loc[table["diverged"], measures] = 0.0
    for task in table["task"].unique():
        lost = table["diverged"] & (table["task"] == task)
        for measure in tasks.modality(task).measures:
            if measure.column in table:
                table.loc[lost, measure.column] = measure.lost
        guessed = tasks.modality(task).guess(table.loc[lost, "num_classes"].astype(float))
        table.loc[lost, "accuracy"] = guessed["accuracy"]
    return table


def _nowhere_known(table: pd.DataFrame) -> pd.Series:
    """Whether no instance of each row's split has a known foreground, as other rows recorded."""
    if "foreground_share" not in table:
        return pd.Series(False, index=table.index)
    shares = table.groupby(["comparison_id", "split"])["foreground_share"]
    return shares.transform("max").eq(0)


def _refuse_impossible(table: pd.DataFrame, measures: Sequence[str]) -> None:
    """Refuses metrics outside [0, 1], but those that are no fractions or may exceed 1."""
    for name in sorted(({*METRICS, *FURTHER, *measures} - UNBOUNDED) & set(table)):
        wrong = (table[name] < -_ROUNDING) | (table[name] > 1 + _ROUNDING)
        if wrong.any():
            row = table[wrong].iloc[0]
            raise ResultsError(
                f"cell {row['cell_id']} has {name} {row[name]:g} on the {row['split']} split, "
                "which is not a fraction. Move its files away and run its study again."
            )


def heatmaps_of(table: pd.DataFrame, evaluations: pd.DataFrame) -> pd.Series:
    """The heat map of each row of a table at the cut; None: it has none.

    Args:
        table: rows at the cut; `weight` and `next_fraction` interpolate, see `CutCells`.
        evaluations: evaluations of its cells, with their heat maps.
    """
    recorded = evaluations.loc[evaluations["heatmap"].notna(), [*KEY, "heatmap"]]
    trained = table["saif"].notna() & ~table["diverged"]
    places = [
        table[_PLACE].assign(budget_fraction=table[name].where(trained))
        for name in ("budget_fraction", "next_fraction")
    ]
    last, after = (
        place.merge(recorded, how="left")["heatmap"].astype(object).map(np.asarray, "ignore")
        for place in places
    )
    weight = table["weight"].to_numpy()
    values = last.where(weight == 0, (1 - weight) * last + weight * after)
    known = last.notna() & ((weight == 0) | after.notna())
    return values.where(known, None).set_axis(table.index)


def with_images(table: pd.DataFrame, evaluations: pd.DataFrame) -> pd.DataFrame:
    """The rows at the cut with the columns `INSTANCES` and `base_images`, as far as recorded.

    Args:
        table: rows at the cut.
        evaluations: of the cells whose images are wanted, with the columns `KEY` and perhaps
            those.
    """
    held = evaluations.reindex(columns=[*KEY, *INSTANCES, "base_images"])
    return table.merge(held[held["instances"].notna()], on=KEY, how="left")


def rows_within(evaluations: pd.DataFrame, found: CutCells, cut: Cut) -> pd.DataFrame:
    """The finite evaluations up to the cut, with SAIF at its threshold.

    Rows that stand for a cell without evaluations stay.
    """
    finite = evaluations.index.isin(finite_evaluations(evaluations).index)
    limits = evaluations[["comparison_id", "split"]].merge(found.cuts, how="left")
    by_fraction = evaluations["budget_fraction"].to_numpy() <= limits["fraction"].to_numpy()
    by_value = evaluations[cut.column].to_numpy(float) <= limits["value"].to_numpy()
    kept = evaluations["split"].isna() | (finite & (by_fraction | by_value))
    return cut.with_saif(evaluations[kept])
