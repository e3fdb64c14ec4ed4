"""Calls that MLflow never got, whose answer was lost, or that fail for long: nothing is missing,
nothing doubled, and no cell waits."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from mlflow import MlflowClient

from study.cell import Cell
from study.results import Results
from study.tracking import tracker as of_tracker
from study.tracking.store import Store
from tests.made_up.comparisons import make_results
from tests.made_up.tracking import (
    SUMMARIES,
    Failing,
    answer,
    assert_holds,
    client_of,
    runs_of,
    start,
    statuses,
    summary,
)

DOWN = "http://me:very-secret@127.0.0.1:1"


@pytest.mark.parametrize("seed", range(4))
def test_any_calls_may_fail(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    quick: None,
    seed: int,
) -> None:
    """One call in five is lost, on the way there or on the way back, and an answer changes."""
    draw = random.Random(seed)
    failing = Failing(monkeypatch)
    for name in (
        "create_run", "delete_run", "log_artifacts", "log_batch", "search_runs", "set_tag",
        "set_terminated", "set_experiment_tag", "get_experiment_by_name",
    ):  # fmt: skip
        failing.patch(
            name, lambda _: draw.choice(["before", "after"]) if draw.random() < 1 / 5 else None
        )
    for of in (answer(), answer([summary("soft", 0.9), SUMMARIES[0]])):
        tracker = of_tracker.Tracker(Store(results, "digits", None))
        tracker.log_cells(statuses(cells, results))
        assert tracker.finish(of, seconds=60, patience=60) == 0
    assert failing.failures >= 3
    monkeypatch.undo()
    assert_holds(results, cells, of)


def test_two_drivers_at_once(results: Results, cells: list[Cell], quick: None) -> None:
    """They may disturb each other, but the end is the same."""
    trackers = [start(results), start(results)]
    for tracker in trackers:
        tracker.log_cells(statuses(cells, results))
    for tracker in [*trackers, start(results)]:
        tracker.finish(answer())
    tracker = of_tracker.Tracker(Store(results, "digits", None))
    tracker.log_cells(statuses(cells, results))
    assert tracker.finish(answer()) == 0
    assert_holds(results, cells)


def test_a_store_that_lost_runs_gets_them_again(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    """A server may come back with an older database."""
    tracker = start(results)
    wanted = statuses(cells, results)
    tracker.log_cells({cell.id: wanted[cell.id] for cell in cells[:2]})
    deadline = time.monotonic() + 30
    while tracker.missing and time.monotonic() < deadline:
        time.sleep(0.05)
    client = client_of(results)
    client.delete_run(runs_of(client)["cell"][0].info.run_id)
    failing = Failing(monkeypatch)
    failing.patch("create_run", lambda call: "before" if call == 1 else None)
    tracker.log_cells(wanted)
    assert tracker.finish(answer()) == 0
    assert failing.failures == 1
    assert_holds(results, cells)


def test_a_summary_that_cannot_be_drawn_keeps_nothing_else_away(
    results: Results, cells: list[Cell], quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    def draw() -> dict[str, bytes]:
        raise ValueError("it cannot be drawn")

    broken = dataclasses.replace(SUMMARIES[1], files=draw)
    tracker = start(results)
    tracker.log_cells(statuses(cells, results))
    assert tracker.finish(answer([broken, SUMMARIES[0]])) == 2
    errors = capsys.readouterr().err
    assert "MLflow lacks 2 of 6 runs (it cannot be drawn)" in errors
    assert errors.endswith(f": uv run python -m study.track {results.url}\n")
    found = runs_of(client_of(results))
    assert [len(found[role]) for role in ("cell", "summary", "study")] == [3, 1, 1]
    assert found["study"][0].info.status == "FINISHED"


def test_a_cell_that_the_results_lost_is_named(
    results: Results, cells: list[Cell], quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    tracker = start(results)
    tracker.log_cells({"no such cell": "done", **statuses(cells, results)})
    assert tracker.finish(None) == 1
    assert "the results have no cell no such cell" in capsys.readouterr().err
    assert len(runs_of(client_of(results))["cell"]) == len(cells)


def test_pauses_grow_up_to_a_limit_and_end_with_the_study(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_tracker, "EVERY", 0.1)
    monkeypatch.setattr(of_tracker, "LONGEST_PAUSE", 0.4)
    tries: list[float] = []

    def refuse(*_: object) -> None:
        tries.append(time.monotonic())
        raise ConnectionError("down")

    store = Store(results, "digits", None)
    monkeypatch.setattr(store, "sync", refuse)
    tracker = of_tracker.Tracker(store)
    tracker.log_cells(statuses(cells, results))
    deadline = time.monotonic() + 30
    while len(tries) < 6 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(tries) >= 6
    pauses = [after - before for before, after in itertools.pairwise(tries)]
    assert all(pause >= least for pause, least in zip(pauses, (0.1, 0.2, 0.4, 0.4), strict=False))
    monkeypatch.setattr(of_tracker, "LONGEST_PAUSE", 100.0)
    monkeypatch.setattr(of_tracker, "EVERY", 100.0)
    time.sleep(1)  # the last short pause ends, and a long one begins
    monkeypatch.setattr(store, "sync", functools.partial(Store.sync, store))
    assert tracker.finish(answer(), seconds=60) == 0


def test_a_server_that_is_down_is_warned_of_and_given_up(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tracker = start(results, DOWN)
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1
    assert warning.startswith("warning: the MLflow server http://me:***@127.0.0.1:1 does not")
    assert "Connection refused" in warning
    assert f"study.track {results.url} --tracking" in warning
    started = time.monotonic()
    for _ in range(1000):
        tracker.log_cells({cell.id: "done" for cell in cells})
    assert time.monotonic() - started < 1
    started = time.monotonic()
    assert tracker.finish(answer(()), patience=0.5) == 4
    assert 0.5 <= time.monotonic() - started < 5
    told = capsys.readouterr()
    assert "MLflow lacks 4 of 4 runs" in told.err
    assert f"study.track {results.url} --tracking 'http://me:***@127.0.0.1:1'" in told.err
    assert "secret" not in warning + told.err + told.out + str(tracker.ui_command)


def test_ctrl_c_ends_the_wait(results: Results, cells: list[Cell]) -> None:
    tracker = start(results, DOWN)
    tracker.log_cells(statuses(cells, results))
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.6, signal.pthread_kill, (main, signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        tracker.finish(answer())
    assert time.monotonic() - started < 5
    tracker._thread.join(10)
    assert not tracker._thread.is_alive()


@pytest.mark.parametrize("asked", ["option", "environment"])
def test_tracking_can_be_left_out(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "none" if asked == "environment" else DOWN)
    monkeypatch.setattr(MlflowClient, "__init__", None)
    tracker = start(results, "none" if asked == "option" else None)
    tracker.log_cells(statuses(cells, results))
    assert (tracker.finish(answer()), tracker.missing) == (0, 0)
    assert (tracker.ui_command, tracker.view) == (None, None)


def test_a_database_is_made_where_there_is_none(tmp_path: Path) -> None:
    results = make_results(tmp_path / "results")
    assert start(results).finish(answer()) == 0
    assert_holds(results, [])
