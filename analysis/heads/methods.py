"""What scores heads: theory, the limit and simple rules; their names and their order."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from analysis.attention_paths.networks import LIMIT, THEORY
from analysis.attention_paths.words import width_text

RULES = ("weight-norm", "entropy", "sensitivity")
"""Simple rules that score heads without a theory; sensitivity is that of Michel et al. (2019)."""

RANDOM, GREEDY, BOUND = "random", "greedy", "bound"
"""The mean of many random orders; what validation says best, head by head; the best subsets."""

REVERSE = "reverse"
"""Theory's own order backwards: heads with high scores are removed first."""

SOLVED = (THEORY, LIMIT)
"""Methods that solve the theory; the others only remove heads."""

SCORER = ["method", "network_width"]
"""Columns of `cells` that name what scores heads; a rule has an infinite width."""

METHODS = (*SOLVED, *RULES, RANDOM, GREEDY, BOUND)
"""Of a whole study, in the order of tables."""

VALIDATION, PUBLISHED, FIXED = "validation", "published", "fixed"
"""How a temperature was chosen: on validation episodes, on the test episodes, or not at all."""


def scorer_text(method: Any, width: Any = math.inf) -> str:
    """``theory N=10``, ``limit``, ``weight-norm``."""
    if method == LIMIT:
        return "limit"
    return f"{method} {width_text(width)}" if method == THEORY else str(method)


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The rows by method, width and seed, with a new index."""
    return table.sort_values([*SCORER, "seed"], key=_ranked, ignore_index=True)


def of_scorer(table: pd.DataFrame, method: str, width: float = math.inf) -> pd.DataFrame:
    """The rows of one method and width, of a table with the columns `SCORER`."""
    return table[(table["method"] == method) & (table["network_width"] == width)]


def _ranked(column: pd.Series) -> pd.Series:
    if column.name != "method":
        return column
    return column.map({name: rank for rank, name in enumerate(METHODS)}).fillna(len(METHODS))
