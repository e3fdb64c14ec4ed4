"""A driver is killed at ten moments while a library makes its database: the next one goes on."""

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
from study.search.storage import SearchStorage
from study.storage.urls import sqlite_url
from study.tracking.store import RunStore

pytestmark = pytest.mark.timeout(600)


def track(path: Path) -> None:
    RunStore(Results(path.parent), "digits", None).connect()


def search(path: Path) -> None:
    SearchStorage(sqlite_url(path), str(path)).open("digits", ["accuracy"])


@pytest.mark.parametrize(("use", "name"), [(track, "mlflow.db"), (search, "optuna.db")])
def test_a_database_whose_making_was_killed_is_made(
    tmp_path: Path, use: Callable[[Path], None], name: str
) -> None:
    whole = tmp_path / "whole" / name
    assert _exit_of(_started(_dies_at, use, whole, 0)) == 0
    made = int(whole.with_suffix(".made").read_text())
    for moment in np.linspace(1, made, 10).astype(int).tolist():
        path = tmp_path / str(moment) / name
        assert _exit_of(_started(_dies_at, use, path, moment)) == -signal.SIGKILL
        assert _exit_of(_started(use, path)) == 0, (
            f"killed when {moment} of {made} were to be made"
        )
        assert _tables(path) == _tables(whole)


def test_drivers_make_one_database_at_once(tmp_path: Path) -> None:
    processes = [_started(track, tmp_path / "mlflow.db") for _ in range(3)]
    assert [_exit_of(process) for process in processes] == [0, 0, 0]


def _dies_at(use: Callable[[Path], None], path: Path, moment: int) -> None:
    """Kills this process before the table or index of a number is made; at none, counts them."""
    numbers = itertools.count(1)

    def on_statement(statement: str) -> None:
        if statement.lstrip().startswith("CREATE") and next(numbers) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(database: str, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection = connect(database, *args, **kwargs)
        if Path(database).name == path.name:
            connection.set_trace_callback(on_statement)
        return connection

    path.parent.mkdir()
    connect = sqlite3.connect
    sqlite3.connect = sqlite3.dbapi2.connect = traced  # type: ignore[assignment]
    use(path)
    path.with_suffix(".made").write_text(str(next(numbers) - 1))


def _started(target: Callable[..., None], *args: Any) -> BaseProcess:
    """A process of its own, which finds the libraries imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "mlflow.store.tracking.sqlalchemy_store", "optuna"])
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
