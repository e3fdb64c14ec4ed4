"""The tables of docs/cifar10.md are those that the committed results give."""

from __future__ import annotations

import re

import pytest

from analysis import compare_results
from analysis.digest.compare import Comparison
from analysis.forms import interval, percent, points
from tests.conftest import PROJECT

DOCUMENT = (PROJECT / "docs" / "cifar10.md").read_text()


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], Comparison]:
    """(Results, split scheme) -> comparison."""
    return {
        (folder, each.settings["split"]): each
        for folder in ("cifar10-results", "cifar10-table1")
        for each in compare_results(PROJECT / "docs" / folder, details=False)
    }


@pytest.mark.parametrize(
    "of",
    [
        ("cifar10-results", "disjoint"),
        ("cifar10-results", "shared-base"),
        ("cifar10-table1", "shared-base"),
    ],
)
def test_means(found, of):
    rows = found[of].summary.to_dict("records")
    assert len(rows) == 4
    for row in rows:
        for metric in ("saif", "accuracy"):
            cell = f"{percent(row[metric])} ({interval(row, metric)})"
            assert re.search(rf"^\| `{row['paradigm']}` \|.*{re.escape(cell)}", DOCUMENT, re.M), (
                cell
            )


@pytest.mark.parametrize(
    "of", [("cifar10-results", "disjoint"), ("cifar10-table1", "shared-base")]
)
def test_verdicts(found, of):
    for row in found[of].paired.to_dict("records"):
        ends = f"({points(row['low'])} to {points(row['high'])})"
        winner = {"better": row["first"], "worse": row["second"]}.get(row["verdict"], "undecided")
        cell = f"{points(row['difference'])} {ends} | {winner}"
        pair = f"{row['first']} - {row['second']}"
        assert re.search(rf"^\| {pair} \|.*{re.escape(cell)}", DOCUMENT, re.M), cell
