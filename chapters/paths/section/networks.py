"""What a network is: a method, a width and a set of paths; its name and its order.

Rules that score the heads of trained networks are methods, too; their width is infinite.
"""

from __future__ import annotations

import math

import pandas as pd

from analysis.forms import Row, known
from chapters.paths.heads.heads_cell import RULES
from chapters.paths.posterior.network import PATHS
from chapters.paths.posterior.posterior_cell import LIMIT, SLICE, THEORY

ALL, GOOD, DENOISING = PATHS
"""Sets of paths: `paths` of a cell."""

NETWORK = ["method", "network_width", "paths"]
"""Columns that name a network of a setting."""

_PATHS = {ALL: "", GOOD: ", good path alone", DENOISING: ", good and denoising path"}
_RANKS = {name: rank for rank, name in enumerate((THEORY, SLICE, LIMIT, *RULES, *_PATHS))}


def of_network(
    table: pd.DataFrame, method: str, width: float = math.inf, paths: str = ALL
) -> pd.DataFrame:
    """The rows of one network, of a table with the columns `NETWORK`."""
    rows = line(table, method, paths)
    return rows[rows["network_width"] == width]


def line(table: pd.DataFrame, method: str, paths: str = ALL) -> pd.DataFrame:
    """The rows of a method at every width, of a table with the columns `NETWORK`."""
    return table[(table["method"] == method) & (table["paths"] == paths)]


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The rows by method, width, paths and seed, with a new index."""
    return table.sort_values(
        [*NETWORK, "seed"],
        key=lambda column: column.map(_RANKS) if column.name in ("method", "paths") else column,
        ignore_index=True,
    )


def network_text(row: Row) -> str:
    """``theory N=10``, ``limit, good path alone``, ``weight-norm``, of a row with `NETWORK`."""
    name = "limit" if row["method"] == LIMIT else row["method"]
    width = f" N={row['network_width']:g}" if math.isfinite(row["network_width"]) else ""
    return f"{name}{width}{_PATHS[row['paths']]}"


def path_text(name: str) -> str:
    """The name of one path; where it lists heads, ``good → random``."""
    return " → ".join(part.strip() for part in name.split(","))


def r_hat_text(value: float) -> str:
    """``1.0096``: three decimals would round what has converged to the threshold, 1.01."""
    return f"{value:.4f}" if known(value) else "-"
