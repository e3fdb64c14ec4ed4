"""A driver is killed at ten moments while MLflow makes its database: the next one goes on."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from study.results import Results
from study.tracking.store import Store

pytestmark = pytest.mark.timeout(600)


def track(path: Path) -> None:
    Store(Results(path.parent), "digits", None).connect()


def test_a_database_whose_making_was_killed_is_made(tmp_path: Path) -> None:
    whole = tmp_path / "whole" / "mlflow.db"
    assert _exit_of(_started(_dies_at, whole, 0)) == 0
    made = int(whole.with_suffix(".made").read_text())
    for moment in np.linspace(1, made, 10).astype(int).tolist():
        path = tmp_path / str(moment) / "mlflow.db"
        assert _exit_of(_started(_dies_at, path, moment)) == -signal.SIGKILL
        assert _exit_of(_started(track, path)) == 0, (
            f"killed when {moment} of {made} were to be made"
        )
        assert _tables(path) == _tables(whole)


def test_drivers_make_one_database_at_once(tmp_path: Path) -> None:
    processes = [_started(track, tmp_path / "mlflow.db") for _ in range(3)]
    assert [_exit_of(process) for process in processes] == [0, 0, 0]


def _dies_at(path: Path, moment: int) -> None:
    """Kills this process before the table or index of a number is made; at none, counts them."""
    numbers = itertools.count(1)

    def on_statement(statement: str) -> None:
        if statement.lstrip().startswith("CREATE") and next(numbers) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(database: str, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection = connect(database, *args, **kwargs)
        if Path(database).name in (path.name, "made.db"):
            connection.set_trace_callback(on_statement)
        return connection

    path.parent.mkdir()
    connect = sqlite3.connect
    sqlite3.connect = sqlite3.dbapi2.connect = traced  # type: ignore[assignment]
    track(path)
    path.with_suffix(".made").write_text(str(next(numbers) - 1))


def _started(target: Callable[..., None], *args: Any) -> BaseProcess:
    """A process of its own, which finds the libraries imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "mlflow.store.tracking.sqlalchemy_store"])
    process = context.Process(target=target, args=args)
    process.start()
    return process


def _exit_of(process: BaseProcess) -> int | None:
    process.join()
    return process.exitcode


def _tables(path: Path) -> set[tuple[str, str]]:
    """A database's tables and indexes; MLflow writes their checks in any order."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        return set(database.execute("SELECT type, name FROM sqlite_master"))
