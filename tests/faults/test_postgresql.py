"""Several drivers, one PostgreSQL: MLflow's store and Optuna's, at once, restarted, refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import optuna
import pytest
from mlflow import MlflowClient
from sqlalchemy import Connection, Engine, event

from benchmarks.support.mlflow_server import serving, tracking_server
from study.cell import Cell
from study.errors import RequestError
from study.results import Results
from study.search.search import Search
from study.terminal.command import DONE
from study.tracking.tracker import MLflowTracker, open_tracker
from tests.conftest import PROJECT, run_without_ray
from tests.made_up import postgresql
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.postgresql import PASSWORD, PostgreSQL
from tests.made_up.tracking import SUMMARY, ids, runs_of
from tests.study.search.test_search import run, search_in, train

pytestmark = [
    pytest.mark.timeout(300),
    # What two threads hide at once, one of them shows.
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
    pytest.mark.filterwarnings("ignore:Heartbeat of storage"),
]

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


@pytest.fixture
def database(server: PostgreSQL, request: pytest.FixtureRequest) -> str:
    """The URL of an empty database."""
    return server.create(request.node.name)


@pytest.fixture(scope="module")
def tracked(server: PostgreSQL) -> str:
    """The URL of a database in which MLflow has made its tables."""
    url = server.create("tracked")
    MlflowClient(url).search_experiments()
    return url


def assert_once(client: MlflowClient, study: str, cells: set[str]) -> None:
    """One finished run a cell, below one finished run of the study, and nothing unfinished."""
    children, parent = runs_of(client, study)
    assert sorted(run.data.tags["cell_id"] for run in children) == sorted(cells)
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    found = client.search_runs([parent.info.experiment_id])
    assert {run.info.status for run in found} == {"FINISHED"}


# --- MLflow


def two_drivers_log(folder: Path, uri: str, study: str) -> None:
    """Of 12 cells each, 4 of them the same; both begin and end at about the same time."""
    cells: list[list[Cell]] = []
    trackers: list[MLflowTracker] = []
    for number in range(2):
        results = make_results(folder / str(number))
        seeds = range(8 * number, 8 * number + 12)
        cells.append([write(results, make_cell(seed=seed), study=study) for seed in seeds])
        tracker = open_tracker(results, study, uri)
        assert isinstance(tracker, MLflowTracker)
        trackers.append(tracker)
    for tracker, own in zip(trackers, cells, strict=True):
        tracker.log_cells(ids(own))
    ends = [
        threading.Thread(target=tracker.finish, args=(SUMMARY, []), kwargs={"seconds": 120})
        for tracker in trackers
    ]
    for end in ends:
        end.start()
    for end in ends:
        end.join()
    assert [tracker.missing for tracker in trackers] == [0, 0]
    assert_once(MlflowClient(uri), study, {cell.id for own in cells for cell in own})


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
    tracker = open_tracker(results, "restart", tracked)
    assert isinstance(tracker, MLflowTracker)
    tracker.log_cells(ids(cells)[:12])
    tracker.wait(60, 10)
    server.stop()
    try:
        tracker.log_cells(ids(cells)[12:])
        time.sleep(1)  # the tracker finds out
        assert tracker.missing == 12
    finally:
        server.start()
    tracker.finish(SUMMARY, [], seconds=120)
    assert tracker.missing == 0
    assert_once(MlflowClient(tracked), "restart", set(ids(cells)))


def refused(results: Results, url: str, *, by: str) -> str:
    """What a command says that may not use a database."""
    ways: dict[str, tuple[str, Callable[[], object]]] = {
        "MLflow": ("--tracking", lambda: open_tracker(results, "digits", url)),
        "Optuna": ("--search-storage", lambda: search_in(results, 1, storage=url)),
    }
    option, use = ways[by]
    with pytest.raises(RequestError) as error:
        use()
    said = str(error.value)
    assert "\n" not in said
    assert PASSWORD not in said
    assert WRONG not in said
    assert option in said
    return said


@pytest.mark.parametrize("by", ["MLflow", "Optuna"])
def test_a_database_that_cannot_be_used_is_named_without_its_password(
    results: Results, server: PostgreSQL, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    started = time.monotonic()
    wrong = refused(results, server.url("postgres", WRONG), by=by)
    assert 'password authentication failed for user "study"' in wrong
    assert "study:***@127.0.0.1" in wrong
    assert 'database "nowhere" does not exist' in refused(results, server.url("nowhere"), by=by)
    nobody = f"postgresql://study:{WRONG}@127.0.0.1:1/x"
    assert "Connection refused" in refused(results, nobody, by=by)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "uv sync --extra postgresql" in refused(results, server.url("postgres"), by=by)
    assert time.monotonic() - started < 10


# --- Optuna


def suggestions(url: str) -> list[optuna.trial.FrozenTrial]:
    storage = optuna.storages.RDBStorage(url)
    (study,) = storage.get_all_studies()
    return list(optuna.load_study(study_name=study.study_name, storage=storage).trials)


def drivers(tmp_path: Path, url: str, count: int) -> tuple[list[Search], list[Results]]:
    results = [make_results(tmp_path / name) for name in ("a", "b")]
    return [search_in(each, count, storage=url) for each in results], results


def test_drivers_take_turns_and_count_together(tmp_path: Path, database: str) -> None:
    """Both ask at the same time, of a new database."""
    found: dict[str, list[list[Cell]]] = {}

    def drive(name: str) -> None:
        results = make_results(tmp_path / name)
        search = search_in(results, 9, storage=database)
        found[name] = run(search, results, parallel=1)
        search.close()

    both = [threading.Thread(target=drive, args=(name,)) for name in ("a", "b")]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    cells = [cell.id for given in found.values() for each in given for cell in each]
    assert len(cells) == len(set(cells)) == 18
    assert [trial.state.name for trial in suggestions(database)] == ["COMPLETE"] * 9
    own = {cell.id for each in found["a"] for cell in each}
    search = search_in(Results(tmp_path / "a"), 9, storage=database)
    search.close()
    assert search.exhausted
    assert {cell.id for cell in search.cells} == own
    here = len(found["a"])
    said = search.summary()
    assert said.startswith(f"the whole search, {here} suggestions of it by this driver:\n9 sugg")
    assert PASSWORD not in said


def test_what_a_dead_driver_left_is_taken_over_and_told_once(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.search.storage.BEAT_SECONDS", 1)
    monkeypatch.setattr("study.search.storage.GRACE_SECONDS", 2)
    (dead, alive), (results, others) = drivers(tmp_path, database, 3)
    left, kept = dead.more(), alive.more()
    assert left != kept
    time.sleep(3)
    assert "2 unfinished" in alive.summary()  # both are at work
    dead.close()  # as a kill would end its heartbeats
    time.sleep(3.5)
    assert alive.more() == left
    last = alive.more()
    assert alive.exhausted
    for cell in (*kept, *left):
        alive.ended(cell.id, train(others, cell))
    for cell in left:  # it was only asleep
        dead.ended(cell.id, train(results, cell))
    assert dead.more() == []
    assert dead.exhausted
    states = [trial.state.name for trial in suggestions(database)]
    assert sorted(states) == ["COMPLETE", "COMPLETE", "FAIL", "RUNNING"]
    alive.close()
    again = search_in(others, 3, storage=database)  # the same directory: no need to wait
    assert again.more() == last
    again.close()


def test_a_search_waits_for_a_database_that_restarts(
    tmp_path: Path, server: PostgreSQL, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results = make_results(tmp_path / "a")
    search = search_in(results, 2, storage=database)
    cells = search.more()
    server.stop()
    threading.Timer(1, server.start).start()
    for cell in cells:
        search.ended(cell.id, train(results, cell))
    said = capsys.readouterr().err
    assert said.count("does not answer") == 1
    assert PASSWORD not in said
    run(search, results)
    search.close()
    assert [trial.state.name for trial in suggestions(database)] == ["COMPLETE"] * 2


def test_nobody_is_taken_for_dead_because_the_database_was_away(
    tmp_path: Path, server: PostgreSQL, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks first when it is back finds that all others have long been silent."""
    monkeypatch.setattr("study.search.storage.BEAT_SECONDS", 1)
    monkeypatch.setattr("study.search.storage.GRACE_SECONDS", 2)
    monkeypatch.setattr("study.search.storage.PAUSE_SECONDS", 0.01)
    searches, _ = drivers(tmp_path, database, 4)
    given = [search.more() for search in searches]
    server.stop()
    threading.Timer(3, server.start).start()
    given.append(searches[1].more())
    assert len({cell.id for cells in given for cell in cells}) == sum(map(len, given))
    for search in searches:
        search.close()
    assert [trial.state.name for trial in suggestions(database)] == ["RUNNING"] * 3


def test_a_search_takes_a_database_of_its_own(results: Results, tracked: str) -> None:
    assert "tables of MLflow" in refused(results, tracked, by="Optuna")


# --- the command


DRIVER = """
import sys
from tests.conftest import run_without_ray
run_without_ray(sys.argv[1:])
"""
TINY = [
    "n=100", "m=3", "epochs=2", "seed=0,1", "paradigm=soft", "lr=0.01,0.3", "batch_size=10",
    "evaluations=2", "train_metrics_size=20", "validation_size=20", "test_size=20",
]  # fmt: skip


def test_two_commands_share_a_search_and_what_they_found_is_confirmed(
    tmp_path: Path, server: PostgreSQL, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both make all tables at once. Then, as docs/running.md says, their results are one."""
    asked = ["digits", "--search", "optuna", "--num-samples", "6", "--set", *TINY]
    tracked = server.create("of-mlflow")
    shared = ["confirm=none", "--tracking", tracked, "--search-storage", database]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", DRIVER, *asked, *shared, "--results", str(tmp_path / name)],
            env={**os.environ, "PYTHONPATH": str(PROJECT)}, cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for name in ("a", "b")
    ]  # fmt: skip
    for process, said in [(each, each.communicate()[0]) for each in processes]:
        assert process.returncode == DONE, said
        assert "the whole search, " in said
        assert PASSWORD not in said
    assert "6 suggestions: 6 done" in said or "unfinished" in said
    a, b = Results(tmp_path / "a"), Results(tmp_path / "b")
    assert not a.finished() & b.finished()
    cells = a.finished() | b.finished()
    assert len(cells) == 12
    assert [trial.state.name for trial in suggestions(database)] == ["COMPLETE"] * 6
    assert_once(MlflowClient(tracked), "digits", cells)

    for folder in ("cells", "evaluations", "search"):
        shutil.copytree(tmp_path / "b" / folder, tmp_path / "a" / folder, dirs_exist_ok=True)
    words = [*asked, "confirm=100,101", "--results", a.url, "--tracking", "none"]
    run_without_ray(words)
    assert "6 suggestions: 6 done" in capsys.readouterr().out
    assert len(a.finished() - cells) == 2
