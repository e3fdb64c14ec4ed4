"""The tables of docs/cifar10.md are those that the committed results give."""

from __future__ import annotations

import re

import pytest

from analysis import compare_results
from analysis.comparison.compare import Comparison
from analysis.words import interval, percent, points
from tests.conftest import PROJECT

DOCUMENT = (PROJECT / "docs" / "cifar10.md").read_text()


@pytest.fixture(scope="module")
def found() -> dict[str, Comparison]:
    """Split scheme -> comparison."""
    every = compare_results(PROJECT / "docs" / "cifar10-results", details=False)
    return {each.settings["split"]: each for each in every}


@pytest.mark.parametrize("split", ["disjoint", "shared-base"])
def test_means(found: dict[str, Comparison], split: str) -> None:
    rows = found[split].summary.to_dict("records")
    assert len(rows) == 4
    for row in rows:
        for metric in ("saif", "accuracy"):
            cell = f"{percent(row[metric])} ({interval(row, metric)})"
            assert re.search(rf"^\| `{row['paradigm']}` \|.*{re.escape(cell)}", DOCUMENT, re.M), (
                cell
            )


def test_verdicts(found: dict[str, Comparison]) -> None:
    for row in found["disjoint"].paired.to_dict("records"):
        ends = f"({points(row['low'])} to {points(row['high'])})"
        winner = {"better": row["first"], "worse": row["second"]}.get(row["verdict"], "undecided")
        cell = f"{points(row['difference'])} {ends} | {winner}"
        pair = f"{row['first']} - {row['second']}"
        assert re.search(rf"^\| {pair} \|.*{re.escape(cell)}", DOCUMENT, re.M), cell
