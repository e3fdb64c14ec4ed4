"""A real `mlflow server` that is killed, slow or away, and a database that is deleted."""

from __future__ import annotations

import contextlib
import itertools
import random
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from benchmarks.support.mlflow_server import MLflowServer, serving, tracking_server
from benchmarks.support.processes import free_port
from study.cell import Cell
from study.results import Results
from study.run import main as run_study
from study.terminal.command import DONE, UNUSABLE
from study.tracking.tracker import STOP_SECONDS
from tests.conftest import PROJECT
from tests.made_up.comparisons import make_cell, write
from tests.made_up.tracking import answer, assert_holds, runs_of, shown, start, statuses

pytestmark = pytest.mark.timeout(600)

CELLS = 24


class Proxy:
    """Stands before a server, and delays or cuts what passes.

    Args:
        port: of the server.
        fate: for what passes, in the direction "request" or "response": seconds to hold it back,
            or None to drop it and both connections.
        at: the port where it listens; 0: any.
    """

    def __init__(self, port: int, fate: Callable[[str], float | None], at: int = 0) -> None:
        self._port = port
        self._fate = fate
        self._listener = socket.create_server(("127.0.0.1", at))
        self.uri = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            client,
            socket.create_connection(("127.0.0.1", self._port)) as server,
        ):
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for source in ready:
                    target, way = (server, "request") if source is client else (client, "response")
                    data = source.recv(1 << 16)
                    held = self._fate(way) if data else None
                    if held is None:
                        return
                    time.sleep(held)  # what the client gave up meanwhile passes all the same
                    target.sendall(data)


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, empty_database: Path
) -> Iterator[MLflowServer]:
    """One that takes artifacts, started, with a database of its own."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(empty_database, folder / "server.db")
    with serving(tracking_server(folder, f"sqlite:///{folder / 'server.db'}")) as made:
        yield made


class Door:
    """An address of a server that is down until it is opened: nobody listens there."""

    def __init__(self, server: MLflowServer) -> None:
        self._server = server
        self._port = free_port()
        self._proxy: Proxy | None = None
        self.uri = f"http://127.0.0.1:{self._port}"

    def open(self) -> None:
        self._proxy = Proxy(self._server.port, lambda _: 0, self._port)

    def close(self) -> None:
        if self._proxy:
            self._proxy.close()


@pytest.fixture
def door(server: MLflowServer) -> Iterator[Door]:
    made = Door(server)
    yield made
    made.close()


@pytest.fixture
def study(request: pytest.FixtureRequest) -> str:
    """An experiment for each test."""
    return str(request.node.name)


@pytest.fixture
def cells(results: Results, study: str) -> list[Cell]:
    return [
        write(results, make_cell(paradigm, seed=seed), study=study)
        for seed in range(CELLS // 2)
        for paradigm in ("soft", "hybrid")
    ]


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    """A module of the project as a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=PROJECT, capture_output=True, text=True, check=False
    )


def test_a_server_that_is_killed_while_it_logs(
    server: MLflowServer, results: Results, cells: list[Cell], study: str
) -> None:
    server.start()
    wanted = statuses(cells, results)
    tracker = start(results, server.uri, study)
    tracker.log_cells(wanted)
    deadline = time.monotonic() + 60
    while tracker.missing > CELLS - 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    server.kill()
    time.sleep(3)  # the tracker finds out
    assert 0 < tracker.missing < CELLS
    server.start()
    assert tracker.finish(answer(), 120, 120) == 0
    assert_holds(results, cells, client=MlflowClient(server.uri), study=study)


@pytest.mark.parametrize("retries", ["0", "3"])  # by MLflow itself, which repeats what was done
def test_a_server_whose_answers_are_lost(
    server: MLflowServer,
    results: Results,
    cells: list[Cell],
    study: str,
    monkeypatch: pytest.MonkeyPatch,
    retries: str,
) -> None:
    """One chunk in thirty is lost, in either direction: requests, and answers to what was done."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", retries)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    monkeypatch.setattr("study.tracking.tracker.EVERY", 0.1)
    monkeypatch.setattr("study.tracking.tracker.LONGEST_PAUSE", 0.1)  # after each loss
    server.start()
    draw = random.Random(1)
    lost = []

    def fate(way: str) -> float | None:
        if draw.random() < 1 / 30:
            lost.append(way)
            return None
        return 0

    proxy = Proxy(server.port, fate)
    cells = cells[: CELLS // 2]
    tracker = start(results, proxy.uri, study)
    tracker.log_cells(statuses(cells, results))
    assert tracker.finish(answer(), 300, 60) == 0
    proxy.close()
    assert {"request", "response"} == set(lost)
    assert_holds(results, cells, client=MlflowClient(server.uri), study=study)


def test_a_slow_server(
    server: MLflowServer,
    results: Results,
    cells: list[Cell],
    study: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Requests take longer than the client waits, now and then, and act after it gave up."""
    server.start()
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    passed = {"request": 0, "response": 0}

    def fate(way: str) -> float:
        passed[way] += 1
        return 4 if passed[way] % 60 == (12 if way == "request" else 42) else 0.05

    proxy = Proxy(server.port, fate)
    tracker = start(results, proxy.uri, study)
    tracker.log_cells(statuses(cells, results))
    started = time.monotonic()
    tracker.finish(answer(), 15)
    # The seconds it was given, and a moment for the thread to end.
    assert 14 < time.monotonic() - started < 15 + STOP_SECONDS + 1
    assert f"study.track {results.url} --tracking {proxy.uri}" in capsys.readouterr().err
    assert passed["request"] > 12
    tracker._thread.join(30)
    time.sleep(5)  # the last request arrives
    proxy.close()
    again = start(results, server.uri, study)
    again.log_cells(statuses(cells, results))
    assert again.finish(answer(), 120) == 0
    assert_holds(results, cells, client=MlflowClient(server.uri), study=study)


def test_a_server_that_hangs_holds_nobody_up(
    results: Results, cells: list[Cell], study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "3")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        tracker = start(results, uri, study)
        assert time.monotonic() - started < 6
        started = time.monotonic()
        tracker.log_cells(statuses(cells, results))
        assert time.monotonic() - started < 1
        started = time.monotonic()
        assert tracker.finish(answer(())) == CELLS + 1
        assert time.monotonic() - started < 20


def held(results: Results, study: str) -> dict[str, Any]:
    """What MLflow's own database holds, without what differs between runs of one cell."""
    client = MlflowClient(f"sqlite:///{results.url}/mlflow.db")
    found = {}
    for run in itertools.chain(*runs_of(client, study).values()):
        tags = shown(run.data.tags)
        folder = Path(run.info.artifact_uri.removeprefix("file://"))
        is_cell = "cell_id" in tags
        found[tags["key"]] = {
            "name": run.info.run_name,
            "status": run.info.status,
            "params": run.data.params,
            "tags": tags,
            "histories": {
                name: sorted(
                    (entry.step, entry.value, entry.timestamp * is_cell)
                    for entry in client.get_metric_history(run.info.run_id, name)
                )
                for name in run.data.metrics
            },
            "artifacts": {
                str(file.relative_to(folder)): file.read_bytes()
                for file in folder.rglob("*")
                if file.is_file() and (is_cell or file.suffix != ".png")  # which are left out here
            },
        }
    return found


@pytest.mark.usefixtures("without_ray", "no_pictures")
def test_a_study_whose_server_is_down_and_one_whose_database_is_deleted(
    door: Door, server: MLflowServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `study.track` makes, called as it was told, is what the study had made."""
    command = [
        "digits", "--set", "n=100", "m=3", "epochs=2", "lr=0.1", "seed=0,1", "confirm=none",
        "paradigm=soft,lvml", "batch_size=10", "evaluations=2", "train_metrics_size=20",
        "validation_size=20", "test_size=20",
    ]  # fmt: skip
    results = Results(tmp_path / "results")
    status = run_study([*command, "--results", results.url, "--tracking", door.uri])
    said = capsys.readouterr().err
    assert status == DONE, said
    assert f"warning: the MLflow server {door.uri} does not answer" in said
    assert "MLflow lacks 7 of 7 runs" in said
    (line,) = (line for line in said.splitlines() if "MLflow lacks" in line)
    words = line.partition("log them with: uv run ")[2].split()
    assert words[:3] == ["python", "-m", "study.track"]
    assert typed(*words[2:]).returncode == UNUSABLE  # it is still down
    door.open()
    done = typed(*words[2:])
    assert (done.returncode, done.stderr) == (DONE, "")
    assert "digits: 4 cells: 0 were there, 4 logged\n" in done.stdout
    found = runs_of(MlflowClient(server.uri))
    assert {run.data.params["paradigm"] for run in found["summary"]} == {"soft", "lvml"}
    assert len(found["cell"]) == 4

    assert run_study([*command, "--results", results.url]) == DONE
    first = held(results, "digits")
    assert len(first) == 4 + 2 + 1
    copy = Results(shutil.copytree(results.url, tmp_path / "copy", ignore=_mlflow))
    assert typed("study.track", copy.url).returncode == DONE
    assert held(copy, "digits") == first


_mlflow = shutil.ignore_patterns("mlflow*")
