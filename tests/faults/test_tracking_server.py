"""A real `mlflow server` that is killed, and one that hangs.

Calls whose answer is lost, tests/study/tracking/test_tracker.py has.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator

import pytest
from mlflow import MlflowClient

from benchmarks.support.mlflow_server import MLflowServer, serving, tracking_server
from study import track
from study.cell import Cell
from study.results import Results
from study.run import main as run_study
from study.terminal.command import DONE, UNUSABLE
from tests.made_up.commands import called
from tests.made_up.comparisons import make_cell, write
from tests.made_up.tracking import (
    answer,
    assert_holds,
    assert_two_drivers_log,
    runs_of,
    start,
    statuses,
)
from tests.made_up.waiting import until

pytestmark = pytest.mark.timeout(600)

CELLS = 24
STUDY = [
    "digits", "--set", "n=100", "m=3", "epochs=2", "lr=0.1", "seed=0,1", "confirm=none",
    "paradigm=soft,lvml", "batch_size=10", "evaluations=2", "train_metrics_size=20",
    "validation_size=20", "test_size=20",
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory, empty_database) -> Iterator[MLflowServer]:
    """One that takes artifacts, as docs/running.md starts it, with a database of its own."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(empty_database, folder / "server.db")
    with serving(tracking_server(folder, f"sqlite:///{folder / 'server.db'}")) as made:
        yield made


@pytest.fixture
def cells(results) -> list[Cell]:
    return [write(results, make_cell(seed=seed), study="logged") for seed in range(CELLS)]


def test_two_drivers_log_to_one_server(tmp_path, server):
    assert_two_drivers_log(tmp_path, server.uri, "both")


@pytest.mark.usefixtures("without_ray", "no_pictures")
def test_a_server_that_is_killed_while_it_logs(
    server,
    results,
    cells,
    tmp_path,
    capsys,
):
    """Who was logging goes on; a study that ran meanwhile is logged by the command it names."""
    tracker = start(results, server.uri, "logged")
    tracker.log_cells(statuses(cells, results))
    until(lambda: tracker.missing <= CELLS - 4)
    server.kill()
    assert 0 < tracker.missing < CELLS

    meanwhile = Results(tmp_path / "meanwhile")
    words = [*STUDY, "--results", meanwhile.url, "--tracking", server.uri]
    status, _, said = called(run_study, capsys, *words)
    assert status == DONE, said
    assert f"warning: the MLflow server {server.uri} does not answer" in said
    (line,) = (line for line in said.splitlines() if "MLflow lacks 7 of 7 runs" in line)
    module, *words = line.partition("log them with: uv run python -m ")[2].split()
    assert module == "study.track"
    assert called(track.main, capsys, *words)[0] == UNUSABLE  # it is still down

    server.start()
    server.wait()
    assert tracker.finish(answer(), 120, 120) == 0
    client = MlflowClient(server.uri)
    assert_holds(results, cells, client=client, study="logged")
    status, printed, said = called(track.main, capsys, *words)
    assert (status, said) == (DONE, "")
    assert "digits: 4 cells: 0 were there, 4 logged\n" in printed
    found = runs_of(client)
    assert [len(found[role]) for role in ("cell", "summary", "study")] == [4, 2, 1]


def test_a_server_that_hangs_holds_nobody_up(results, cells, monkeypatch):
    """It takes requests and answers none: the start of a study asks once, and its end leaves."""
    seconds = "MLFLOW_HTTP_REQUEST_TIMEOUT"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv(seconds, "1")
        tracker = start(results, f"http://127.0.0.1:{silent.getsockname()[1]}", "logged")
        silent.accept()[0].close()
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):  # one request was enough
            silent.accept()
        silent.setblocking(True)
        monkeypatch.setenv(seconds, "3600")
        tracker.log_cells(statuses(cells[1:], results))
        request, _ = silent.accept()
        tracker.log_cells(statuses(cells, results))
        assert tracker.finish(answer(()), seconds=1) == CELLS + 1
        assert tracker._thread.is_alive()  # the request has not ended
        request.close()
    tracker._thread.join()
