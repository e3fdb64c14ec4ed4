"""Means over seeds of what is known of each network, and how theory and sampling agree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from analysis.groups import stacked
from analysis.rules.statistics import CONFIDENCE, interval_columns, named_interval, t_interval
from chapters.paths.posterior.posterior_cell import SLICE, THEORY
from chapters.paths.section.networks import ALL, NETWORK, Vector, of_network
from chapters.paths.section.settings import Setting, once, relative_distance

MEASURES = (
    "accuracy", "accuracy_diagonal", "interplay", "gain", "loss", "distance", "largest_overlap",
)  # fmt: skip
"""Measures of a network that have a mean and an interval, see `Setting.rows`."""

_AGREEMENT = [
    *NETWORK, "num_seeds", *interval_columns("predictor_error"), "sampling_error",
    *interval_columns("accuracy_difference"), "order_parameter_difference", "r_hat",
    "effective_sample_size", "num_unconverged",
]  # fmt: skip
_PAIR = [
    "predictor_error", "sampling_error", "accuracy_difference", "order_parameter_difference",
]  # fmt: skip


# --- of any table


def over_seeds(
    cells: pd.DataFrame,
    rows: pd.DataFrame,
    by: Sequence[str],
    measures: Sequence[str],
    **lost: pd.Series,
) -> pd.DataFrame:
    """Means over the seeds of every group of cells.

    Args:
        cells: one row a cell, with the columns `by`.
        rows: those of them that have numbers.
        by: columns that name a group.
        measures: columns of `rows`.
        lost: name -> whether each of `cells` is lost in some way.

    Returns:
        One row a group of `cells`, in their order: `by`, `num_seeds` in `rows`, the counts
        `lost`, and each of `measures` with `_low` and `_high` (t interval; NaN with one seed, all
        three where a seed's value is not known).
    """
    groups, records = dict(iter(rows.groupby([*by]))), []
    for key, mine in cells[[*by]].assign(**lost).groupby([*by], sort=False):
        group = groups.get(key, rows.iloc[:0])
        record = {**dict(zip(by, key, strict=True)), "num_seeds": len(group)}
        record |= {name: mine[name].sum() for name in lost}
        for name in measures:
            found = named_interval(name, group[name], CONFIDENCE)
            if name.startswith("accuracy"):  # a share, however few its seeds
                found = {each: np.clip(value, 0, 1) for each, value in found.items()}
            record |= found
        records.append(record)
    columns = [*by, "num_seeds", *lost, *interval_columns(*measures)]
    nothing = cells[[*by]].iloc[:0].reindex(columns=columns)
    return stacked([nothing, pd.DataFrame(records, columns=columns)])


def over_entries(rows: pd.DataFrame, entries: pd.DataFrame, **measures: str) -> pd.DataFrame:
    """Means over seeds of vectors, entry by entry.

    Args:
        rows: one row a seed.
        entries: one row an entry: what it is.
        measures: name -> column of `rows` with vectors (entries,).

    Returns:
        `entries` with `num_seeds`, and each of `measures` with `_low` and `_high`.
    """
    table = entries.assign(num_seeds=len(rows))
    for name, column in measures.items():
        columns = zip(*rows[column], strict=True)
        bounds = [t_interval(values, CONFIDENCE) for values in columns]
        table[interval_columns(name)] = np.reshape(bounds, (-1, 3))
    return table


def by_group(
    rows: pd.DataFrame,
    by: Sequence[str],
    columns: Sequence[str],
    make: Callable[[pd.DataFrame], pd.DataFrame],
) -> pd.DataFrame:
    """The tables that `make` gives of each group, stacked behind the columns `by`.

    Args:
        rows: the rows of all groups.
        by: columns that name a group.
        columns: of the tables, for want of a group.
        make: called with the rows of a group.
    """
    parts = [pd.DataFrame(columns=[*by, *columns])]
    for key, group in rows.groupby([*by], sort=False):
        names = pd.DataFrame([key], columns=[*by])
        part = names.merge(make(group), "cross")
        parts.append(part)
    return stacked(parts)


# --- of a setting


@once
def networks(setting: Setting) -> pd.DataFrame:
    """Every network of a setting: means over its seeds.

    Returns:
        One row a network: `method`, `network_width`, `paths`, `num_seeds`, `num_diverged`,
        `num_unconverged`, and each of `MEASURES` with `_low` and `_high`.
    """
    cells = setting.cells
    return over_seeds(
        cells, setting.rows, NETWORK, MEASURES,
        num_diverged=cells["status"] == "diverged",
        num_unconverged=cells["cell_id"].isin(setting.unconverged["cell_id"]),
    )  # fmt: skip


def order_parameters(setting: Setting) -> pd.DataFrame:
    """The order parameter of every network, entry by entry.

    Returns:
        One row a network and entry: `method`, `network_width`, `paths`, `path`, `other_path`,
        `num_seeds`, and `order_parameter` with `_low` and `_high` over the seeds.
    """
    names = ["path", "other_path"]

    def of_network(rows: pd.DataFrame) -> pd.DataFrame:
        pairs = itertools.product(rows["path_names"].iloc[0], repeat=2)
        flat = rows.assign(order_parameter=rows["order_parameter"].map(np.ravel))
        entries = pd.DataFrame(pairs, columns=names)
        return over_entries(flat, entries, order_parameter="order_parameter")

    solved = setting.rows[setting.rows["order_parameter"].map(len) > 0]
    columns = [*names, "num_seeds", *interval_columns("order_parameter")]
    return by_group(solved, NETWORK, columns, of_network)


def mean_order_parameter(setting: Setting, method: str, width: float) -> Vector | None:
    """Mean over seeds of U (D, D) of a network with all paths; None without a seed."""
    found = setting.of(method, width)["order_parameter"].tolist()
    return np.asarray(np.mean(np.stack(found), axis=0)) if found else None


@once
def overlaps(setting: Setting) -> pd.DataFrame:
    """How the principal components of each kernel overlap with the labels.

    Returns:
        One row a network and component (1 the largest eigenvalue's): `method`, `network_width`,
        `paths`, `component`, `num_seeds`, and `overlap` (absolute cosine) with `_low` and
        `_high`; networks without recorded overlaps are left out.
    """

    def of_network(rows: pd.DataFrame) -> pd.DataFrame:
        components = pd.DataFrame({"component": range(1, len(rows["overlaps"].iloc[0]) + 1)})
        return over_entries(rows, components, overlap="overlaps")

    recorded = setting.rows[setting.rows["overlaps"].map(len) > 0]
    columns = ["component", "num_seeds", *interval_columns("overlap")]
    return by_group(recorded, NETWORK, columns, of_network)


# --- theory against sampling


@once
def agreement(setting: Setting) -> pd.DataFrame:
    """How far theory is from what was sampled, at every sampled width.

    Returns:
        One row a sampled network: `method`, `network_width`, `paths`, `num_seeds` that theory and
        sampling share, `predictor_error` (distance of theory's mean predictor from the sampled
        one as a share of the latter) and `accuracy_difference` (theory minus sampled), each with
        `_low` and `_high`; `sampling_error`, the sampled mean's own Monte Carlo error as the same
        share; `order_parameter_difference`, the largest of any seed and entry of U; `r_hat` and
        `effective_sample_size`, the largest and smallest of all cells, converged or not;
        `num_unconverged`.
    """
    records = []
    for width in setting.widths_of(SLICE):
        cells, both = of_network(setting.cells, SLICE, width), pairs(setting, width)
        record = {
            "method": SLICE,
            "network_width": width,
            "paths": ALL,
            "num_seeds": len(both),
            "sampling_error": both["sampling_error"].mean(skipna=False),
            "order_parameter_difference": both["order_parameter_difference"].max(),
            "r_hat": cells["r_hat"].max(),
            "effective_sample_size": cells["effective_sample_size"].min(),
            "num_unconverged": len(of_network(setting.unconverged, SLICE, width)),
        }
        for name in ("predictor_error", "accuracy_difference"):
            record |= named_interval(name, both[name], CONFIDENCE)
        records.append(record)
    return pd.DataFrame(records, columns=_AGREEMENT)


def pairs(setting: Setting, width: float) -> pd.DataFrame:
    """Theory beside sampling at one width.

    Returns:
        One row a common seed, its index: `_PAIR`, see `agreement`.
    """
    theory, sampled = setting.of(THEORY, width), setting.of(SLICE, width)
    both = theory.merge(sampled, left_index=True, right_index=True, suffixes=("", "_sampled"))
    records = []
    for row in both.to_dict("records"):
        mean, error = row["predictor_mean_sampled"], row["predictor_mean_error_sampled"]
        apart = np.abs(row["order_parameter"] - row["order_parameter_sampled"])
        records.append(
            [
                relative_distance(row["predictor_mean"], mean),
                relative_distance(mean + error, mean) if len(error) else math.nan,
                row["accuracy"] - row["accuracy_sampled"],
                apart.max(),
            ]
        )
    return pd.DataFrame(records, both.index, _PAIR, dtype=np.float64)
