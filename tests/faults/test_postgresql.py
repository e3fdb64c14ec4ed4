"""Several drivers, one PostgreSQL as MLflow's store: at once, restarted, refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from mlflow import MlflowClient
from sqlalchemy import Engine, event

from study.errors import RequestError
from study.results import Results
from tests.made_up import postgresql
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.postgresql import PASSWORD, PostgreSQL
from tests.made_up.tracking import (
    answer,
    assert_holds,
    assert_two_drivers_log,
    connected,
    exit_of,
    in_a_process,
    start,
    statuses,
)
from tests.made_up.waiting import until

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
    used = set()

    def note(connection):
        used.add(connection.engine)

    event.listen(Engine, "engine_connect", note)
    yield used
    event.remove(Engine, "engine_connect", note)


@pytest.fixture(autouse=True)
def connections_closed(engines) -> Iterator[None]:
    yield
    for engine in engines:
        engine.dispose()
    engines.clear()


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch) -> None:
    """There MLflow keeps the artifacts of an experiment that no server keeps."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def tracked(server) -> str:
    """The URL of a database in which MLflow has made its tables."""
    url = server.create("tracked")
    MlflowClient(url).search_experiments()
    return url


def test_drivers_make_the_tables_of_one_database_at_once(tmp_path, server):
    empty = server.create("empty")
    drivers = [in_a_process(connected, tmp_path / name, empty) for name in ("a", "b")]
    assert [exit_of(driver) for driver in drivers] == [0, 0]


def test_two_drivers_log_to_one_database(tmp_path, tracked):
    assert_two_drivers_log(tmp_path, tracked, "both")


def test_a_database_that_restarts_while_runs_are_logged(tmp_path, server, tracked):
    results = make_results(tmp_path / "results")
    cells = [write(results, make_cell(seed=seed), study="restart") for seed in range(24)]
    wanted = statuses(cells, results)
    tracker = start(results, tracked, "restart")
    tracker.log_cells({cell.id: wanted[cell.id] for cell in cells[:12]})
    until(lambda: not tracker.missing)
    server.stop()
    try:
        tracker.log_cells(wanted)
        until(lambda: tracker._error)
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
    results, server, monkeypatch
):
    wrong = refused(results, server.url("postgres", WRONG))
    assert 'password authentication failed for user "study"' in wrong
    assert "study:***@127.0.0.1" in wrong
    assert 'database "nowhere" does not exist' in refused(results, server.url("nowhere"))
    nobody = f"postgresql://study:{WRONG}@127.0.0.1:1/x"
    assert "Connection refused" in refused(results, nobody)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "uv sync --extra postgresql" in refused(results, server.url("postgres"))
