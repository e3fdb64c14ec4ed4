"""Verdicts side by side are those of each comparison, and every one is counted once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace
from typing import cast

import pandas as pd
import pytest

from analysis.digest.across.factors import setting_names
from analysis.digest.across.order import VERDICTS, pairs, verdict_cells
from analysis.digest.compare import Comparison
from analysis.words import points


def pairs_of(paradigms: str) -> Comparison:
    """A comparison of every pair of paradigms, the later minus the earlier."""
    rows = [pair[::-1] for pair in combinations(paradigms.split(), 2)]
    paired = pd.DataFrame(rows, columns=["first", "second"])
    return cast(Comparison, SimpleNamespace(paired=paired))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["hard soft lvml"], "lvml soft, lvml hard, soft hard"),
        (["hard lvml"], "lvml hard"),
        (["soft lvml"], "lvml soft"),
        ([], ""),
        (["yours mine lvml"], "lvml mine, lvml yours, mine yours"),
        # Sampled hard attention stands for the exact one where no setting has that.
        (["hard-sampled soft lvml"], "lvml soft, lvml hard-sampled, soft hard-sampled"),
        (["hard soft", "hard-sampled soft"], "soft hard"),
        (
            ["hard soft lvml lvml-sampled"],
            "lvml-sampled soft, lvml soft, lvml hard, soft hard, lvml-sampled lvml",
        ),
    ],
)
def test_pairs_are_against_soft_and_hard_and_sampled_ones_against_the_exact(
    settings: Sequence[str], expected: str
) -> None:
    assert ", ".join(map(" ".join, pairs(map(pairs_of, settings)))) == expected


def test_every_verdict_is_a_cell_and_is_counted_once(compared: list[Comparison]) -> None:
    *others, last = compared
    without_soft = last.paired[last.paired[["first", "second"]].ne("soft").all(axis=1)]
    names = setting_names([*others, replace(last, paired=without_soft)])
    said = {
        (
            name,
            f"{row['first']} - {row['second']}",
        ): f"{points(row['difference'])} {row['verdict']}"
        for comparison, name in names.items()
        for row in comparison.paired.query("metric == 'saif'").to_dict("records")
    }
    (_, *headers), (*rows, (_, *totals)) = verdict_cells(names, "saif")
    cells = {
        (name, header): cell
        for name, *own in rows
        for header, cell in zip(headers, own, strict=True)
    }
    assert {place: cell for place, cell in cells.items() if cell != "-"} == said
    for header, total in zip(headers, totals, strict=True):
        ends = [cell.split()[-1] for (_, pair), cell in said.items() if pair == header]
        assert total == " / ".join(str(ends.count(verdict)) for verdict in VERDICTS)
