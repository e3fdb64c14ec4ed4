"""A results directory with three cells and its MLflow store."""

from __future__ import annotations

import math

import pytest

from study.cell import Cell
from study.results import Results
from tests.made_up.comparisons import make_cell, write


@pytest.fixture(autouse=True)
def _no_word_on_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """That depends on the machine; tests/faults/test_tracking_server.py has a slow server."""
    monkeypatch.setattr("study.tracking.tracker.SILENT_SECONDS", math.inf)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are tried again at once, and given up soon."""
    for name in ("FIRST_PAUSE", "LONGEST_PAUSE", "LAST_PAUSE"):
        monkeypatch.setattr(f"study.tracking.tracker.{name}", 0.01)
    monkeypatch.setattr("study.tracking.tracker.DOWN_SECONDS", 1.0)


@pytest.fixture
def as_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are logged by MLflow's client, as those that go to a server."""
    monkeypatch.setattr("study.tracking.store.database_of", lambda client: None)


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
