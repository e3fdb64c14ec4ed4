"""Means over seeds of what is known of each network."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.attention_paths.networks import ALL, LIMIT, NETWORK, Vector, of_network
from analysis.attention_paths.settings import Setting
from analysis.statistics import CONFIDENCE, interval_columns, named_interval

MEASURES = (
    "accuracy", "accuracy_diagonal", "interplay", "gain", "loss", "distance", "largest_overlap",
)  # fmt: skip
"""Measures of a network that have a mean and an interval, see `Setting.rows`."""


def networks(setting: Setting) -> pd.DataFrame:
    """Every network of a setting: means over its seeds.

    Returns:
        One row a network: `method`, `network_width`, `paths`, `num_seeds`, `num_diverged`,
        `num_unconverged`, and each of `MEASURES` with `_low` and `_high` (t interval; NaN with
        one seed, all three where a seed's value is not known).
    """
    records = []
    for _, cells in setting.cells.groupby(NETWORK, sort=False):
        network = cells[NETWORK].iloc[0].to_dict()
        rows, lost = (
            of_network(table, *network.values()) for table in (setting.rows, setting.unconverged)
        )
        record = {
            **network,
            "num_seeds": len(rows),
            "num_diverged": int((cells["status"] == "diverged").sum()),
            "num_unconverged": len(lost),
        }
        for name in MEASURES:
            record.update(named_interval(name, rows[name], CONFIDENCE))
        records.append(record)
    return pd.DataFrame(records)


def order_parameters(setting: Setting) -> pd.DataFrame:
    """The order parameter of every network, entry by entry.

    Returns:
        One row a network and entry: `method`, `network_width`, `paths`, `path`, `other_path`,
        `num_seeds`, and `order_parameter` with `_low` and `_high` over the seeds.
    """
    records = []
    for key, rows in setting.rows.groupby(NETWORK, sort=False):
        names = rows["path_names"].iloc[0]
        stacked = np.stack(rows["order_parameter"].tolist())
        for i, path in enumerate(names):
            for j, other in enumerate(names):
                entry = named_interval("order_parameter", stacked[:, i, j], CONFIDENCE)
                records.append((*key, path, other, len(rows), *entry.values()))
    columns = ["path", "other_path", "num_seeds", *interval_columns("order_parameter")]
    return pd.DataFrame(records, columns=[*NETWORK, *columns])


def mean_order_parameter(setting: Setting, method: str, width: float) -> Vector | None:
    """Mean over seeds of U (D, D) of a network with all paths; None without a seed."""
    found = setting.of(method, width)["order_parameter"].tolist()
    return np.asarray(np.mean(np.stack(found), axis=0)) if found else None


def overlaps(setting: Setting) -> pd.DataFrame:
    """How the principal components of each kernel overlap with the labels.

    Returns:
        One row a network and component (1 the largest eigenvalue's): `method`, `network_width`,
        `paths`, `component`, `num_seeds`, and `overlap` (absolute cosine) with `_low` and
        `_high`; networks without recorded overlaps are left out.
    """
    records = []
    for key, rows in setting.rows.groupby(NETWORK, sort=False):
        known = [vector for vector in rows["overlaps"] if len(vector)]
        for number, values in enumerate(zip(*known, strict=False), start=1):
            overlap = named_interval("overlap", values, CONFIDENCE)
            records.append((*key, number, len(known), *overlap.values()))
    columns = [*NETWORK, "component", "num_seeds", *interval_columns("overlap")]
    return pd.DataFrame(records, columns=columns)


def line(table: pd.DataFrame, method: str) -> pd.DataFrame:
    """The rows of a method with all paths; those of networks without a seed are left out."""
    mine = (table["method"] == method) & (table["paths"] == ALL) & (table["num_seeds"] > 0)
    return table[mine].reset_index(drop=True)


def limits(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the limits of infinite width, one a set of paths."""
    return table[(table["method"] == LIMIT) & (table["num_seeds"] > 0)].reset_index(drop=True)
