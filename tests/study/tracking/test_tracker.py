"""Calls that MLflow never got, whose answer was lost, or that fail for long: nothing is missing,
nothing doubled, and no cell waits."""

from __future__ import annotations

import dataclasses
import functools
import random
import signal
import threading
import time

import pytest
from mlflow import MlflowClient

from study.tracking import tracker as of_tracker
from study.tracking.store import Store
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


@pytest.mark.parametrize("seed", range(2))
def test_any_calls_may_fail(
    results,
    cells,
    monkeypatch,
    quick,
    seed,
):
    """One call in five is lost, on the way there or on the way back, and an answer changes."""
    draw = random.Random(seed)
    failing = Failing(monkeypatch)
    for name in (
        "create_experiment", "create_run", "delete_run", "log_artifacts", "log_batch",
        "search_runs", "set_tag", "set_terminated", "set_experiment_tag", "get_experiment_by_name",
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


def test_what_cannot_be_logged_is_named_and_keeps_nothing_else_away(results, cells, quick, capsys):
    """A summary that cannot be drawn, with the study's answer; a cell that the results lost."""

    def draw() -> dict[str, bytes]:
        raise ValueError("it cannot be drawn")

    broken = dataclasses.replace(SUMMARIES[1], files=draw)
    for wanted, of, missing, reason in (
        ({}, answer([broken, SUMMARIES[0]]), 2, "it cannot be drawn"),
        ({"no such cell": "done"}, None, 1, "the results have no cell no such cell"),
    ):
        tracker = start(results)
        tracker.log_cells({**wanted, **statuses(cells, results)})
        assert tracker.finish(of, patience=1) == missing
        errors = capsys.readouterr().err
        assert f"MLflow lacks {missing} of" in errors
        assert f"({reason})" in errors
        assert errors.endswith(f": uv run python -m study.track {results.url}\n")
        found = runs_of(client_of(results))
        assert [len(found[role]) for role in ("cell", "summary", "study")] == [3, 1, 1]
        assert found["study"][0].info.status == "FINISHED"


def test_the_end_of_a_study_ends_a_pause(results, cells, monkeypatch):
    monkeypatch.setattr(of_tracker, "EVERY", 0.01)
    failed = threading.Event()

    def refuse(*_: object) -> None:
        for name in ("EVERY", "LONGEST_PAUSE"):
            monkeypatch.setattr(of_tracker, name, 1_000.0)
        failed.set()
        raise ConnectionError("down")

    store = Store(results, "digits", None)
    monkeypatch.setattr(store, "sync", refuse)
    tracker = of_tracker.Tracker(store)
    tracker.log_cells(statuses(cells, results))
    assert failed.wait(30)
    monkeypatch.setattr(store, "sync", functools.partial(Store.sync, store))
    assert tracker.finish(answer(), seconds=60, patience=60) == 0
    assert_holds(results, cells)


def test_a_server_that_is_down_is_warned_of_and_given_up(
    results,
    cells,
    monkeypatch,
    capsys,
):
    tracker = start(results, DOWN)
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1
    assert warning.startswith("warning: the MLflow server http://me:***@127.0.0.1:1 does not")
    assert "Connection refused" in warning
    assert f"study.track {results.url} --tracking" in warning
    tracker.log_cells(statuses(cells, results))
    started = time.monotonic()
    assert tracker.finish(answer(()), patience=0.5) == 4
    assert 0.5 <= time.monotonic() - started < 5
    told = capsys.readouterr()
    assert "MLflow lacks 4 of 4 runs" in told.err
    assert f"study.track {results.url} --tracking 'http://me:***@127.0.0.1:1'" in told.err
    assert "secret" not in warning + told.err + told.out + str(tracker.ui_command)


def test_ctrl_c_ends_the_wait(results, cells):
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
def test_tracking_can_be_left_out(results, cells, monkeypatch, asked):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "none" if asked == "environment" else DOWN)
    monkeypatch.setattr(MlflowClient, "__init__", None)
    tracker = start(results, "none" if asked == "option" else None)
    tracker.log_cells(statuses(cells, results))
    assert (tracker.finish(answer()), tracker.missing) == (0, 0)
    assert (tracker.ui_command, tracker.view) == (None, None)
