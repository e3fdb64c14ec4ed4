"""Measures of a network that follow from what was recorded of it and of its limit."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from analysis.attention_paths.networks import ALL, LIMIT, Vector, of_network

LEADING = 30
"""Principal components that count as leading: those that figure 2d of the paper shows."""


def with_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what follows from them.

    Args:
        rows: `rows` of an `analysis.attention_paths.settings.Setting`, without these columns.

    Returns:
        `largest_overlap`: the largest overlap with the labels of one of the `LEADING` principal
        components of the kernel; `interplay`: accuracy minus that without the off-diagonal of U;
        `gain`: accuracy minus that of the limit with all paths of the same seed; `distance`: root
        mean square distance of the mean predictor from that limit's, as a share of the limit's.
        NaN: not known.
    """
    limits = of_network(rows, LIMIT, math.inf, ALL).set_index("seed")
    limit = limits.reindex(rows["seed"]).set_axis(rows.index)
    both = zip(rows["predictor_mean"], limit["predictor_mean"], strict=True)
    measures = {
        "largest_overlap": [max(each[:LEADING], default=math.nan) for each in rows["overlaps"]],
        "interplay": rows["accuracy"] - rows["accuracy_diagonal"],
        "gain": rows["accuracy"] - limit["accuracy"],
        "distance": [relative_distance(mine, other) for mine, other in both],
    }
    return rows.join(pd.DataFrame(measures, rows.index, dtype=np.float64))


def relative_distance(values: Vector, reference: Vector) -> float:
    """Root mean square of values - reference (n,), as a share of that of the reference.

    NaN where there is no such reference, or all of it is 0.
    """
    if np.shape(values) != np.shape(reference) or not np.any(reference):
        return math.nan
    return float(np.sqrt(np.mean((values - reference) ** 2) / np.mean(reference**2)))
