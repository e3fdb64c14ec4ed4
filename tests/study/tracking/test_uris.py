"""Stores that are down, refuse or cannot work: one line that names them, without a password."""

from __future__ import annotations

import contextlib
import http.server
import os
import re
import shlex
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from socket import EAI_AGAIN, EAI_NONAME

import pytest
import sqlalchemy
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st
from mlflow.experiments import commands

from study.cell import Cell
from study.errors import RequestError
from study.results import Results
from study.terminal.command import DONE, UNUSABLE, guarded
from study.tracking.store import RunStore
from study.tracking.tracker import NullTracker, open_tracker
from study.tracking.uris import ServerDown, reason, sqlite_url
from tests.made_up.comparisons import make_results
from tests.made_up.tracking import SUMMARY, assert_exactly_once, client_of, ids, start, track

DOWN = "http://me:very-secret@127.0.0.1:1"


def test_a_server_that_is_down_is_warned_of_and_given_up(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("study.tracking.tracker.DOWN_SECONDS", 0.5)
    tracker = start(results, DOWN)
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1
    assert warning.startswith("warning: the MLflow server http://me:***@127.0.0.1:1 does not")
    assert "Connection refused" in warning
    assert "--tracking" in warning
    assert f"study.track {results.url} --tracking" in warning
    started = time.monotonic()
    for _ in range(1000):
        tracker.log_cells(ids(cells))
    assert time.monotonic() - started < 1
    started = time.monotonic()
    tracker.finish(SUMMARY, [])
    assert 0.5 <= time.monotonic() - started < 4.5
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "MLflow lacks 4 of 4 runs" in captured.err
    assert f"study.track {results.url} --tracking 'http://me:***@127.0.0.1:1'" in captured.err
    assert "secret" not in warning + captured.err + captured.out + str(tracker.ui_command)
    assert not (Path(results.url) / "mlflow-artifacts").exists()


def test_the_printed_command_names_the_store_that_was_asked_for(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = f"uv run python -m study.track {results.url}"
    assert RunStore(results, "digits", None).rebuild_command == plain
    asked = RunStore(results, "digits", "http://host:5000")
    assert asked.rebuild_command == f"{plain} --tracking http://host:5000"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", DOWN)  # which the command reads, too
    assert RunStore(results, "digits", None).rebuild_command == plain


def test_ctrl_c_ends_the_wait(
    results: Results, cells: list[Cell], capsys: pytest.CaptureFixture[str]
) -> None:
    tracker = start(results, DOWN)
    tracker.log_cells(ids(cells))
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.6, signal.pthread_kill, (main, signal.SIGINT))
    started = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        tracker.finish(SUMMARY, [])
    assert time.monotonic() - started < 3
    tracker._thread.join(10)
    assert not tracker._thread.is_alive()


def test_a_store_that_cannot_work_is_named(results: Results, tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("this is not a database " * 100)
    started = time.monotonic()
    for uri, why in [
        ("nonsense://store", "nonsense"),
        ("sqlite:////proc/x.db", "x.db"),
        (f"sqlite:///{text}", "not a database"),
        ("http://", "names no host"),
        ("http://host:99999", "99999|range"),
    ]:
        with pytest.raises(RequestError, match=why) as refused:
            open_tracker(results, "digits", uri)
        assert not isinstance(refused.value, ServerDown)
        assert "--tracking" in str(refused.value)
        assert "\n" not in str(refused.value)
    assert time.monotonic() - started < 10


@contextlib.contextmanager
def answering(status: int) -> Iterator[str]:
    """The address of a server that gives one answer to all, which is not MLflow's."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"no")

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def refusal(results: Results, uri: str | None) -> RequestError:
    with pytest.raises(RequestError) as refused:
        RunStore(results, "digits", uri).connect()
    return refused.value


@pytest.mark.parametrize(
    ("status", "passes"), [(200, False), (401, False), (403, False), (503, True)]
)
def test_a_server_that_refuses_is_not_one_that_is_down(
    results: Results, status: int, passes: bool
) -> None:
    with answering(status) as uri:
        assert isinstance(refusal(results, uri), ServerDown) == passes


@pytest.mark.parametrize(("number", "passes"), [(EAI_NONAME, False), (EAI_AGAIN, True)])
def test_a_host_that_nobody_knows_is_not_one_that_is_down(
    results: Results, monkeypatch: pytest.MonkeyPatch, number: int, passes: bool
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(number, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = refusal(results, "http://mlflow.example.org")
    assert isinstance(error, ServerDown) == passes
    assert "no such name" in str(error)


def test_a_server_of_another_protocol_is_not_one_that_is_down(results: Results) -> None:
    with answering(503) as uri:
        assert not isinstance(refusal(results, uri.replace("http", "https")), ServerDown)


@pytest.mark.parametrize("spared", ["", "example.org"])
def test_a_proxy_is_not_asked_for_what_is_on_this_machine(
    results: Results,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spared: str,
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, spared)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with answering(403) as uri:
        told = f"{refusal(results, uri)}"
        assert "NO_PROXY=127.0.0.1" in told
        store = RunStore(results, "digits", uri)
        assert guarded("a command", lambda: store.connect() or DONE, "stopped") == UNUSABLE
    assert "error code 403" in capsys.readouterr().err
    assert "NO_PROXY=mlflow.example.com" in str(refusal(results, "http://mlflow.example.com"))
    assert os.environ["no_proxy"].startswith(spared)


def test_a_deleted_experiment_is_restored_as_told(results: Results, cells: list[Cell]) -> None:
    track(results, cells)
    client = client_of(results)
    client.delete_experiment(client.get_experiment_by_name("digits").experiment_id)
    told = re.search(
        "`MLFLOW_TRACKING_URI=(.+) uv run mlflow experiments (.+)`", str(refusal(results, None))
    )
    assert told
    done = CliRunner(env={"MLFLOW_TRACKING_URI": told[1]}).invoke(commands, shlex.split(told[2]))
    assert done.exit_code == 0, done.output
    track(results, cells)
    assert_exactly_once(results, cells)


def test_a_damaged_database_is_made_anew_as_told(results: Results, cells: list[Cell]) -> None:
    path = Path(results.url) / "mlflow.db"
    path.write_bytes(b"no database" * 1000)
    assert "move it away" in str(refusal(results, None))
    path.unlink()
    track(results, cells)
    assert_exactly_once(results, cells)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("http://u:p@h:5000/x", "http://u:***@h:5000/x"),
        ("API request to http://u:p@h/api failed", "API request to http://u:***@h/api failed"),
        ("postgresql://u:p/w@h/db", "postgresql://u:***@h/db"),
        (
            "postgresql://h/db?user=u&password=p/w@x&sslmode=x",
            "postgresql://h/db?user=u&password=***&sslmode=x",
        ),
        ("http://u:p@ss@h", "http://u:***@h"),
        ("http://:p@h", "http://:***@h"),
        ("http://h:5000", "http://h:5000"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
    ],
)
def test_passwords_are_hidden(text: str, hidden: str) -> None:
    assert reason(ValueError(text)) == hidden


NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1)


@given(NAMES)
@example("w?q=1&x")
@example("w%20x")
@example("a b#1@é:+")
def test_sqlalchemy_finds_the_file(name: str) -> None:
    path = Path("/results", name, "mlflow.db")
    assert sqlalchemy.make_url(sqlite_url(path)).database == str(path)


@pytest.mark.parametrize("name", ["results", "a b", "a&b", "résultats"])
def test_a_name_that_needs_no_quotes_stays_readable(name: str) -> None:
    assert sqlite_url(Path("/", name, "mlflow.db")) == f"sqlite:////{name}/mlflow.db"


def test_tracking_can_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = make_results(tmp_path / "results")
    tracker = open_tracker(results, "digits", "none")
    assert isinstance(tracker, NullTracker)
    assert tracker.ui_command is None
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "none")
    assert isinstance(open_tracker(results, "digits", None), NullTracker)
    assert not (tmp_path / "results" / "mlflow.db").exists()
