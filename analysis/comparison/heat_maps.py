"""Mean heat maps of the chosen options."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

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
    return {
        name: square(np.mean(group["heatmap"].tolist(), axis=0))
        for name, group in _with_heatmap(rows, choice, split).items()
    }


def square(heatmap: ArrayLike) -> NDArray[np.float64]:
    """A recorded heat map (bins * bins,) as (bins, bins).

    Raises:
        ValueError: the number of its cells is no square.
    """
    cells = np.asarray(heatmap, np.float64).ravel()
    bins = math.isqrt(cells.size)
    if bins * bins != cells.size:
        raise ValueError(f"a heat map has as many rows as columns, got {cells.size} cells")
    return cells.reshape(bins, bins)


def heatmap_seeds(rows: pd.DataFrame, choice: pd.DataFrame, split: str = "test") -> dict[str, int]:
    """Seeds in each of the means of `mean_heatmaps`, which takes the same arguments."""
    return {name: len(group) for name, group in _with_heatmap(rows, choice, split).items()}


def _with_heatmap(rows: pd.DataFrame, choice: pd.DataFrame, split: str) -> dict[str, pd.DataFrame]:
    rows = rows[(rows["split"] == split) & ~rows["diverged"] & rows["heatmap"].notna()]
    rows = rows.merge(choice[GROUP + OPTION], on=GROUP + OPTION).sort_values("seed")
    return {name: rows[rows["paradigm"] == name] for name in paradigm_order(rows["paradigm"])}
