"""Verdicts side by side are those of each comparison, and every one is counted once."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from analysis.comparison.across.factors import setting_names
from analysis.comparison.across.verdicts import (
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


def renamed(comparison: Comparison, old: str, new: str) -> Comparison:
    return replace(comparison, paired=comparison.paired.replace({old: new}))


def test_pairs_are_against_soft_and_hard(compared: list[Comparison]) -> None:
    assert pairs(compared) == PAIRS
    assert pairs([without(each, "soft") for each in compared]) == [("lvml", "hard")]
    assert pairs([without(each, "hard") for each in compared]) == [("lvml", "soft")]
    sampled = [renamed(each, "hard", "hard-sampled") for each in compared]
    assert pairs(sampled)[1:] == [("lvml", "hard-sampled"), ("soft", "hard-sampled")]
    assert pairs([*compared, *sampled]) == PAIRS
    assert pairs([]) == []


def test_sampled_paradigms_are_held_against_their_exact_one(compared: list[Comparison]) -> None:
    (one, *_) = compared
    both = pd.concat([one.paired, one.paired.replace({"hard": "lvml-sampled"})])
    swapped = both["second"].eq("lvml-sampled")  # the later paradigm comes first
    both.loc[swapped, ["first", "second"]] = both.loc[swapped, ["second", "first"]].to_numpy()
    assert pairs([replace(one, paired=both)]) == [
        ("lvml-sampled", "soft"), *PAIRS, ("lvml-sampled", "lvml"),
    ]  # fmt: skip


def test_every_cell_is_a_row_of_the_paired_differences(compared: list[Comparison]) -> None:
    names = setting_names(compared)
    for metric in METRICS:
        header, rows = verdict_cells(names, metric)
        assert header == ["setting", "lvml - soft", "lvml - hard", "soft - hard"]
        assert [row[0] for row in rows] == [*SETTINGS, "better / worse / undecided"]
        for comparison, row in zip(names, rows[:-1], strict=True):
            paired = comparison.paired.set_index(["metric", "first", "second"])
            for pair, cell in zip(PAIRS, row[1:], strict=True):
                found = paired.loc[(metric, *pair)]
                assert cell == f"{points(found['difference'])} {found['verdict']}"


def test_counts_add_up(compared: list[Comparison]) -> None:
    some = [*compared[:-1], without(compared[-1], "soft")]
    counts = verdict_counts(some)
    assert (counts[list(VERDICTS)].sum(axis=1) == counts["settings"]).all()
    assert counts.set_index(["metric", "first", "second"])["settings"].to_dict() == {
        (metric, *pair): 3 - ("soft" in pair) for metric in METRICS for pair in PAIRS
    }
    for metric, rows in counts.groupby("metric"):
        *settings, last = verdict_cells(setting_names(some), str(metric))[1]
        for column, row in enumerate(rows.to_dict("records"), start=1):
            ends = [cells[column].split()[-1] for cells in settings]
            assert [row[verdict] for verdict in VERDICTS] == [ends.count(v) for v in VERDICTS]
            assert last[column] == " / ".join(str(row[verdict]) for verdict in VERDICTS)
