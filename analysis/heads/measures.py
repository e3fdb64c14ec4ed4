"""Measures of pruning that follow from what was recorded of one network."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from analysis.attention_paths.networks import Vector


def vector(value: Any) -> Vector:
    """A list column's value as an array; empty where it is missing."""
    return np.array([] if value is None or np.ndim(value) == 0 else value, np.float64)


def area(accuracies: Vector) -> float:
    """Mean accuracy (K + 1,) without 0, 1, ..., K heads; NaN where it is not known."""
    return float(np.mean(accuracies)) if len(accuracies) else math.nan


def rank_correlation(first: Vector, second: Vector) -> float:
    """Spearman's correlation of two vectors (heads,): that of their ranks, ties at their mean.

    NaN where one of them is constant, unknown, or they differ in length.
    """
    if len(first) != len(second) or len(first) < 2:
        return math.nan
    both = np.stack([first, second])
    if np.isnan(both).any() or (np.ptp(both, axis=1) == 0).any():
        return math.nan
    ranks = pd.DataFrame(both.T).rank().to_numpy()
    return float(np.corrcoef(ranks.T)[0, 1])


def by_rank(scores: Vector, values: Vector) -> Vector:
    """Values of heads (heads,) by increasing score; of equal scores the first head comes first."""
    return np.asarray(values[np.argsort(scores, kind="stable")])
