"""Stores that cannot work: one line that names them, without a password."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy
from hypothesis import example, given
from hypothesis import strategies as st

from study.errors import RequestError
from study.results import Results
from study.tracking.store import ServerDown, Store
from study.tracking.uris import reason, sqlite_url


def refusal(results: Results, uri: str | None) -> RequestError:
    with pytest.raises(RequestError) as refused:
        Store(results, "digits", uri).connect()
    assert "--tracking" in str(refused.value)
    assert "\n" not in str(refused.value)
    return refused.value


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("nonsense://store", "nonsense"),
        ("sqlite:////proc/x.db", "/proc"),
        ("sqlite:///:memory:", "names no file"),
        ("http://host:99999", "99999|[Pp]ort"),
    ],
)
def test_a_store_that_cannot_work_is_named(results, uri, why):
    error = refusal(results, uri)
    assert error.__class__ is RequestError
    assert any(word in str(error) for word in why.split("|")), str(error)


@contextlib.contextmanager
def answering(status: int) -> Iterator[str]:
    """The address of a server that gives one answer to all, which is not MLflow's."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(status)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    ("status", "passes"), [(200, False), (401, False), (403, False), (503, True)]
)
def test_a_server_that_refuses_is_not_one_that_is_down(results, status, passes):
    with answering(status) as uri:
        assert isinstance(refusal(results, uri), ServerDown) == passes


def test_a_damaged_database_is_to_be_moved_away(results):
    (Path(results.url) / "mlflow.db").write_bytes(b"no database" * 1000)
    assert "move it away" in str(refusal(results, None))


def test_the_printed_command_names_the_store_that_was_asked_for(results, monkeypatch):
    plain = f"uv run python -m study.track {results.url}"
    asked = Store(results, "digits", "http://host:5000")
    assert asked.rebuild_command == f"{plain} --tracking http://host:5000"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://host:1")  # which the command reads, too
    assert Store(results, "digits", None).rebuild_command == plain


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
def test_passwords_are_hidden(text, hidden):
    assert reason(ValueError(text)) == hidden


NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1)


@given(NAMES)
@example("w?q=1&x")
@example("w%20x")
@example("a b#1@é:+")
def test_sqlalchemy_finds_the_file(name):
    path = Path("/results", name, "mlflow.db")
    assert sqlalchemy.make_url(sqlite_url(path)).database == str(path)


@pytest.mark.parametrize("name", ["results", "a b", "a&b", "résultats"])
def test_a_name_that_needs_no_quotes_stays_readable(name):
    assert sqlite_url(Path("/", name, "mlflow.db")) == f"sqlite:////{name}/mlflow.db"
