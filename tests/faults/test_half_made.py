"""A driver is killed while MLflow makes its database: the next one goes on."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.made_up.tracking import connected, exit_of, in_a_process

pytestmark = pytest.mark.timeout(600)

MOMENTS = 3
"""The first table or index that is made, one in the middle and the last one."""


def test_a_database_whose_making_was_killed_is_made(tmp_path):
    whole = tmp_path / "whole"
    assert exit_of(in_a_process(dies_at, whole, 0)) == 0
    made = int((whole / "made").read_text())
    moments = np.linspace(1, made, MOMENTS).astype(int).tolist()
    killed = [in_a_process(dies_at, tmp_path / str(moment), moment) for moment in moments]
    assert [exit_of(each) for each in killed] == [-signal.SIGKILL] * MOMENTS
    for moment in moments:
        folder = tmp_path / str(moment)
        assert exit_of(in_a_process(connected, folder)) == 0, f"killed at {moment} of {made}"
        assert tables(folder) == tables(whole)


def test_drivers_make_one_database_at_once(tmp_path):
    drivers = [in_a_process(connected, tmp_path) for _ in range(2)]
    assert [exit_of(driver) for driver in drivers] == [0, 0]


def dies_at(folder: Path, moment: int) -> None:
    """Kills this process before the table or index of a number is made; at none, counts them."""
    numbers = itertools.count(1)

    def on_statement(statement: str) -> None:
        if statement.lstrip().startswith("CREATE") and next(numbers) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(database: str, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection = connect(database, *args, **kwargs)
        if Path(database).name in ("mlflow.db", "made.db"):
            connection.set_trace_callback(on_statement)
        return connection

    connect = sqlite3.connect
    sqlite3.connect = sqlite3.dbapi2.connect = traced  # type: ignore[assignment]
    connected(folder)
    (folder / "made").write_text(str(next(numbers) - 1))


def tables(folder: Path) -> set[tuple[str, str]]:
    """A database's tables and indexes; MLflow writes their checks in any order."""
    with contextlib.closing(sqlite3.connect(folder / "mlflow.db")) as database:
        return set(database.execute("SELECT type, name FROM sqlite_master"))
