"""Means over the seeds of networks, of their numbers and of each entry of their vectors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.rules.statistics import CONFIDENCE, interval_columns, t_interval
from chapters.paths.section.networks import NETWORK
from chapters.paths.section.settings import Setting, Vector, once


def over_seeds(
    cells: pd.DataFrame, by: Sequence[str], measures: Sequence[str], lost: Sequence[str] = ()
) -> pd.DataFrame:
    """Means over the seeds of every group of cells.

    Args:
        cells: one row a cell, with `status`, the columns `by` and `measures`.
        by: columns that name a group.
        measures: columns of numbers, which count where the cell is done.
        lost: other ends of a cell that are counted.

    Returns:
        One row a group, in their order: `by`, `num_seeds` that are done, `num_<lost>`, and each of
        `measures` with `_low` and `_high` (t interval; NaN with one seed, all three where a seed's
        value is not known).
    """
    ends = {"num_seeds": "done", **{f"num_{status}": status for status in lost}}
    counts = {name: cells["status"] == status for name, status in ends.items()}
    table = cells[[*by]].assign(**counts).groupby([*by], sort=False).sum()
    done = cells[cells["status"] == "done"].groupby([*by], sort=False)
    for name in measures:
        bounds = done[name].apply(t_interval, CONFIDENCE)
        found = pd.DataFrame([*bounds], bounds.index, interval_columns(name), dtype=np.float64)
        table = table.join(found)
    return table.reset_index()


def in_bounds(table: pd.DataFrame) -> pd.DataFrame:
    """The table with means and intervals of accuracies cut at 0 and 1, however few their seeds."""
    shares = [name for name in table if str(name).startswith("accuracy")]
    return table.assign(**table[shares].clip(0, 1))


def by_entry(rows: pd.DataFrame, entry: str, vectors: Sequence[str]) -> pd.DataFrame:
    """A row for each entry of vectors.

    Args:
        rows: with columns of vectors (entries,); empty ones are left out.
        entry: the column that numbers the entries from 1.
        vectors: columns of vectors of the same length.
    """
    there = rows[rows[vectors[0]].map(len) > 0].reset_index(drop=True)
    table = there.explode([*vectors])
    numbers = table.groupby(level=0).cumcount() + 1
    return table.assign(**{entry: numbers}).reset_index(drop=True)


@once
def order_parameters(setting: Setting) -> pd.DataFrame:
    """The order parameter of every network, entry by entry.

    Returns:
        One row a network and entry: `method`, `network_width`, `paths`, `path`, `other_path`,
        `num_seeds`, and `order_parameter` with `_low` and `_high` over the seeds.
    """
    solved = setting.rows[setting.rows["order_parameter"].map(len) > 0]
    pairs = solved["path_names"].map(lambda names: [*itertools.product(names, repeat=2)])
    table = by_entry(solved.assign(pair=pairs), "entry", ["order_parameter", "pair"])
    table = table.assign(path=table["pair"].str[0], other_path=table["pair"].str[1])
    return over_seeds(table, [*NETWORK, "path", "other_path"], ["order_parameter"])


def mean_order_parameter(setting: Setting, method: str, width: float) -> Vector | None:
    """Mean over seeds of U (D, D) of a network with all paths; None without a seed."""
    found = setting.of(method, width)["order_parameter"].tolist()
    if not found:
        return None
    mean = np.mean(np.stack(found), axis=0)
    return np.asarray(mean.reshape(math.isqrt(len(mean)), -1))


@once
def overlaps(setting: Setting) -> pd.DataFrame:
    """How the principal components of each kernel overlap with the labels.

    Returns:
        One row a network and component (1 the largest eigenvalue's): `method`, `network_width`,
        `paths`, `component`, `num_seeds`, and `overlap` (absolute cosine) with `_low` and
        `_high`; networks without recorded overlaps are left out.
    """
    rows = setting.rows.rename(columns={"overlaps": "overlap"})
    table = by_entry(rows, "component", ["overlap"])
    return over_seeds(table, [*NETWORK, "component"], ["overlap"])
