"""Search effort: the value of trying more options, and choices at the edge of a grid."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.comparison.choice import by_preference
from analysis.groups import GROUP, OPTION, Select
from analysis.words import number

_SCORES = ["saif", "accuracy"]
EFFORT_COLUMNS = [*GROUP, "k", "num_options", *_SCORES]


def best_of_k(scores: ArrayLike) -> NDArray[np.float64]:
    """Expected score of the best of k options drawn at random without replacement.

    Of N options in the order of preference, the i-th (from 1) is the best of k drawn with
    probability C(N-i, k-1) / C(N, k): it is drawn, and all others are worse. The order need not
    be that of the scores: here validation gives the order and the test split the scores.

    Args:
        scores: (N,) any unit, the most preferred option first. A NaN makes the expectation NaN
            wherever its option can be the best of k.

    Returns:
        (N,) the expectation at k = 1..N: the plain mean first, the score of the most preferred
        option last.

    Raises:
        ValueError: `scores` is not one-dimensional.
    """
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"scores must have one axis, got shape {array.shape}")
    count = array.size
    k = np.arange(1, count + 1)
    expected = np.zeros(count)
    probability = k / max(count, 1)
    for worse, score in zip(range(count - 1, -1, -1), array, strict=True):
        possible = k - 1 <= worse
        expected[possible] += probability[possible] * score
        # C(worse - 1, k - 1) / C(worse, k - 1); no large number is ever formed.
        probability = probability * (np.maximum(worse - k + 1, 0) / max(worse, 1))
    return expected


def effort_table(
    at_budget: pd.DataFrame, options: pd.DataFrame, select: Select = "accuracy"
) -> pd.DataFrame:
    """Expected score of each group had only k of its options been tried.

    Args:
        at_budget: as `analysis.equal_compute` gives it.
        options: as `analysis.comparison.choice.options` gives them for these rows.
        select: metric that chooses among the k options on validation.

    Returns:
        One row a (group, k), k from 1 to the number of options that can be chosen: `task`, `m`,
        `paradigm`, `k`, `num_options` (as in `options`: with those that cannot be chosen),
        `saif` and `accuracy` (fractions): the seed mean on test of the option that validation
        picks, expected over draws of k options without replacement, see `best_of_k`. NaN where
        an option that may be picked has a seed without a value.
    """
    ranked = by_preference(options, select)
    scored = ranked.merge(seed_means(at_budget), on=GROUP + OPTION, how="left")
    parts = []
    for key, group in scored.groupby(GROUP, sort=False):
        part = pd.DataFrame(dict(zip(GROUP, key, strict=True)), index=range(len(group)))
        part["k"] = np.arange(1, len(group) + 1)
        part["num_options"] = group["num_options"].iloc[0]
        for name in _SCORES:
            part[name] = best_of_k(group[name])
        parts.append(part)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=EFFORT_COLUMNS)


def seed_means(at_budget: pd.DataFrame, split: str = "test") -> pd.DataFrame:
    """Seed mean of SAIF and accuracy of every option.

    Args:
        at_budget: as `analysis.equal_compute` gives it.
        split: `test`, `validation` or `train`.

    Returns:
        One row an option: the columns of GROUP and OPTION, `saif` and `accuracy` (fractions; NaN
        where a seed has none).
    """
    rows = at_budget.loc[at_budget["split"] == split, [*GROUP, *OPTION, *_SCORES]]
    grouped = rows.astype(dict.fromkeys(_SCORES, float)).groupby(GROUP + OPTION, dropna=False)
    return grouped[_SCORES].mean(skipna=False).reset_index()


def edge_warnings(options: pd.DataFrame, choice: pd.DataFrame) -> list[str]:
    """One sentence for each chosen value that is the smallest or largest tried of its axis.

    The axes are the learning rate, or, of a schedule with phases, the first and last learning rate
    and the switch point.

    Args:
        options: as `analysis.comparison.choice.options` gives it.
        choice: as `analysis.choose` gives it.
    """
    texts = []
    for pick in choice.to_dict("records"):
        tried = options[(options[GROUP] == pd.Series(pick)[GROUP]).all(axis=1)]
        for name, column in _axes(tried).items():
            grid = sorted(tried[column].dropna().unique())
            if len(grid) > 1 and pick[column] in (grid[0], grid[-1]):
                end = "smallest" if pick[column] == grid[0] else "largest"
                texts.append(
                    f"{pick['paradigm']}: the chosen {name} {number(pick[column])} is the {end} "
                    f"of the {len(grid)} tried; a better one may lie beyond the grid."
                )
    return texts


def _axes(tried: pd.DataFrame) -> dict[str, str]:
    """Name -> column of each axis that was searched in one group."""
    if tried["switch_point"].isna().all():
        return {"learning rate": "lr"}
    switch = {"switch point": "switch_point"}
    if (tried["lr"] == tried["last_lr"]).all():  # one rate for all phases: one warning
        return {"learning rate": "lr"} | switch
    return {"first learning rate": "lr", "last learning rate": "last_lr"} | switch
