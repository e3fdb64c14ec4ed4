"""The evaluations of every cell at one cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.comparison.cut import Cut, CutCells
from analysis.groups import GROUP, OPTION, finite_evaluations, in_order
from study import tasks
from study.results import FURTHER, IMAGES, KEY, METRICS, SPLITS, ResultsError

_COUNTS = ["step", "mosaics_seen", "compute_flops", "num_evaluated"]
_UNBOUNDED = {"loss", "iou_f1", "cider", "caption_length"}
_ROUNDING = 1e-6
_ORDER = [*GROUP, *OPTION, "seed", "cell_id"]


def rows_at_cut(found: CutCells, cut: Cut) -> pd.DataFrame:
    """One row a (cell, split), as `equal_compute` describes it."""
    cells, last = found.cells, found.last
    splits = [SPLITS.index(name) for name in sorted(found.splits or SPLITS)]
    order = in_order(cells[_ORDER].assign(_cell=range(len(cells))), _ORDER)["_cell"].to_numpy()
    row_of = np.full((len(cells), len(SPLITS)), -1)
    row_of[last["cell"].to_numpy(int), last["split"].to_numpy(int)] = np.arange(len(last))
    cell = np.repeat(order, len(splits))
    split = np.tile(splits, len(cells))
    row = row_of[cell, split]

    recorded = row >= 0
    status = cells["status"].to_numpy(object)[cell]
    kept = recorded | (status == "diverged") | (status == "censored")
    cell, split, row, recorded, status = (
        values[kept] for values in (cell, split, row, recorded, status)
    )

    table = cells.iloc[cell].reset_index(drop=True)
    table["split"] = np.array(SPLITS, object)[split]
    measured = last.drop(columns=["cell", "split"]).reindex(row).reset_index(drop=True)
    table[measured.columns] = measured
    table = table.astype(dict.fromkeys(set(_COUNTS) & set(table), "Int64"))
    # A value that is not finite is not known: a done cell may have an infinite loss.
    metrics = [name for name in (*METRICS, *FURTHER, *found.measures) if name in table]
    metrics = [name for name in metrics if name != "foreground_share"]  # it is of the data
    table[metrics] = table[metrics].astype(float).where(np.isfinite(table[metrics].astype(float)))
    _refuse_impossible(table, found.measures)
    table["axis"] = cut.axis
    table["cut"] = found.fraction[cell]
    table["diverged"] = (status == "diverged") & ~(recorded & found.reached[cell, split])
    for name in ("saif", "accuracy", *found.measures):
        table[f"last_{name}"] = table[name]
    table.loc[table["diverged"], metrics] = np.nan
    table.loc[table["diverged"] & ~_nowhere_known(table), "saif"] = 0.0
    table.loc[table["diverged"], found.measures] = 0.0
    for task in table["task"].unique():
        lost = table["diverged"] & (table["task"] == task)
        for measure in tasks.modality(task).measures:
            if measure.column in table:
                table.loc[lost, measure.column] = measure.lost
        table.loc[lost, "accuracy"] = lost_accuracy(task, table.loc[lost, "num_classes"])
    return table


def lost_accuracy(task: str, num_classes: pd.Series) -> pd.Series:
    """What diverged cells of a task count as: 1/C, or 0 where a guess scores nothing."""
    chance = 1 / num_classes.astype(float)
    return chance if tasks.modality(task).chance else 0 * chance


def _nowhere_known(table: pd.DataFrame) -> pd.Series:
    """Whether no instance of each row's split has a known foreground, as other rows recorded."""
    if "foreground_share" not in table:
        return pd.Series(False, index=table.index)
    shares = table.groupby(["comparison_id", "split"])["foreground_share"]
    return shares.transform("max").eq(0)


def _refuse_impossible(table: pd.DataFrame, measures: Sequence[str]) -> None:
    """Refuses metrics outside [0, 1], but those that are no fractions or may exceed 1."""
    for name in sorted(({*METRICS, *FURTHER, *measures} - _UNBOUNDED) & set(table)):
        wrong = (table[name] < -_ROUNDING) | (table[name] > 1 + _ROUNDING)
        if wrong.any():
            row = table[wrong].iloc[0]
            raise ResultsError(
                f"cell {row['cell_id']} has {name} {row[name]:g} on the {row['split']} split: no "
                "fraction. Move its files away and run its study again."
            )


def heatmaps_of(table: pd.DataFrame, evaluations: pd.DataFrame) -> pd.Series:
    """The heat map of each row of a table at the cut; None: it has none.

    Args:
        table: rows at the cut; `weight` and `next_fraction` interpolate, see `CutCells.last`.
        evaluations: evaluations of its cells, with their heat maps.
    """
    held = evaluations[evaluations["split"].notna()]
    keys = zip(held["cell_id"], held["split"], held["budget_fraction"], strict=True)
    of: dict[Any, Any] = dict(zip(keys, held["heatmap"], strict=True))
    heatmaps = []
    for row in table.to_dict("records"):
        where = row["cell_id"], row["split"]
        heatmap = None if row["diverged"] else of.get((*where, row["budget_fraction"]))
        if heatmap is not None and row["weight"] > 0:
            beyond = of.get((*where, row["next_fraction"]))
            share = row["weight"]
            heatmap = (
                None if beyond is None else (1 - share) * np.asarray(heatmap) + share * beyond
            )
        heatmaps.append(heatmap)
    return pd.Series(heatmaps, index=table.index, dtype=object)


def with_images(table: pd.DataFrame, evaluations: pd.DataFrame) -> pd.DataFrame:
    """The rows at the cut with the columns `IMAGES`, missing where nothing is recorded.

    Args:
        table: rows at the cut.
        evaluations: of the cells whose images are wanted, with the columns `KEY` and perhaps
            `IMAGES`.
    """
    held = evaluations.reindex(columns=[*KEY, *IMAGES])
    return table.merge(held[held["image_count"].notna()], on=KEY, how="left")


def rows_within(evaluations: pd.DataFrame, found: CutCells, cut: Cut) -> pd.DataFrame:
    """The finite evaluations up to the cut, with SAIF at its threshold.

    Rows that stand for a cell without evaluations stay.
    """
    finite = finite_evaluations(evaluations)
    cell = pd.Index(found.cells["cell_id"]).get_indexer(pd.Index(finite["cell_id"]))
    value = found.value[cell, pd.Index(SPLITS).get_indexer(pd.Index(finite["split"]))]
    by_fraction = finite["budget_fraction"].to_numpy(float) <= found.fraction[cell]
    by_value = finite[cut.column].to_numpy(float) <= value
    within = np.flatnonzero(np.where(np.isnan(value), by_fraction, by_value))
    kept = finite.index[within].union(evaluations.index[evaluations["split"].isna()])
    rows = evaluations.loc[kept]
    if cut.threshold is not None:
        heatmaps = [
            None if each is None or np.ndim(each) == 0 else each for each in rows["heatmap"]
        ]
        lists = pa.array(heatmaps, pa.list_(pa.float64()))
        recorded = (rows["task"].to_numpy(object), rows["saif"].to_numpy(float))
        rows = rows.assign(saif=cut.saif_of(*recorded, pa.chunked_array([lists])))
    return rows
