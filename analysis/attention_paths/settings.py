"""Settings of attention paths: which cells belong together, and what is known of each network.

A *setting* is all cells with one `comparison_id`: one task, one set of heads, one number of
training inputs. In it a *network* is a method with a width and a set of paths: the theory's
network of N = 10, a sampled one, or the limit of infinite width with the good path alone. The
seeds of a network draw its data and its random heads; networks are paired by seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.attention_paths.measures import with_measures
from analysis.attention_paths.networks import (
    ALL,
    NETWORK,
    SLICE,
    Vector,
    in_order,
    of_network,
)
from study.results import Results, ResultsError

VARIANTS = ("plain", "noisy", "own")
"""In the order of the report."""

CONVERGED = 1.01
"""R-hat from which on chains have not converged (Vehtari et al., Bayesian Analysis 16, 2021)."""

_OF_CELL = ["cell_id", *NETWORK, "seed", "path_names", "order_parameter", "overlaps", "r_hat"]
OF_EVALUATION = [
    "cell_id", "split", "loss", "accuracy", "accuracy_diagonal", "predictor_mean",
    "predictor_mean_error",
]  # fmt: skip
"""Columns of evaluations that a setting reads."""

_NUMBERS = ("loss", "accuracy", "accuracy_diagonal", "r_hat")
_VECTORS = ("order_parameter", "overlaps", "predictor_mean", "predictor_mean_error")
_TOLD_APART = {
    "n": "P={:g}",
    "tokens": "T={:g}",
    "sigma_perp": "sigma_perp={:g}",
    "temperature": "temperature {:g}",
    "heads": "heads {}",
}


@dataclass(frozen=True, eq=False)
class Setting:
    """One setting.

    Attributes:
        id: its `comparison_id`.
        name: tells it apart, e.g. ``plain`` or ``plain, P=50``.
        recorded: all its rows of `cells`.
        cells: one of them a network and seed; of several that differ in the length of their
            chains, the one with the most draws.
        rows: of the cells that means rest on, on the test split: the columns `NETWORK`, `seed`,
            `path_names`, `accuracy` and `accuracy_diagonal` (fractions), `loss` (nats), `r_hat`,
            and as arrays `order_parameter` (D, D), `overlaps` (P,), `predictor_mean` (test
            inputs,) and `predictor_mean_error`, empty where unknown; and what follows from them:
            `largest_overlap`, `interplay`, `gain` and `distance`, see
            `analysis.attention_paths.measures`. NaN: not known.
        unconverged: the same of sampled cells whose chains have not converged.
    """

    id: str
    name: str
    recorded: pd.DataFrame
    cells: pd.DataFrame
    rows: pd.DataFrame
    unconverged: pd.DataFrame

    @property
    def first(self) -> Mapping[str, Any]:
        """Its first cell, for what all of them share."""
        return dict(self.cells.iloc[0])

    @property
    def variant(self) -> str:
        """plain, noisy or own."""
        return str(self.first["variant"])

    @property
    def widths(self) -> list[float]:
        """The finite widths N, rising."""
        return sorted({float(width) for width in self.cells["network_width"]} - {math.inf})

    @property
    def sampled_widths(self) -> list[float]:
        """The widths of sampled networks, rising."""
        mine = self.cells[(self.cells["paths"] == ALL) & (self.cells["method"] == SLICE)]
        return [float(width) for width in mine["network_width"].unique()]

    def of(self, method: str, width: float = math.inf, paths: str = ALL) -> pd.DataFrame:
        """The rows of one network, by seed."""
        return of_network(self.rows, method, width, paths).set_index("seed")


def read(results: Results, cells: pd.DataFrame) -> list[Setting]:
    """The settings of a directory: plain, noisy, own.

    Args:
        results: the directory.
        cells: rows of `cells`.

    Raises:
        ResultsError: unreadable results, or a finished cell without an accuracy, a predictor or
            a D x D order parameter.
    """
    done = cells.loc[cells["status"] == "done", "cell_id"]
    columns = list(OF_EVALUATION)
    found = results.evaluations(done, columns) if len(done) else pd.DataFrame(columns=columns)
    test = found[found["split"] == "test"].drop(columns="split")
    names = _names(cells)
    return [
        setting_of(key, name, cells[cells["comparison_id"] == key], test) for key, name in names
    ]


def setting_of(key: str, name: str, cells: pd.DataFrame, test: pd.DataFrame) -> Setting:
    """One setting.

    Args:
        key: its `comparison_id`.
        name: tells it apart.
        cells: its rows of `cells`.
        test: `OF_EVALUATION` but `split`, of the test split.

    Raises:
        ResultsError: see `read`.
    """
    ordered = cells.sort_values(["steps", "cell_id"], ascending=[False, True])
    kept = in_order(ordered.drop_duplicates([*NETWORK, "seed"]))
    rows = kept.loc[kept["status"] == "done", _OF_CELL].merge(test, on="cell_id", how="left")
    for column in _NUMBERS:
        rows[column] = rows[column].astype(np.float64)
    for column in _VECTORS:
        rows[column] = rows[column].astype(object).map(_vector)
    _require_whole(rows)
    rows["order_parameter"] = rows["order_parameter"].map(_square)
    converged = (rows["method"] != SLICE) | (rows["r_hat"] < CONVERGED)  # not if it is NaN
    return Setting(
        id=key,
        name=name,
        recorded=cells.reset_index(drop=True),
        cells=kept,
        rows=with_measures(rows[converged].reset_index(drop=True)),
        unconverged=rows[~converged].reset_index(drop=True),
    )


def _require_whole(rows: pd.DataFrame) -> None:
    """Refuses a finished cell that lacks what all have."""
    for row in rows.to_dict("records"):
        paths = 0 if row["path_names"] is None else len(row["path_names"])
        faults = {
            "no finite accuracy on the test split": not math.isfinite(row["accuracy"]),
            "no finite mean predictor on the test split": not len(row["predictor_mean"])
            or not np.isfinite(row["predictor_mean"]).all(),
            f"no {paths} x {paths} order parameter for its {paths} paths": not paths
            or len(row["order_parameter"]) != paths**2,
        }
        for fault in (text for text, there in faults.items() if there):
            raise ResultsError(
                f"cell {row['cell_id']} of attention paths has {fault}. Move its "
                "files away and run its study again."
            )


def _vector(value: Any) -> Vector:
    """A list column's value as an array; empty where it is missing."""
    return np.array([] if value is None or np.ndim(value) == 0 else value, np.float64)


def _square(vector: Vector) -> Vector:
    side = math.isqrt(len(vector))
    return vector.reshape(side, side)


def _names(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """Id and name of each setting: its variant and, where several have it, what they differ in."""
    firsts = cells.drop_duplicates("comparison_id").sort_values("comparison_id")
    names: dict[str, str] = {}
    for variant in VARIANTS:
        group = firsts[firsts["variant"] == variant]
        differing = [column for column in _TOLD_APART if group[column].nunique(dropna=False) > 1]
        for row in group.to_dict("records"):
            parts = [_TOLD_APART[column].format(row[column]) for column in differing]
            name, key = ", ".join([variant, *parts]), str(row["comparison_id"])
            names[f"{name} ({key[:8]})" if name in names else name] = key
    return [(key, name) for name, key in names.items()]
