"""Means over seeds of what is known of each network, and how theory and sampling agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.attention_paths.measures import relative_distance
from analysis.attention_paths.networks import ALL, LIMIT, NETWORK, THEORY, Vector
from analysis.attention_paths.settings import Setting
from analysis.statistics import CONFIDENCE, named_interval

MEASURES = (
    "accuracy", "accuracy_diagonal", "interplay", "gain", "loss", "distance", "largest_overlap",
)  # fmt: skip
"""Measures of a network that have a mean and an interval, see `Setting.rows`."""

AGREEMENT = ("predictor_error", "accuracy_difference")
"""Measures of how theory and sampling agree that have a mean and an interval."""


def networks(setting: Setting) -> pd.DataFrame:
    """Every network of a setting: means over its seeds.

    Returns:
        One row a network: `method`, `network_width`, `paths`, `num_seeds`, `num_diverged`,
        `num_unconverged`, and each of `MEASURES` with `_low` and `_high` (t interval; NaN with
        one seed, all three where a seed's value is not known).
    """
    records = []
    for key, cells in setting.cells.groupby(NETWORK, sort=False):
        rows, lost = (_of(table, key) for table in (setting.rows, setting.unconverged))
        record: dict[str, Any] = dict(zip(NETWORK, key, strict=True))
        record |= {
            "num_seeds": len(rows),
            "num_diverged": int((cells["status"] == "diverged").sum()),
            "num_unconverged": len(lost),
        }
        for name in MEASURES:
            record |= named_interval(name, rows[name], CONFIDENCE)
        records.append(record)
    return pd.DataFrame(records)


def agreement(setting: Setting) -> pd.DataFrame:
    """How far theory is from what was sampled, seed by seed, at every sampled width.

    Returns:
        One row a sampling method and width: `method`, `network_width`, `num_seeds` that theory
        and sampling share, `predictor_error` (distance of theory's mean predictor from the
        sampled one as a share of the latter) and `accuracy_difference` (theory minus sampled),
        each with `_low` and `_high`; `sampling_error`, the sampled mean's own Monte Carlo error
        as the same share; `order_parameter_difference`, the largest of any seed and entry of U;
        `r_hat` and `effective_sample_size`, the largest and smallest of all cells, converged or
        not; `num_unconverged`.
    """
    records = []
    for method, width in setting.sampled:
        cells = _of(setting.cells, (method, width, ALL))
        both = pairs(setting, method, width)
        records.append(
            {
                "method": method,
                "network_width": width,
                "num_seeds": len(both),
                **named_interval("predictor_error", both["predictor_error"], CONFIDENCE),
                "sampling_error": both["sampling_error"].mean(skipna=False),
                **named_interval("accuracy_difference", both["accuracy_difference"], CONFIDENCE),
                "order_parameter_difference": both["order_parameter_difference"].max(),
                "r_hat": cells["r_hat"].max(),
                "effective_sample_size": cells["effective_sample_size"].min(),
                "num_unconverged": len(_of(setting.unconverged, (method, width, ALL))),
            }
        )
    columns = ["method", "network_width", "num_seeds", *_with_bounds("predictor_error")]
    columns += ["sampling_error", *_with_bounds("accuracy_difference")]
    columns += ["order_parameter_difference", "r_hat", "effective_sample_size", "num_unconverged"]
    return pd.DataFrame(records, columns=columns)


def pairs(setting: Setting, method: str, width: float) -> pd.DataFrame:
    """Theory beside a sampling method at one width.

    Returns:
        One row a common seed, its index: `predictor_error`, `sampling_error`,
        `accuracy_difference` and `order_parameter_difference`, see `agreement`.
    """
    theory, sampled = setting.of(THEORY, width), setting.of(method, width)
    records = []
    seeds = [seed for seed in sampled.index if seed in theory.index]
    for seed in seeds:
        mine, other = theory.loc[seed], sampled.loc[seed]
        mean = other["predictor_mean"]
        records.append(
            {
                "predictor_error": relative_distance(mine["predictor_mean"], mean),
                "sampling_error": relative_distance(mean + other["predictor_mean_error"], mean)
                if len(other["predictor_mean_error"]) == len(mean)
                else np.nan,
                "accuracy_difference": mine["accuracy"] - other["accuracy"],
                "order_parameter_difference": float(
                    np.abs(mine["order_parameter"] - other["order_parameter"]).max()
                ),
            }
        )
    columns = ["predictor_error", "sampling_error", "accuracy_difference"]
    columns.append("order_parameter_difference")
    return pd.DataFrame(records, index=seeds, columns=columns, dtype=np.float64)


def order_parameters(setting: Setting) -> pd.DataFrame:
    """The order parameter of every network, entry by entry.

    Returns:
        One row a network and entry: `method`, `network_width`, `paths`, `path`, `other_path`,
        `num_seeds`, and `order_parameter` with `_low` and `_high` over the seeds.
    """
    records = []
    for key, rows in setting.rows.groupby(NETWORK, sort=False):
        names = setting.path_names(str(rows["paths"].iloc[0]))
        stacked = np.stack(rows["order_parameter"].tolist())
        for i, path in enumerate(names):
            for j, other in enumerate(names):
                record: dict[str, Any] = dict(zip(NETWORK, key, strict=True))
                record |= {"path": path, "other_path": other, "num_seeds": len(rows)}
                record |= named_interval("order_parameter", stacked[:, i, j], CONFIDENCE)
                records.append(record)
    columns = [*NETWORK, "path", "other_path", "num_seeds", *_with_bounds("order_parameter")]
    return pd.DataFrame(records, columns=columns)


def mean_order_parameter(setting: Setting, method: str, width: float) -> Vector | None:
    """Mean over seeds of U (D, D) of a network with all paths; None without a seed."""
    rows = setting.of(method, width)
    if rows.empty:
        return None
    return np.asarray(np.mean(np.stack(rows["order_parameter"].tolist()), axis=0))


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
        for number in range(min(map(len, known), default=0)):
            record: dict[str, Any] = dict(zip(NETWORK, key, strict=True))
            record |= {"component": number + 1, "num_seeds": len(known)}
            record |= named_interval("overlap", [vector[number] for vector in known], CONFIDENCE)
            records.append(record)
    columns = [*NETWORK, "component", "num_seeds", *_with_bounds("overlap")]
    return pd.DataFrame(records, columns=columns)


def line(table: pd.DataFrame, method: str, paths: str = ALL) -> pd.DataFrame:
    """The rows of a method by rising width; those of networks without a seed are left out."""
    mine = table[(table["method"] == method) & (table["paths"] == paths)]
    return mine[mine["num_seeds"] > 0].sort_values("network_width", ignore_index=True)


def limits(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the limits of infinite width, one a set of paths."""
    return table[(table["method"] == LIMIT) & (table["num_seeds"] > 0)].reset_index(drop=True)


def _of(table: pd.DataFrame, key: Sequence[Any]) -> pd.DataFrame:
    same = [table[column] == value for column, value in zip(NETWORK, key, strict=True)]
    return table[np.logical_and.reduce(same)]


def _with_bounds(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"]
