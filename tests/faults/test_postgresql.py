"""Several drivers, one PostgreSQL as MLflow's store: at once, restarted, refused."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient
from sqlalchemy import Connection, Engine, event

from benchmarks.support.mlflow_server import serving, tracking_server
from study.cell import Cell
from study.errors import RequestError
from study.results import Results
from study.tracking.store import Store
from study.tracking.tracker import Tracker
from tests.conftest import PROJECT
from tests.made_up import postgresql
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.postgresql import PASSWORD, PostgreSQL
from tests.made_up.tracking import answer, assert_holds, start, statuses, summary

pytestmark = pytest.mark.timeout(300)

WRONG = "another-secret"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    programs = postgresql.programs()
    if programs is None:
        pytest.skip("needs PostgreSQL, which .ci/run installs")
    with postgresql.running(programs) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def engines() -> Iterator[set[Engine]]:
    """Those that were used; MLflow would leave their connections to the garbage collector."""
    used: set[Engine] = set()

    def note(connection: Connection) -> None:
        used.add(connection.engine)

    event.listen(Engine, "engine_connect", note)
    yield used
    event.remove(Engine, "engine_connect", note)


@pytest.fixture(autouse=True)
def connections_closed(engines: set[Engine]) -> Iterator[None]:
    yield
    for engine in engines:
        engine.dispose()
    engines.clear()


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There MLflow keeps the artifacts of an experiment that no server keeps."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def tracked(server: PostgreSQL) -> str:
    """The URL of a database in which MLflow has made its tables."""
    url = server.create("tracked")
    MlflowClient(url).search_experiments()
    return url


def two_drivers_log(folder: Path, uri: str, study: str) -> None:
    """Of 12 cells each, 4 of them the same; both begin and end at about the same time."""
    cells: list[Cell] = []
    summaries = [summary("soft", number / 10, comparison=str(number)) for number in (1, 2)]
    trackers: list[Tracker] = []
    for number in range(2):
        results = make_results(folder / str(number))
        seeds = range(8 * number, 8 * number + 12)
        own = [write(results, make_cell(seed=seed), study=study) for seed in seeds]
        cells += own
        trackers.append(start(results, uri, study))
        trackers[-1].log_cells(statuses(own, results))
    ends = [
        threading.Thread(target=tracker.finish, args=(answer([mine]), 120))
        for tracker, mine in zip(trackers, summaries, strict=True)
    ]
    for end in ends:
        end.start()
    for end in ends:
        end.join()
    assert [tracker.missing for tracker in trackers] == [0, 0]
    every = make_results(folder / "every")
    unique = {cell.id: cell for cell in cells}
    for cell in unique.values():
        write(every, cell, study=study)
    store = Store(every, study, uri)
    store.sync(statuses([*unique.values()], every))  # what both logged at once is left once
    client = MlflowClient(uri)
    assert_holds(every, [*unique.values()], answer(summaries), client, study)


def test_drivers_make_the_tables_of_one_database_at_once(
    tmp_path: Path, server: PostgreSQL
) -> None:
    program = (
        "import sys; from study.results import Results; from study.tracking.store import Store;"
        "Store(Results(sys.argv[1]), 'digits', sys.argv[2]).connect()"
    )
    empty = server.create("empty")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, make_results(tmp_path / name).url, empty],
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
        )
        for name in ("a", "b", "c")
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]


def test_two_drivers_log_to_one_database(tmp_path: Path, tracked: str) -> None:
    two_drivers_log(tmp_path, tracked, "both")


def test_two_drivers_log_to_one_server(tmp_path: Path, tracked: str) -> None:
    """As docs/running.md starts it."""
    with serving(tracking_server(tmp_path, tracked)) as made:
        two_drivers_log(tmp_path, made.uri, "through-a-server")


def test_a_database_that_restarts_while_runs_are_logged(
    tmp_path: Path, server: PostgreSQL, tracked: str
) -> None:
    results = make_results(tmp_path / "results")
    cells = [write(results, make_cell(seed=seed), study="restart") for seed in range(24)]
    wanted = statuses(cells, results)
    tracker = start(results, tracked, "restart")
    tracker.log_cells({cell.id: wanted[cell.id] for cell in cells[:12]})
    deadline = time.monotonic() + 60
    while tracker.missing and time.monotonic() < deadline:
        time.sleep(0.1)
    server.stop()
    try:
        tracker.log_cells(wanted)
        time.sleep(1)  # the tracker finds out
        assert tracker.missing == 12
    finally:
        server.start()
    assert tracker.finish(answer(), 120) == 0
    assert_holds(results, cells, client=MlflowClient(tracked), study="restart")


def refused(results: Results, uri: str) -> str:
    """What a command says that may not use a database."""
    with pytest.raises(RequestError) as error:
        start(results, uri)
    said = str(error.value)
    assert "\n" not in said
    assert PASSWORD not in said
    assert WRONG not in said
    assert "--tracking" in said
    return said


def test_a_database_that_cannot_be_used_is_named_without_its_password(
    results: Results, server: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = time.monotonic()
    wrong = refused(results, server.url("postgres", WRONG))
    assert 'password authentication failed for user "study"' in wrong
    assert "study:***@127.0.0.1" in wrong
    assert 'database "nowhere" does not exist' in refused(results, server.url("nowhere"))
    nobody = f"postgresql://study:{WRONG}@127.0.0.1:1/x"
    assert "Connection refused" in refused(results, nobody)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "uv sync --extra postgresql" in refused(results, server.url("postgres"))
    assert time.monotonic() - started < 10
