"""Mean learning curves of the chosen options."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.digest.at_cut import UNBOUNDED
from analysis.digest.measures import measures
from analysis.groups import AXES, Axis, finite_evaluations, paradigm_order
from analysis.rules.learning import share_mean
from analysis.rules.statistics import t_interval
from study import tasks


def common(curve: pd.DataFrame) -> pd.DataFrame:
    """The evaluations of `learning_curve` that all seeds have.

    A mean over different seeds than before would look like progress.
    """
    return curve[curve["num_seeds"] == curve["num_cells"]]


def learning_curve(
    evaluations: pd.DataFrame,
    metric: str,
    split: str = "test",
    confidence: float = 0.95,
    axis: Axis = "flops",
) -> pd.DataFrame:
    """A metric against compute: mean and interval over the seeds of each paradigm.

    A diverged cell counts from its first missing evaluation on as in the comparison table.

    Args:
        evaluations: of one (task, m) and one option a paradigm, as
            `Comparison.evaluations` holds them.
        metric: column of fractions.
        split: name of the split.
        confidence: of the intervals, in (0, 1).
        axis: what is compute here, see `analysis.groups.AXES`.

    Returns:
        One row a (paradigm, budget_fraction): the column of the axis (`compute_flops`,
        `train_seconds` or `mosaics_seen`; mean over seeds), `num_seeds`, `num_cells` (seeds of
        the option; `num_seeds` is smaller where some have no evaluation within the cut), `mean`,
        `low`, `high` (fractions, see `analysis.rules.learning.share_mean`; all NaN where a
        seed's metric is NaN).
    """
    if metric not in evaluations:
        raise ValueError(f"evaluations must have the metric, got {metric!r}")
    x = AXES[axis]
    finite = finite_evaluations(evaluations)
    records = []
    for name in paradigm_order(evaluations["paradigm"]):
        group = evaluations[evaluations["paradigm"] == name]
        cells = group.drop_duplicates("cell_id").sort_values("seed")
        diverged = (cells["status"] == "diverged").to_numpy()
        task, num_classes = cells["task"].iloc[0], cells["num_classes"].to_numpy(float)
        counts_as = tasks.modality(task).guess(num_classes).get(metric, 0.0)
        rows = finite[(finite["paradigm"] == name) & (finite["split"] == split)]
        for fraction, point in rows.groupby("budget_fraction"):
            recorded = cells["cell_id"].isin(point["cell_id"]).to_numpy()
            values = point.set_index("cell_id")[metric].reindex(cells["cell_id"])
            counted = np.where(~recorded & diverged, counts_as, values.to_numpy(float))
            counted = counted[recorded | diverged]
            if metric in UNBOUNDED:
                mean, low, high = t_interval(counted, confidence)
            else:
                floor = measures(task, [metric])[metric].floor(num_classes[0])
                found = share_mean(counted, floor=floor, confidence=confidence)
                mean, low, high = found.mean, found.low, found.high
            records.append(
                {
                    "paradigm": name,
                    "budget_fraction": fraction,
                    x: float(point[x].mean()),
                    "num_seeds": len(counted),
                    "num_cells": len(cells),
                    "mean": mean,
                    "low": low,
                    "high": high,
                }
            )
    columns = ["paradigm", "budget_fraction", x, "num_seeds", "num_cells", "mean", "low", "high"]
    return pd.DataFrame(records, columns=columns)
