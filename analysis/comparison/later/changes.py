"""Trained longer: how the chosen options change from a tenth and from half of the budget on.

Pure functions of one comparison. A seed at two times is a pair, so changes have t intervals over
seeds; the test images are held fixed.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from analysis.comparison.at_cut import lost_accuracy
from analysis.comparison.compare import Comparison
from analysis.comparison.paired import with_verdicts
from analysis.crossed import crossed_mean
from analysis.groups import paradigm_order
from analysis.statistics import CONFIDENCE, interval_columns, named_interval
from analysis.words import METRICS

STARTS = (0.1, 0.5)
"""Fractions of the budget from which changes are counted."""

END = 1.0
"""Fraction of the budget to which they are counted."""

GAPS = ("accuracy_gap", "loss_gap")
"""Train minus test: how far the training mosaics are known by heart."""

_NEEDED = [
    "cell_id", "paradigm", "seed", "status", "num_classes", "split", "budget_fraction", "saif",
    "accuracy", "loss",
]  # fmt: skip
_VERDICTS = {"better": "rises", "worse": "falls"}

CHANGE_COLUMNS = [
    "task", "m", "paradigm", "metric", "first", "second", "num_pairs",
    *interval_columns("mean_first", "mean_second"), "difference", "low", "high", "p", "p_holm",
    "verdict", "reason", "confidence",
]  # fmt: skip


def changes(comparison: Comparison) -> pd.DataFrame:
    """How scores change with further training, and how the gap between train and test does.

    They are of the chosen options, on the seeds that test them. A diverged cell counts from its
    first missing evaluation on as SAIF 0 and accuracy 1/C on both splits, so without a gap; its
    loss is not known. A seed that failed is no pair. Holm's correction is over all rows.

    Args:
        comparison: with its evaluations.

    Returns:
        One row a (paradigm, metric, second): `task`, `m`; `metric` is saif or accuracy on the test
        split (fractions), or one of `GAPS`, of accuracy (a fraction) or loss (nats); `first` and
        `second` are fractions of the budget, `END` and one of `STARTS` (of gaps its first);
        `num_pairs`, seeds evaluated at all of them; the means `mean_first` and `mean_second` over
        these seeds and `difference` = first - second, with 95 % t intervals (``_low`` and
        ``_high``; of the difference `low` and `high`; NaN with fewer than two seeds); two-sided
        `p`, `p_holm`; `verdict` (rises, falls or undecided), `reason` why it is undecided, else
        empty, and `confidence`. Empty unless every paradigm that has numbers has such seeds,
        and of recorded runs.
    """
    if comparison.recorded:  # without a budget there is no tenth of it
        return pd.DataFrame(columns=CHANGE_COLUMNS)
    names = paradigm_order(comparison.summary["paradigm"])
    metrics = [metric for metric in METRICS if metric in comparison.metrics]
    cases = [(metric, start) for metric in metrics for start in STARTS]
    cases += [(gap, STARTS[0]) for gap in GAPS]
    rows = comparison.evaluations[_NEEDED]
    scores = {name: _scores(rows[rows["paradigm"] == name], comparison.task) for name in names}
    if not scores or any(table.empty for table in scores.values()):
        return pd.DataFrame(columns=CHANGE_COLUMNS)
    records, means = [], []
    for paradigm, (metric, start) in ((name, case) for name in names for case in cases):
        early, late = (scores[paradigm][metric, time].to_numpy() for time in (start, END))
        mean = crossed_mean((late - early)[:, None], confidence=CONFIDENCE)
        means.append(mean)
        records.append(
            {
                "task": comparison.task,
                "m": comparison.m,
                "paradigm": paradigm,
                "metric": metric,
                "first": END,
                "second": start,
                "num_pairs": len(late),
                **named_interval("mean_first", late, CONFIDENCE),
                **named_interval("mean_second", early, CONFIDENCE),
                "difference": mean.mean,
                "low": mean.low,
                "high": mean.high,
                "p": mean.p,
            }
        )
    table = pd.DataFrame(with_verdicts(records, means, CONFIDENCE), columns=CHANGE_COLUMNS)
    return table.assign(verdict=table["verdict"].replace(_VERDICTS))


def _scores(rows: pd.DataFrame, task: str) -> pd.DataFrame:
    """One row a seed evaluated at every time, one column a (metric, time).

    Args:
        rows: all evaluations of one paradigm.
        task: name of the task.
    """
    cells = rows.drop_duplicates("cell_id").set_index("seed").sort_index()
    diverged = cells.index[cells["status"] == "diverged"]
    lost = pd.DataFrame(
        {
            "saif": 0.0,
            "accuracy": lost_accuracy(task, cells["num_classes"]),
            "loss": math.nan,
        }
    ).loc[diverged]

    def at(split: str, time: float) -> pd.DataFrame:
        there = (rows["split"] == split) & np.isclose(rows["budget_fraction"].astype(float), time)
        recorded = rows.loc[there, ["seed", *lost]].set_index("seed").astype(float)
        return pd.concat([recorded, lost.drop(recorded.index, errors="ignore")])

    columns: dict[tuple[str, float], pd.Series] = {}
    for time in (*STARTS, END):
        train, test = at("train", time), at("test", time)
        columns |= {(metric, time): test[metric] for metric in METRICS}
        columns |= {
            (gap, time): train[metric].reindex(test.index) - test[metric]
            for gap, metric in zip(GAPS, ("accuracy", "loss"), strict=True)
        }
    seeds = set.intersection(*(set(column.index) for column in columns.values()))
    return pd.DataFrame(columns, index=sorted(seeds))
