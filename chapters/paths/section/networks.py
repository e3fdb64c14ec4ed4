"""What a network is: a method, a width and a set of paths; its names, its order and its words.

Rules that score the heads of trained networks are methods, too; their width is infinite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.forms import Row, known, points
from chapters.paths.heads.heads_cell import RULES
from chapters.paths.posterior.network import PATHS
from chapters.paths.posterior.posterior_cell import LIMIT, SLICE, THEORY

Vector = NDArray[np.float64]

ALL, GOOD, DENOISING = PATHS
"""Sets of paths: `paths` of a cell."""

NETWORK = ["method", "network_width", "paths"]
"""Columns that name a network of a setting."""

LONGER_CHAINS = "raise --set warmup=... draws=..."
"""What to do about chains that have not converged."""

_PATHS = {
    ALL: "all paths",
    GOOD: "the good path alone",
    DENOISING: "the good and the denoising path",
}
_RANKS = {name: rank for rank, name in enumerate((THEORY, SLICE, LIMIT, *RULES, *_PATHS))}


def of_network(
    table: pd.DataFrame, method: str, width: float = math.inf, paths: str = ALL
) -> pd.DataFrame:
    """The rows of one network, of a table with the columns `NETWORK`."""
    return table[
        (table["method"] == method) & (table["network_width"] == width) & (table["paths"] == paths)
    ]


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The rows by method, width, paths and seed, with a new index."""
    return table.sort_values(
        [*NETWORK, "seed"],
        key=lambda column: column.map(_RANKS) if column.name in ("method", "paths") else column,
        ignore_index=True,
    )


def line(table: pd.DataFrame, method: str) -> pd.DataFrame:
    """The rows of a method with all paths; those of networks without a seed are left out."""
    mine = (table["method"] == method) & (table["paths"] == ALL) & (table["num_seeds"] > 0)
    return table[mine].reset_index(drop=True)


def limits(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the limits of infinite width, one a set of paths."""
    return table[(table["method"] == LIMIT) & (table["num_seeds"] > 0)].reset_index(drop=True)


def width_text(width: float) -> str:
    """``N=10``; ``limit`` for an infinite one."""
    return f"N={width:g}" if math.isfinite(width) else "limit"


def paths_text(paths: str) -> str:
    """``all paths``, ``the good path alone``."""
    return _PATHS.get(paths, paths)


def path_text(name: str) -> str:
    """The name of one path; where it lists heads, ``good → random``."""
    return " → ".join(part.strip() for part in name.split(","))


def network_text(row: Row) -> str:
    """``theory N=10``, ``slice N=10``, ``limit, good path alone``, of a row with `NETWORK`."""
    method, width, paths = (row[name] for name in NETWORK)
    if method == LIMIT:
        return f"limit, {paths_text(paths).replace('the ', '')}"
    return f"{method} {width_text(width)}" + (f", {paths_text(paths)}" if paths != ALL else "")


def scorer_text(method: Any, width: Any = math.inf) -> str:
    """``theory N=10``, ``limit``, ``weight-norm``: what scores the heads of trained networks."""
    if method == LIMIT:
        return "limit"
    return f"{method} {width_text(width)}" if method == THEORY else str(method)


def points_text(share: float) -> str:
    """A difference of accuracies: 0.012 -> ``+1.2 points``."""
    return f"{points(share)} points"


def r_hat_text(value: float) -> str:
    """``1.0096``: three decimals would round what has converged to the threshold, 1.01."""
    return f"{value:.4f}" if known(value) else "-"
