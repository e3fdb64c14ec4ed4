"""Mean curves of learning dynamics."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.rules.statistics import CONFIDENCE, interval_columns, named_interval


def mean_curves(
    rows: pd.DataFrame,
    line: Sequence[str],
    means: Sequence[str],
    measures: Sequence[str],
) -> pd.DataFrame:
    """Mean and t interval over the seeds of every line, at each evaluation that all seeds have.

    Elsewhere, a change of seeds would look like a change of the mean.

    Args:
        rows: one row a (cell, evaluation), with `cell_id`, `seed` and `budget_fraction`.
        line: columns that identify a line.
        means: columns to average, in their unit.
        measures: columns that also get an interval.

    Returns:
        One row a (line, evaluation), lines in the given order: the columns `line`,
        `budget_fraction`, `num_seeds`, `means`, and each of `measures` with its `_low` and
        `_high`: bounds NaN when n < 2, all NaN where a seed's value is.
    """
    records = []
    for key, group in rows.sort_values("seed", kind="stable").groupby([*line], sort=False):
        seeds = group["cell_id"].nunique()
        for fraction, point in group.groupby("budget_fraction"):
            if len(point) < seeds:
                continue
            record = dict(zip(line, key, strict=True))
            record |= {"budget_fraction": fraction, "num_seeds": seeds}
            record |= {name: float(point[name].mean(skipna=False)) for name in means}
            for name in measures:
                record |= named_interval(name, point[name], CONFIDENCE)
            records.append(record)
    columns = [*line, "budget_fraction", "num_seeds", *means]
    return pd.DataFrame(records, columns=[*columns, *interval_columns(*measures)])
