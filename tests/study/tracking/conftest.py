"""A results directory with three cells and its MLflow store."""

from __future__ import annotations

import pytest

from study.cell import Cell
from study.results import Results
from tests.made_up.tracking import write_cells


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
    return write_cells(results)
