"""Does the order of paradigms hold in every setting? Verdicts side by side, and how often each.

Every verdict is that of `Comparison.paired`, and nothing here tests anything again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.digest.compare import Comparison, metrics_of
from analysis.groups import STAND_INS, paradigm_order
from analysis.words import points, score_name

Pair = tuple[str, str]
"""First and second paradigm; a difference is the first minus the second."""

_SAMPLED = {**STAND_INS, "lvml": ("lvml-sampled",)}
"""Exact paradigm -> those that see samples of what it sees."""

VERDICTS = ("better", "worse", "undecided")
"""Of the first paradigm."""


def pairs(found: Iterable[Comparison]) -> list[Pair]:
    """The pairs against soft, against hard, and of sampled paradigms against their exact one.

    The first of each is the latest paradigm. Where no setting has exact hard attention, what
    stands for it is taken; where there are no such pairs, all that there are.
    """
    tables = [comparison.paired for comparison in found]
    there = {
        pair for table in tables for pair in zip(table["first"], table["second"], strict=True)
    }
    names = {name for pair in there for name in pair}
    hard = next((name for name in ("hard", *STAND_INS["hard"]) if name in names), "hard")
    firsts = paradigm_order(names)[::-1]
    exact = {name: of for of, each in _SAMPLED.items() if of in names for name in each}
    every = [
        *((first, "soft") for first in firsts),
        *((first, hard) for first in firsts if first not in exact),
        *((first, exact[first]) for first in firsts if first in exact),
    ]
    return [pair for pair in every if pair in there] or sorted(there)


def verdicts_of(comparison: Comparison, metric: str) -> dict[Pair, dict[Any, Any]]:
    """Pair -> its row of the paired differences."""
    paired = comparison.paired
    rows = paired[paired["metric"] == metric].to_dict("records")
    return {(row["first"], row["second"]): row for row in rows}


def verdict_cells(
    names: Mapping[Comparison, str], metric: str
) -> tuple[list[str], list[list[str]]]:
    """Header and rows: one row a setting, one column a pair, and a last row that counts.

    Args:
        names: the comparisons and their names, see `analysis.digest.across.factors`.
        metric: one that is tested.

    Returns:
        Cells such as ``+10.6 better``, the difference in points; ``-`` where a setting has no such
        pair.
    """
    counts = verdict_counts(names, metric)
    of_each = [(name, verdicts_of(comparison, metric)) for comparison, name in names.items()]
    rows = [[name, *(_cell(own.get(pair)) for pair in counts)] for name, own in of_each]
    numbers = [[str(count[verdict]) for verdict in VERDICTS] for count in counts.values()]
    last = map(" / ".join, [VERDICTS, *numbers])
    return ["setting", *map(" - ".join, counts)], [*rows, [*last]]


def verdict_counts(found: Collection[Comparison], metric: str) -> dict[Pair, Counter[str]]:
    """Pair that any setting has -> in how many settings it has each of `VERDICTS`."""
    of_each = [verdicts_of(comparison, metric) for comparison in found]
    counts = {
        pair: Counter(str(own[pair]["verdict"]) for own in of_each if pair in own)
        for pair in pairs(found)
    }
    return {pair: count for pair, count in counts.items() if count}


def count_sentences(found: Sequence[Comparison]) -> list[str]:
    """A paragraph a metric, with a sentence a pair.

    ``In SAIF lvml is better than soft in 9 of 16 settings, worse in 0, undecided in 7.``
    """
    paragraphs = (
        " ".join(
            f"In {joint_name(found, metric)} {first} is better than {second} in "
            f"{count['better']} of {count.total()} settings, worse in {count['worse']}, "
            f"undecided in {count['undecided']}."
            for (first, second), count in verdict_counts(found, metric).items()
        )
        for metric in metrics_of(found)
    )
    return [*filter(None, paragraphs)]


def joint_name(found: Sequence[Comparison], metric: str) -> str:
    """What a metric is called where all of these stand together."""
    if metric == "accuracy":
        return score_name(*(comparison.task for comparison in found))
    return next(each.names[metric] for each in found if metric in each.metrics)


def _cell(row: dict[Any, Any] | None) -> str:
    if row is None:
        return "-"
    difference = "" if pd.isna(row["difference"]) else f"{points(row['difference'])} "
    return f"{difference}{row['verdict']}"
