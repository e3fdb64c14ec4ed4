"""Mean heat maps of the chosen options."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.comparison.cut import saif_at
from analysis.groups import GROUP, OPTION, paradigm_order, rows_of
from analysis.learning import guess, share_mean
from study import tasks


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


def saif_by_threshold(
    rows: pd.DataFrame,
    choice: pd.DataFrame,
    task: str,
    split: str = "test",
    confidence: float = 0.95,
) -> pd.DataFrame:
    """SAIF of the chosen options at every threshold that their heat maps know.

    A diverged seed, which has no heat map, counts as in the comparison table.

    Args:
        rows, choice, split: as of `mean_heatmaps`; rows also with `saif`.
        task: gives the edges of the heat maps.
        confidence: of the intervals, in (0, 1).

    Returns:
        One row a (paradigm, threshold), the threshold an inner edge: `num_seeds`, and `mean`,
        `low` and `high` over seeds (fractions, `analysis.learning.share_mean`; all NaN where
        a seed that did not diverge has no heat map).
    """
    rows = rows_of(choice, rows[rows["split"] == split]).sort_values("seed")
    edges = tasks.modality(task).heatmap_edges
    records = []
    for name, threshold in product(paradigm_order(rows["paradigm"]), edges[1:-1]):
        seeds = rows[rows["paradigm"] == name]
        saif = saif_at(seeds["heatmap"], threshold, edges)
        counted = np.where(seeds["diverged"], seeds["saif"].astype(float), saif)
        floor = guess(task, "saif", math.nan)
        found = share_mean(counted, floor=floor, confidence=confidence)
        ends = {"mean": found.mean, "low": found.low, "high": found.high}
        records.append({"paradigm": name, "threshold": threshold, "num_seeds": len(seeds), **ends})
    columns = ["paradigm", "threshold", "num_seeds", "mean", "low", "high"]
    return pd.DataFrame(records, columns=columns)


def _with_heatmap(rows: pd.DataFrame, choice: pd.DataFrame, split: str) -> dict[str, pd.DataFrame]:
    rows = rows[(rows["split"] == split) & ~rows["diverged"] & rows["heatmap"].notna()]
    rows = rows.merge(choice[GROUP + OPTION], on=GROUP + OPTION).sort_values("seed")
    return {name: rows[rows["paradigm"] == name] for name in paradigm_order(rows["paradigm"])}
