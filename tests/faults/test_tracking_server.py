"""A real `mlflow server` that is killed, hangs or is away, and a database that is deleted.

Calls whose answer is lost, tests/study/tracking/test_tracker.py has.
"""

from __future__ import annotations

import itertools
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from benchmarks.support.mlflow_server import MLflowServer, serving, tracking_server
from study.cell import Cell
from study.results import Results
from study.run import main as run_study
from study.terminal.command import DONE, UNUSABLE
from tests.conftest import PROJECT
from tests.made_up.comparisons import make_cell, write
from tests.made_up.tracking import answer, assert_holds, files, runs_of, shown, start, statuses

pytestmark = pytest.mark.timeout(600)

CELLS = 24


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, empty_database: Path
) -> Iterator[MLflowServer]:
    """One that takes artifacts, started, with a database of its own."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(empty_database, folder / "server.db")
    with serving(tracking_server(folder, f"sqlite:///{folder / 'server.db'}")) as made:
        yield made


@pytest.fixture
def cells(results: Results) -> list[Cell]:
    return [write(results, make_cell(seed=seed), study="logged") for seed in range(CELLS)]


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    """A module of the project as a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=PROJECT, capture_output=True, text=True, check=False
    )


def test_a_server_that_is_killed_while_it_logs(
    server: MLflowServer, results: Results, cells: list[Cell]
) -> None:
    wanted = statuses(cells, results)
    tracker = start(results, server.uri, "logged")
    tracker.log_cells(wanted)
    deadline = time.monotonic() + 60
    while tracker.missing > CELLS - 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    server.kill()
    time.sleep(3)  # the tracker finds out
    assert 0 < tracker.missing < CELLS
    server.start()
    assert tracker.finish(answer(), 120, 120) == 0
    assert_holds(results, cells, client=MlflowClient(server.uri), study="logged")


def test_a_server_that_hangs_holds_nobody_up(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "3")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        tracker = start(results, uri, "logged")
        assert time.monotonic() - started < 6
        started = time.monotonic()
        tracker.log_cells(statuses(cells, results))
        assert time.monotonic() - started < 1
        started = time.monotonic()
        assert tracker.finish(answer(())) == CELLS + 1
        assert time.monotonic() - started < 20


def held(results: Results) -> dict[str, Any]:
    """What MLflow's own database holds, without what differs between stores."""
    client = MlflowClient(f"sqlite:///{results.url}/mlflow.db")
    runs = itertools.chain(*runs_of(client).values())
    return {
        run.data.tags["key"]: (
            run.info.run_name,
            run.info.status,
            run.data.params,
            run.data.metrics,
            shown(run.data.tags),
            {name for name in files(client, run) if not name.endswith(".png")},  # not drawn here
        )
        for run in runs
    }


@pytest.mark.usefixtures("without_ray", "no_pictures")
def test_a_study_whose_server_is_down_and_one_whose_database_is_deleted(
    server: MLflowServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `study.track` makes, called as it was told, is what the study had made."""
    command = [
        "digits", "--set", "n=100", "m=3", "epochs=2", "lr=0.1", "seed=0,1", "confirm=none",
        "paradigm=soft,lvml", "batch_size=10", "evaluations=2", "train_metrics_size=20",
        "validation_size=20", "test_size=20",
    ]  # fmt: skip
    results = Results(tmp_path / "results")
    server.kill()
    status = run_study([*command, "--results", results.url, "--tracking", server.uri])
    said = capsys.readouterr().err
    assert status == DONE, said
    assert f"warning: the MLflow server {server.uri} does not answer" in said
    (line,) = (line for line in said.splitlines() if "MLflow lacks 7 of 7 runs" in line)
    words = line.partition("log them with: uv run python -m ")[2].split()
    assert typed(*words).returncode == UNUSABLE  # it is still down
    server.start()
    done = typed(*words)
    assert (done.returncode, done.stderr) == (DONE, "")
    assert "digits: 4 cells: 0 were there, 4 logged\n" in done.stdout
    found = runs_of(MlflowClient(server.uri))
    assert [len(found[role]) for role in ("cell", "summary", "study")] == [4, 2, 1]

    assert run_study([*command, "--results", results.url]) == DONE
    copy = Results(tmp_path / "copy")
    shutil.copytree(results.url, copy.url, ignore=shutil.ignore_patterns("mlflow*"))
    assert typed("study.track", copy.url).returncode == DONE
    assert held(copy) == held(results)
    assert len(held(copy)) == 4 + 2 + 1
