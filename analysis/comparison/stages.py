"""The two stages of a comparison: options are tuned on some seeds, the chosen ones confirmed.

A cell's `stage` says which it belongs to; where no cell of a comparison confirms, it has one
stage, in which options are chosen and tested on the same seeds.
"""

from __future__ import annotations

import pandas as pd

from analysis.groups import OPTION, rows_of
from analysis.statistics import MIN_SEEDS
from study.results import CONFIRM


def tuning(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that options are chosen by.

    Those of cells that do not confirm; of a group that has none of them, since it was given its
    option, all.

    Args:
        rows: with `comparison_id`, `paradigm` and `stage`.
    """
    confirms = rows["stage"].eq(CONFIRM)
    tuned = (~confirms).groupby([rows["comparison_id"], rows["paradigm"]]).transform("any")
    return rows[~(confirms & tuned)]


def tested(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that numbers and verdicts are of: those of confirming cells, if there are any.

    Args:
        rows: see `tuning`; a comparison without a confirming cell keeps all of its rows.
    """
    confirms = rows["stage"].eq(CONFIRM)
    return rows[confirms | ~confirms.groupby(rows["comparison_id"]).transform("any")]


def tested_choice(rows: pd.DataFrame, choice: pd.DataFrame) -> pd.DataFrame:
    """The rows of `tested` that are of the chosen options."""
    return rows_of(choice, tested(rows))


def first_look(rows: pd.DataFrame) -> set[int]:
    """The seeds that verdicts of a comparison rest on, however many were added later.

    Whoever looks at a verdict and then adds seeds, until one is decided, decides falsely more
    often than a test says: of 100 studies that look at 6, 12, 18 and 24 seeds, 13. So the first
    look that could decide spends all that there is, and later seeds move means alone.

    Args:
        rows: of its cells, with `seed`, `planned_seeds` (see `study.results`) and `finished_at`.
    """
    of_seed = rows.groupby("seed").agg({"planned_seeds": "min", "finished_at": "min"})
    planned = of_seed["planned_seeds"].astype(float)
    first = planned[planned >= MIN_SEEDS].min()
    if not len(of_seed) > first:
        return set(of_seed.index)
    looked_at = of_seed[planned <= first].sort_values(["planned_seeds", "finished_at", "seed"])
    return set(looked_at.index[: int(first)])


def given(rows: pd.DataFrame) -> dict[str, int]:
    """Paradigms of a comparison with two stages that were not tuned -> options they have."""
    if not rows["stage"].eq(CONFIRM).any():
        return {}
    tuned = rows.loc[~rows["stage"].eq(CONFIRM), "paradigm"]
    rest = rows[~rows["paradigm"].isin(tuned)]
    counts = rest.drop_duplicates(["paradigm", *OPTION])["paradigm"].value_counts(sort=False)
    return {str(name): int(count) for name, count in counts.items()}
