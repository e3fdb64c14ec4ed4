"""The answer in a sentence, made from the paired verdicts and nothing else.

A paradigm beats another only where `Comparison.paired` says so; everything else is undecided.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.comparison.report.limits import is_interim, so_far
from analysis.digest.compare import Comparison
from analysis.groups import paradigm_order
from analysis.rules.statistics import MIN_SEEDS
from analysis.words import capital, instances, listed, made_equal, metric_name


def answer(found: Sequence[Comparison]) -> list[str]:
    """Who beats whom, a sentence a comparison.

    Args:
        found: as `analysis.digest.compare.compare` gives them, at least one.
    """
    if all(comparison.paired.empty for comparison in found):
        return [_nothing_to_compare(found)]
    return [_sentence(comparison, len(found) > 1) for comparison in found]


def lone_paradigm(comparison: Comparison) -> str:
    """Says that there is no pair of paradigms; empty where there is one."""
    names = list(comparison.summary["paradigm"])
    if len(names) > 1:
        return ""
    having = f"only {names[0]} has results" if names else "no paradigm has results"
    return f"{having} that can be compared, so there are no differences"


def _nothing_to_compare(found: Sequence[Comparison]) -> str:
    names = paradigm_order(name for each in found for name in each.choice["paradigm"])
    who = "No paradigm has an option that can be chosen"
    if names:
        who = f"{listed(names)} share no setting" if names[1:] else f"Only {names[0]} has results"
    return (
        f"{who}, so there is nothing to compare: run at least two paradigms in one setting, with "
        f"{MIN_SEEDS} seeds or more each."
    )


def _sentence(comparison: Comparison, several: bool) -> str:
    """``hybrid and lvml each beat hard and soft in SAIF; accuracy is undecided.``"""
    conditions = []
    if comparison.axis != "flops":
        conditions.append(f"at {made_equal(comparison.axis, instances(comparison.task))}")
    if (comparison.choice["select"] == "saif").any():
        conditions.append("with options chosen by the hidden foreground")
    text = ", ".join([*conditions, lone_paradigm(comparison) or _verdicts(comparison)])
    if several:
        return f"{comparison.name}: {text}."
    decided = (comparison.paired["verdict"] != "undecided").any()
    return f"{text if decided and not conditions else capital(text)}."


def _verdicts(comparison: Comparison) -> str:
    paired = comparison.paired
    if is_interim(paired).all():
        return f"no verdict yet ({so_far(paired)})"
    found: dict[str, list[str]] = {}
    for metric in comparison.metrics:
        beaten = _beaten(comparison.paired[comparison.paired["metric"] == metric])
        found.setdefault(beaten, []).append(metric_name(metric, task=comparison.task))
    undecided = found.pop("", [])
    clauses = [f"{beaten} in {listed(names)}" for beaten, names in found.items()]
    if undecided:
        left_open = f"{listed(undecided)} {'are' if undecided[1:] else 'is'} undecided"
        clauses.append(
            left_open if clauses else f"no paradigm is shown to beat another: {left_open}"
        )
    return "; ".join(clauses)


def _beaten(rows: pd.DataFrame) -> str:
    """``hybrid and lvml each beat hard and soft, and soft beats hard``; empty: none is decided."""
    losers: dict[str, list[str]] = {}
    for row in rows[rows["verdict"] != "undecided"].to_dict("records"):
        order = (str(row["first"]), str(row["second"]))
        winner, loser = order if row["verdict"] == "better" else order[::-1]
        losers.setdefault(winner, []).append(loser)
    winners: dict[str, list[str]] = {}
    for winner, beaten in sorted(losers.items(), key=lambda item: -len(item[1])):
        winners.setdefault(listed(paradigm_order(beaten)), []).append(winner)
    return ", and ".join(
        f"{listed(paradigm_order(names))} {'each beat' if names[1:] else 'beats'} {of_all}"
        for of_all, names in winners.items()
    )
