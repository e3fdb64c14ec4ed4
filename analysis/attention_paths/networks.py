"""What a network is: a method, a width and a set of paths; its names and its order in tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Vector = NDArray[np.float64]

THEORY, LIMIT = "theory", "gp"
"""Methods: the saddle point at finite width, and the Gaussian process of infinite width."""

SLICE = "slice"
"""The method that samples the posterior."""

ALL, GOOD, DENOISING = "all", "good", "good+denoising"
"""Sets of paths: `paths` of a cell."""

NETWORK = ["method", "network_width", "paths"]
"""Columns of `cells` that name a network of a setting."""

_ORDER = (THEORY, SLICE, LIMIT, ALL, GOOD, DENOISING)
"""Theory, samples, limit; sets of paths as figure 2 of the paper names them."""


def of_network(table: pd.DataFrame, method: str, width: float, paths: str) -> pd.DataFrame:
    """The rows of one network, of a table with the columns `NETWORK`."""
    return table[
        (table["method"] == method) & (table["network_width"] == width) & (table["paths"] == paths)
    ]


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The rows by method, width, paths and seed, with a new index."""
    return table.sort_values([*NETWORK, "seed"], key=_ranked, ignore_index=True)


def _ranked(column: pd.Series) -> pd.Series:
    if column.name not in ("method", "paths"):
        return column
    return column.map({name: rank for rank, name in enumerate(_ORDER)}).fillna(len(_ORDER))
