"""Pruning by theory's scores against every other order, paired by network."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from analysis.attention_paths.networks import THEORY
from analysis.comparison.paired import PAIRED_COLUMNS, of_seeds, with_verdicts
from analysis.comparison.report.verdicts import would_decide as seeds_that_would_decide
from analysis.heads.methods import GREEDY, RANDOM, REVERSE, RULES, scorer_text
from analysis.heads.settings import Setting
from analysis.section.claim import evidence
from analysis.section.columns import Row
from analysis.statistics import CONFIDENCE, MIN_SEEDS

OTHERS = (*RULES, RANDOM, REVERSE, GREEDY)
"""What theory's order is held against, in the order of the table; not the bound, which no order
can beat."""

_NOT_HERE = {"m", "later_seeds", "above", "needed_images", "seen_images"}
_NOT_HERE |= {"num_images", "image_se", "num_backgrounds", "background_se"}
_NOT_HERE |= {f"{what}_{which}" for what in ("learned", "given") for which in ("first", "second")}

COLUMNS = [name for name in PAIRED_COLUMNS if name not in _NOT_HERE]
_LOST = "num_lost"


def differences(setting: Setting, other: str) -> tuple[pd.Series, int]:
    """Area of theory at the reference width minus another order's, seed by seed, and lost seeds.

    Args:
        setting: the setting.
        other: one of `OTHERS`.
    """
    mine = setting.of(THEORY, setting.reference)
    theirs = mine["area_reverse"] if other == REVERSE else setting.of(other)["area"]
    found = (mine["area"] - theirs).loc[mine.index.intersection(theirs.index)]
    return found.sort_index(), len(setting.seeds) - len(found)


def paired(setting: Setting) -> pd.DataFrame:
    """Theory against every order that there is, as one family of tests.

    Returns:
        One row an order: the columns of `analysis.comparison.paired.paired_table` that are not
        about images, with the metric ``area`` (mean accuracy on the test split without 0, 1, ...,
        K heads, a fraction), and `num_lost`, seeds without a difference, which count against
        either verdict as in `analysis.section.claim`; empty without theory.
    """
    first = scorer_text(THEORY, setting.reference)
    records = []
    for other in _there(setting):
        values, lost = differences(setting, other)
        mine = setting.of(THEORY, setting.reference)["area"].loc[values.index]
        numbers = of_seeds(values, CONFIDENCE)
        records.append(
            {
                **numbers,
                "task": setting.task,
                "comparison_id": setting.id,
                "metric": "area",
                "first": first,
                "second": other,
                _LOST: lost,
                "mean_first": mine.mean(skipna=False),
                "mean_second": (mine - values).mean(skipna=False),
                "p": _p(values, numbers["p"], lost),
            }
        )
    judged = with_verdicts(records, CONFIDENCE)
    if setting.chosen_on_test:
        judged = [{**row, "verdict": "undecided"} for row in judged]
    return pd.DataFrame(judged, columns=[*COLUMNS, _LOST])


def _p(values: pd.Series, p: float, lost: int) -> float:
    """The p value of the t test; with lost networks no smaller than that of `evidence`."""
    if not lost or len(values) < MIN_SEEDS or math.isnan(p):
        return p
    return max(p, evidence(values, 0, "above", lost).p)


def _there(setting: Setting) -> Iterator[str]:
    """The orders of which there is a cell."""
    methods = set(setting.cells["method"])
    if THEORY in methods:
        yield from (name for name in OTHERS if name == REVERSE or name in methods)


def would_decide(row: Row) -> str:
    """How many networks would decide an undecided row; ``-`` where networks were lost."""
    far, seen = seeds_that_would_decide(row)
    if row[_LOST] or (far, seen) == ("-", "-"):
        return "-"
    return f"{far} networks" + f"; as seen {seen}" * (seen != "-")
