"""Verdicts side by side are those of each comparison, and every one is counted once."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from analysis.comparison.across.factors import setting_names
from analysis.comparison.across.order_of_paradigms import (
    VERDICTS,
    pairs,
    verdict_cells,
    verdict_counts,
)
from analysis.comparison.compare import Comparison
from analysis.words import METRICS, points
from tests.made_up.settings import SETTINGS

PAIRS = [("lvml", "soft"), ("lvml", "hard"), ("soft", "hard")]


def without(comparison: Comparison, paradigm: str) -> Comparison:
    paired = comparison.paired
    kept = (paired["first"] != paradigm) & (paired["second"] != paradigm)
    return replace(comparison, paired=paired[kept])


def test_pairs_are_against_soft_and_hard(compared: list[Comparison]) -> None:
    assert pairs(compared) == PAIRS
    assert pairs([without(each, "soft") for each in compared]) == [("lvml", "hard")]
    assert pairs([without(each, "hard") for each in compared]) == [("lvml", "soft")]
    sampled = [
        replace(each, paired=each.paired.replace({"hard": "hard-sampled"})) for each in compared
    ]
    assert pairs(sampled)[1:] == [("lvml", "hard-sampled"), ("soft", "hard-sampled")]
    assert pairs([*compared, *sampled]) == PAIRS
    assert pairs([]) == []
    others = compared[0].paired.replace({"soft": "mine", "hard": "yours"})
    assert pairs([replace(compared[0], paired=others)]) == [
        ("lvml", "mine"), ("lvml", "yours"), ("mine", "yours"),
    ]  # fmt: skip


def test_sampled_paradigms_are_held_against_their_exact_one(compared: list[Comparison]) -> None:
    (one, *_) = compared
    both = pd.concat([one.paired, one.paired.replace({"hard": "lvml-sampled"})])
    swapped = both["second"].eq("lvml-sampled")  # the later paradigm comes first
    both.loc[swapped, ["first", "second"]] = both.loc[swapped, ["second", "first"]].to_numpy()
    assert pairs([replace(one, paired=both)]) == [
        ("lvml-sampled", "soft"), *PAIRS, ("lvml-sampled", "lvml"),
    ]  # fmt: skip


def test_every_cell_is_a_verdict_and_is_counted_once(compared: list[Comparison]) -> None:
    some = [*compared[:-1], without(compared[-1], "soft")]
    names = setting_names(some)
    for metric in METRICS:
        counts = verdict_counts(some, metric)
        header, (*rows, totals) = verdict_cells(names, metric)
        assert header == ["setting", *(" - ".join(pair) for pair in PAIRS)]
        assert [row[0] for row in rows] == [*SETTINGS]
        for column, pair in enumerate(PAIRS, start=1):
            tables = (each.paired.set_index(["metric", "first", "second"]) for each in names)
            of_pair = [
                each.loc[(metric, *pair)] for each in tables if (metric, *pair) in each.index
            ]
            said = [f"{points(row['difference'])} {row['verdict']}" for row in of_pair]
            assert [row[column] for row in rows if row[column] != "-"] == said
            ends = [row["verdict"] for row in of_pair]
            numbers = [ends.count(verdict) for verdict in VERDICTS]
            assert [counts[pair][verdict] for verdict in VERDICTS] == numbers
            assert totals[column] == " / ".join(map(str, numbers))
