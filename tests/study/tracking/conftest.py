"""A results directory with three cells and its MLflow store."""

from __future__ import annotations

import pytest

from study.cell import Cell
from study.results import Results
from tests.made_up.comparisons import make_cell, write


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are tried again at once."""
    for name in ("EVERY", "LONGEST_PAUSE"):
        monkeypatch.setattr(f"study.tracking.tracker.{name}", 0.01)


@pytest.fixture
def results(results_with_store: Results) -> Results:
    return results_with_store


@pytest.fixture
def cells(results: Results) -> list[Cell]:
    return [
        write(results, make_cell("hybrid", 0.1)),
        write(results, make_cell("lvml", 1e20), status="diverged", loss=float("inf")),
        write(results, make_cell("soft", seed=3), accuracy=0.7),
    ]
