"""Calls that MLflow never got, or whose answer was lost: nothing is missing, nothing doubled."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping

import pytest
from mlflow.exceptions import MlflowException

from study.cell import Cell
from study.results import Results
from study.tracking.database import write
from study.tracking.runs import CellRun
from study.tracking.store import RunStore
from study.tracking.tracker import MLflowTracker
from tests.made_up.tracking import (
    GROUPS,
    SUMMARY,
    Failing,
    assert_exactly_once,
    assert_groups_exactly_once,
    ids,
    runs,
    start,
    track,
)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("create_run", 1),  # the parent
        ("create_run", 2),
        ("log_batch", 1),
        ("log_artifacts", 1),
        ("set_terminated", 1),
        ("set_terminated", 4),  # the parent
        ("search_runs", 1),
    ],
)
def test_a_lost_request_and_a_lost_answer_double_nothing(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    quick: None,
    as_a_server: None,
    capsys: pytest.CaptureFixture[str],
    name: str,
    number: int,
) -> None:
    when = {number: "before", number + 1: "after"}
    failing = Failing(monkeypatch)
    failing.patch(name, when.get)
    tracker = start(results)
    tracker.log_cells(ids(cells))
    tracker.wait(30, 10)
    _, children, _ = runs(results)  # as they are before the study's end, which tidies, too
    assert sorted(run.data.tags["cell_id"] for run in children) == ids(cells)
    tracker.finish(SUMMARY, [])
    assert failing.failures == 2
    assert_exactly_once(results, cells)
    assert "MLflow lacks" not in capsys.readouterr().err


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_that_the_database_refuses_or_does_not_confirm_doubles_nothing(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch, quick: None, when: str
) -> None:
    calls = []

    def fail(database: object, experiment: object, batch: Mapping[str, CellRun]) -> None:
        calls.append(len(batch))
        if when == "after":
            write(database, experiment, batch)
        raise MlflowException("the disk is gone")

    monkeypatch.setattr("study.tracking.store.write", fail)
    tracker = start(results)
    tracker.log_cells(ids(cells))
    tracker.wait(30, 10)
    _, children, _ = runs(results)
    assert sorted(run.data.tags["cell_id"] for run in children) == ids(cells)
    tracker.finish(SUMMARY, [])
    assert calls == [len(cells)]
    assert_exactly_once(results, cells)


def test_a_lost_answer_about_the_experiment(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(monkeypatch)
    failing.patch("create_experiment", lambda call: "after")
    track(results, cells)
    assert failing.failures == 1
    assert_exactly_once(results, cells)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_calls_may_fail(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    quick: None,
    as_a_server: None,
    seed: int,
) -> None:
    """One call in four is lost, on the way there or on the way back."""
    monkeypatch.setattr("study.tracking.tracker.DOWN_SECONDS", 30.0)
    draw = random.Random(seed)
    failing = Failing(monkeypatch)
    tracker = start(results)
    for name in (
        "create_run", "delete_run", "log_artifacts", "log_batch", "search_runs", "set_tag",
        "set_terminated", "update_run", "get_experiment_by_name",
    ):  # fmt: skip
        failing.patch(
            name, lambda _: draw.choice(["before", "after"]) if draw.random() < 0.25 else None
        )
    tracker.log_cells(ids(cells))
    tracker.finish(SUMMARY, [], GROUPS)
    assert tracker.missing == 0
    assert failing.failures >= 3
    monkeypatch.undo()
    assert_exactly_once(results, cells)
    assert_groups_exactly_once(results, GROUPS)


def test_a_store_that_lost_runs_gets_them_again(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    quick: None,
    as_a_server: None,
) -> None:
    """A server may come back with an older database."""
    tracker = start(results)
    tracker.log_cells(ids(cells[:2]))
    tracker.wait(30, 10)
    client, children, _ = runs(results)
    assert len(children) == 2
    client.delete_run(children[0].info.run_id)
    failing = Failing(monkeypatch)  # of the one cell that is still to be logged
    failing.patch("create_run", lambda call: "before" if call == 1 else None)
    failing.patch("search_runs", lambda call: "before" if call == 2 else None)
    tracker.log_cells(ids(cells[2:]))
    tracker.finish(SUMMARY, [])
    assert failing.failures == 2
    assert_exactly_once(results, cells)


def test_a_cell_that_cannot_be_logged_stops_nothing(
    results: Results, cells: list[Cell], quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    tracker = start(results)
    tracker.log_cells(["no such cell", *ids(cells)])
    tracker.finish(SUMMARY, [])
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "MLflow lacks 1 of 5 runs" in errors
    assert errors.endswith(f": uv run python -m study.track {results.url}\n")
    assert_exactly_once(results, cells)


def test_a_store_that_is_opened_late_gets_all(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    connect, tries = RunStore._connect, []

    def late(store: RunStore) -> None:
        tries.append(store)
        if len(tries) < 5:
            raise ConnectionError("not yet")
        connect(store)

    monkeypatch.setattr(RunStore, "_connect", late)
    tracker = MLflowTracker(RunStore(results, "digits", None))
    tracker.log_cells(ids(cells))
    tracker.wait(30, 10)
    tracker.finish(SUMMARY, [])
    assert len(tries) == 5
    assert_exactly_once(results, cells)


def test_pauses_grow_up_to_a_limit(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def rest(tracker: MLflowTracker, seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 8:
            tracker._stopped = True

    def refuse(store: RunStore) -> None:
        raise ConnectionError("down")

    monkeypatch.setattr(MLflowTracker, "_rest", rest)
    monkeypatch.setattr(RunStore, "_connect", refuse)
    tracker = MLflowTracker(RunStore(results, "digits", None))
    tracker.log_cells(ids(cells))
    tracker._thread.join(10)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_finish_ends_a_long_pause(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.tracking.tracker.FIRST_PAUSE", 100.0)
    monkeypatch.setattr("study.tracking.tracker.LONGEST_PAUSE", 100.0)
    failing = Failing(monkeypatch)
    failing.patch("create_run", lambda call: "before" if call == 1 else None)
    tracker = start(results)
    tracker.log_cells(ids(cells))
    deadline = time.monotonic() + 30
    while not failing.failures and time.monotonic() < deadline:
        time.sleep(0.05)
    tracker.finish(SUMMARY, [])
    assert_exactly_once(results, cells)
