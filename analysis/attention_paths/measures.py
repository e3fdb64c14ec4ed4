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
    records = []
    for row in rows.to_dict("records"):
        leading = row["overlaps"][:LEADING]
        record = {
            "largest_overlap": leading.max() if len(leading) else math.nan,
            "interplay": row["accuracy"] - row["accuracy_diagonal"],
        }
        if row["seed"] in limits.index:
            limit = limits.loc[row["seed"]]
            record["gain"] = row["accuracy"] - limit["accuracy"]
            record["distance"] = relative_distance(row["predictor_mean"], limit["predictor_mean"])
        records.append(record)
    columns = ["largest_overlap", "interplay", "gain", "distance"]
    return rows.join(pd.DataFrame(records, rows.index, columns, np.float64))


def relative_distance(values: Vector, reference: Vector) -> float:
    """Root mean square of values - reference (n,), as a share of that of the reference."""
    if len(values) != len(reference) or not np.any(reference):
        return math.nan
    return float(np.sqrt(np.mean((values - reference) ** 2) / np.mean(reference**2)))
