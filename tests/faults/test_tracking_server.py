"""A real `mlflow server` that is killed, slow or away, and a database that is deleted."""

from __future__ import annotations

import contextlib
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
from typing import Any, NamedTuple

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from analysis.comparison.compare import compare
from analysis.comparison.report.chapter import Compared
from analysis.comparison.report.summaries import summary_metrics
from analysis.reading import load
from analysis.section.summary import GroupSummary
from benchmarks.support.mlflow_server import MLflowServer, serving, tracking_server
from benchmarks.support.ports import free_port
from study import track
from study.cell import Cell
from study.results import Results
from study.run import main as run_study
from study.terminal.command import DONE, UNUSABLE
from study.tracking.tracker import STOP_SECONDS, MLflowTracker, open_tracker
from tests.conftest import PROJECT
from tests.made_up.comparisons import make_cell, write
from tests.made_up.tracking import (
    SUMMARY,
    assert_exactly_once,
    ids,
    runs_of,
)

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


def start(results: Results, study: str, uri: str) -> MLflowTracker:
    tracker = open_tracker(results, study, uri)
    assert isinstance(tracker, MLflowTracker)
    return tracker


def log_at_once(tracker: MLflowTracker, cells: list[Cell]) -> None:
    started = time.monotonic()
    tracker.log_cells(ids(cells))
    assert time.monotonic() - started < 0.1


class Told(NamedTuple):
    """What a command returned and printed."""

    status: int
    out: str
    err: str


@pytest.fixture
def study_track(capsys: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    """The command, called in this process."""

    def called(results: Results, *args: str) -> Told:
        capsys.readouterr()
        status = track.main([results.url, *args])
        return Told(status, *capsys.readouterr())

    return called


def run_ids(client: MlflowClient, study: str) -> set[str]:
    experiment = client.get_experiment_by_name(study)
    return {run.info.run_id for run in client.search_runs([experiment.experiment_id])}


def groups_of(client: MlflowClient, study: str) -> list[Run]:
    experiment = client.get_experiment_by_name(study)
    return list(client.search_runs([experiment.experiment_id], "tags.role = 'summary'"))


def rebuilt_summary(results: Results) -> dict[str, float]:
    return summary_metrics(c.summary for c in compare(load(results)))


def rebuilt_groups(results: Results) -> list[GroupSummary]:
    return [group for c in compare(load(results)) for group in Compared(c).summaries()]


def test_a_server_that_is_down_for_the_whole_study(
    door: Door,
    results: Results,
    cells: list[Cell],
    study: str,
    capsys: pytest.CaptureFixture[str],
    study_track: Callable[..., Told],
) -> None:
    started = time.monotonic()
    tracker = start(results, study, door.uri)
    for cell in cells:
        log_at_once(tracker, [cell])
    assert time.monotonic() - started < 10
    started = time.monotonic()
    tracker.finish(SUMMARY, [])
    assert time.monotonic() - started < 20
    errors = capsys.readouterr().err
    assert errors.count("\n") == 3
    assert f"MLflow takes the last {CELLS + 1} runs" in errors
    assert f"MLflow lacks {CELLS + 1} of {CELLS + 1} runs" in errors
    assert f"study.track {results.url} --tracking {door.uri}\n" in errors

    down = study_track(results, "--tracking", door.uri)
    assert (down.status, down.out) == (UNUSABLE, "")
    assert down.err.count("\n") == 1
    assert "does not answer" in down.err

    door.open()
    done = study_track(results, "--tracking", door.uri)
    assert (done.status, done.err) == (DONE, "")
    assert f"{study}: {CELLS} cells: 0 were there, {CELLS} logged\n" in done.out
    assert f"runs:   {door.uri}\n" in done.out
    client = MlflowClient(door.uri)
    assert_exactly_once(results, cells, client, study, rebuilt_summary(results))
    before = run_ids(client, study)
    assert len(before) == CELLS + 2 + 1
    made = {run.data.params["paradigm"]: run.data.metrics for run in groups_of(client, study)}
    for paradigm, metrics in made.items():
        for name in ("saif", "accuracy"):
            (value,) = (
                value
                for key, value in rebuilt_summary(results).items()
                if key.endswith(f"/{paradigm}/{name}")
            )
            assert metrics[name] == pytest.approx(value)
    assert set(made) == {"soft", "hybrid"}
    again = study_track(results, "--tracking", door.uri)
    assert (again.status, again.err) == (DONE, "")
    assert f"{study}: {CELLS} cells: {CELLS} were there, 0 logged\n" in again.out
    assert run_ids(client, study) == before


def test_a_server_that_is_killed_while_it_logs(
    server: MLflowServer, results: Results, cells: list[Cell], study: str
) -> None:
    server.start()
    tracker = start(results, study, server.uri)
    log_at_once(tracker, cells[: CELLS // 2])
    deadline = time.monotonic() + 60
    while tracker.missing > CELLS // 2 - 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    server.kill()
    assert 0 < tracker.missing < CELLS // 2
    log_at_once(tracker, cells[CELLS // 2 :])
    time.sleep(3)  # the tracker finds out
    assert tracker.missing > CELLS // 2
    server.start()
    tracker.wait(120, 120)
    assert tracker.missing == 0
    tracker.finish(SUMMARY, [])
    assert_exactly_once(results, cells, MlflowClient(server.uri), study)


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
    monkeypatch.setattr("study.tracking.tracker.FIRST_PAUSE", 0.1)  # after each loss
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
    tracker = start(results, study, proxy.uri)
    log_at_once(tracker, cells)
    tracker.wait(300, 60)
    tracker.finish(SUMMARY, [], seconds=120)
    proxy.close()
    assert tracker.missing == 0
    assert {"request", "response"} == set(lost)
    assert_exactly_once(results, cells, MlflowClient(server.uri), study)


def test_a_slow_server(
    server: MLflowServer,
    results: Results,
    cells: list[Cell],
    study: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    study_track: Callable[..., Told],
) -> None:
    """Requests take longer than the client waits, now and then, and act after it gave up."""
    server.start()
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    passed = {"request": 0, "response": 0}

    def fate(way: str) -> float:
        passed[way] += 1
        return 4 if passed[way] % 30 == (12 if way == "request" else 27) else 0.05

    proxy = Proxy(server.port, fate)
    tracker = start(results, study, proxy.uri)
    log_at_once(tracker, cells)
    started = time.monotonic()
    tracker.finish(SUMMARY, [], seconds=15)
    # The seconds it was given, and a moment for the thread to end.
    assert 14 < time.monotonic() - started < 15 + STOP_SECONDS + 1
    errors = capsys.readouterr().err
    assert f"of {CELLS + 1} runs" in errors
    assert f"study.track {results.url} --tracking {proxy.uri}" in errors
    assert passed["request"] > 12
    tracker._thread.join(30)
    time.sleep(5)  # the last request arrives
    proxy.close()
    done = study_track(results, "--tracking", server.uri)
    assert (done.status, done.err) == (DONE, "")
    summary = rebuilt_summary(results)
    assert_exactly_once(results, cells, MlflowClient(server.uri), study, summary)


def test_a_server_that_hangs_holds_nobody_up(
    server: MLflowServer,
    results: Results,
    cells: list[Cell],
    study: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "3")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        tracker = start(results, study, uri)
        assert time.monotonic() - started < 6
        log_at_once(tracker, cells)
        started = time.monotonic()
        tracker.finish(SUMMARY, [])
        assert time.monotonic() - started < 20
        assert tracker.missing == CELLS + 1


def held(results: Results, study: str, alias: str) -> dict[str, Any]:
    """What MLflow's own database holds, without what differs between runs of one cell.

    MLflow keeps an open database by its name, so a deleted one needs another name: an `alias`.
    """
    client = MlflowClient(f"sqlite:///{results.url}{alias}/mlflow.db")
    children, parent = runs_of(client, study)
    groups = groups_of(client, study)
    found = {}
    for run in [*children, *groups, parent]:
        tags = {k: v for k, v in run.data.tags.items() if k != "mlflow.parentRunId"}
        folder = Path(run.info.artifact_uri.removeprefix("file://"))
        histories = {
            name: sorted(
                (entry.step, entry.value, entry.timestamp if "cell_id" in tags else 0)
                for entry in client.get_metric_history(run.info.run_id, name)
            )
            for name in run.data.metrics
        }
        found[tags.get("cell_id") or tags.get("group", "parent")] = {
            "name": run.info.run_name,
            "status": run.info.status,
            "params": run.data.params,
            "tags": tags,
            "histories": histories,
            "artifacts": {
                str(file.relative_to(folder)): file.read_bytes()
                for file in folder.rglob("*")
                if file.is_file()
            },
        }
    assert len(found) == len(children) + len(groups) + 1
    return found


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    """A module of the project as a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=PROJECT, capture_output=True, text=True, check=False
    )


def test_a_deleted_database_is_rebuilt(results: Results, cells: list[Cell], study: str) -> None:
    """The same params, metrics with their steps and times, tags and files."""
    report = Path(results.url) / "report" / study / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text("<html></html>")
    tracker = open_tracker(results, study, None)
    tracker.log_cells(ids(cells))
    tracker.finish(rebuilt_summary(results), [report], rebuilt_groups(results))
    first = held(results, study, "")
    assert len(first) == CELLS + 2 + 1
    (Path(results.url) / "mlflow.db").unlink()
    shutil.rmtree(Path(results.url) / "mlflow-artifacts")
    done = typed("study.track", results.url)  # here MLflow keeps what was deleted open
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{study}: {CELLS} cells: 0 were there, {CELLS} logged\n" in done.stdout
    assert held(results, study, "/.") == first


@pytest.mark.usefixtures("without_ray", "no_pictures")
def test_a_study_of_the_command_whose_server_is_down(
    door: Door, server: MLflowServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From `study.run` to `study.track`, which is called as it was told."""
    results = Results(tmp_path / "results")
    status = run_study(
        [
            "digits", "--results", results.url, "--tracking", door.uri,
            "--set", "n=100", "m=3", "epochs=2", "lr=0.1", "seed=0,1", "confirm=none",
            "paradigm=soft,lvml", "batch_size=10", "evaluations=2", "train_metrics_size=20",
            "validation_size=20", "test_size=20",
        ]
    )  # fmt: skip
    said = capsys.readouterr().err
    assert status == DONE, said
    assert f"warning: the MLflow server {door.uri} does not answer" in said
    assert "MLflow lacks 7 of 7 runs" in said
    (line,) = (line for line in said.splitlines() if "MLflow lacks" in line)
    command = line.partition("log them with: uv run ")[2].split()
    assert command[:3] == ["python", "-m", "study.track"]
    door.open()
    done = typed(*command[2:])
    assert (done.returncode, done.stderr) == (0, "")
    assert "digits: 4 cells: 0 were there, 4 logged\n" in done.stdout
    client = MlflowClient(server.uri)
    children, parent = runs_of(client)
    assert {r.data.tags["cell_id"] for r in children} == set(results.cells()["cell_id"])
    assert len(children) == 4
    assert {r.data.params["paradigm"] for r in groups_of(client, "digits")} == {"soft", "lvml"}
    assert [f.path for f in client.list_artifacts(parent.info.run_id)] == ["report.html"]
