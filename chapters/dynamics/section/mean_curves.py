"""Mean curves of learning dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.rules.statistics import interval_columns, named_interval


def mean_curves(
    rows: pd.DataFrame,
    line: Sequence[str],
    means: Sequence[str],
    measures: Sequence[str],
) -> pd.DataFrame:
    """Mean and t interval over the seeds of every line, at each evaluation that all seeds have.

    Elsewhere, a change of seeds would look like a change of the mean.

    Args:
        rows: one row per (cell, evaluation), with `cell_id` and `budget_fraction`.
        line: columns that identify a line.
        means: columns to average, in their unit.
        measures: columns that also get an interval.

    Returns:
        One row per (line, evaluation), sorted: the columns `line`, `budget_fraction`, `num_seeds`,
        `means`, and each of `measures` with its `_low` and `_high`: bounds NaN when n < 2, all NaN
        where a seed's value is.
    """
    seeds = rows.groupby([*line])["cell_id"].transform("nunique")
    point = [*line, "budget_fraction", "num_seeds"]
    records: list[dict[str, Any]] = []
    for key, group in rows.assign(num_seeds=seeds).groupby(point):
        if len(group) < group["num_seeds"].iloc[0]:
            continue
        record: dict[str, Any] = dict(zip(point, key, strict=True))
        record |= {name: group[name].mean(skipna=False) for name in means}
        for name in measures:
            record |= named_interval(name, group[name])
        records.append(record)
    return pd.DataFrame(records, columns=[*point, *means, *interval_columns(*measures)])
