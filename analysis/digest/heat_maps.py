"""Mean heat maps of the chosen options."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.groups import GROUP, OPTION, paradigm_order


def mean_heatmaps(
    rows: pd.DataFrame, choice: pd.DataFrame, split: str = "test"
) -> dict[str, NDArray[np.float64]]:
    """Mean over seeds of the chosen options' heat maps, of one (task, m).

    Args:
        rows: with heat maps, as `Comparison.chosen` holds them.
        choice: as `analysis.choose` gives it.
        split: name of the split.

    Returns:
        Paradigm -> (bins, bins) fractions of the instances whose foreground is known, axis 0 =
        a_z, axis 1 = s_y. Seeds without a heat map, as diverged ones are, are left out
        (`heatmap_seeds` says how many are in); a paradigm without any is absent.
    """
    means = {
        name: np.mean(group["heatmap"].tolist(), axis=0)
        for name, group in _with_heatmap(rows, choice, split).items()
    }
    return {name: mean.reshape(math.isqrt(mean.size), -1) for name, mean in means.items()}


def heatmap_seeds(rows: pd.DataFrame, choice: pd.DataFrame, split: str = "test") -> dict[str, int]:
    """Seeds in each of the means of `mean_heatmaps`, which takes the same arguments."""
    return {name: len(group) for name, group in _with_heatmap(rows, choice, split).items()}


def _with_heatmap(rows: pd.DataFrame, choice: pd.DataFrame, split: str) -> dict[str, pd.DataFrame]:
    rows = rows[(rows["split"] == split) & ~rows["diverged"] & rows["heatmap"].notna()]
    rows = rows.merge(choice[GROUP + OPTION], on=GROUP + OPTION).sort_values("seed")
    return {name: rows[rows["paradigm"] == name] for name in paradigm_order(rows["paradigm"])}
