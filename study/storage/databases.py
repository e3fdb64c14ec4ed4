"""Databases that several drivers share or that a kill may meet, and why one cannot be used."""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

CONNECT_SECONDS = 20
"""How long a connection may take; libpq would wait for minutes."""


def is_postgresql(url: str) -> bool:
    """Whether a URL of SQLAlchemy names a PostgreSQL database, by whatever driver."""
    return bool(re.match(r"postgresql(\+\w+)?://", url)) and _has_port(url)


def soon_connected(url: str) -> dict[str, int]:
    """The `connect_args` of a PostgreSQL database by which a connection does not take minutes."""
    of_libpq = re.match(r"postgresql(\+psycopg2?)?://", url)
    return {"connect_timeout": CONNECT_SECONDS} if of_libpq else {}


def _has_port(url: str) -> bool:
    """Whether the port of a URL is a number, or left out."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


@contextlib.contextmanager
def alone(url: str, what: str) -> Iterator[None]:
    """Keeps all others out who ask for the same thing in the same PostgreSQL database.

    It waits for them, and the database lets go of who has died. An advisory lock of a transaction
    does both, behind a pool of connections, too.

    Args:
        url: of SQLAlchemy.
        what: a name, such as of what is made or changed meanwhile.

    Raises:
        SQLAlchemyError, ImportError: the database cannot be reached; its driver is missing.
    """
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    key = int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], signed=True)
    engine = create_engine(url, poolclass=NullPool, connect_args=soon_connected(url))
    connection = engine.connect()
    try:
        # Some servers end transactions that wait, as this one does while the work is done.
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
        yield
    finally:
        with contextlib.suppress(SQLAlchemyError):  # what was done is done, whatever it says now
            connection.close()


def make_whole(url: str, make: Callable[[str], object]) -> None:
    """Gives an empty SQLite file its tables in one transaction, while others that ask for it wait.

    Libraries make theirs in hundreds, and after a kill in between cannot go on.

    Args:
        url: of SQLAlchemy; for any other database nothing is done.
        make: makes the tables in another file, given its URL.

    Raises:
        sqlite3.Error, OSError: the file cannot be used, or no other one be made.
    """
    import sqlite3

    from sqlalchemy import make_url

    from study.storage.urls import sqlite_url

    if not url.startswith("sqlite") or not (path := make_url(url).database):
        return
    with contextlib.closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        if not database.execute("SELECT 1 FROM sqlite_master").fetchone():
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "made.db")
                make(sqlite_url(file))
                with contextlib.closing(sqlite3.connect(file)) as made:
                    for statement in made.iterdump():
                        if statement not in ("BEGIN TRANSACTION;", "COMMIT;"):
                            database.execute(statement)
        database.execute("COMMIT")


def reason(error: BaseException) -> str:
    """Why a database or server cannot be used, on one line and without passwords.

    Of a paragraph on a failed connection, only the system's error is kept.
    """
    for cause in causes(error):
        if isinstance(cause, ModuleNotFoundError) and (cause.name or "").startswith("psycopg"):
            return f"{cause}: `uv sync --extra postgresql` installs psycopg, for postgresql://"
        if isinstance(cause, OSError):
            error = cause
    return without_password((str(error) or repr(error)).splitlines()[0])


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it followed, the first one last."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def without_password(text: str) -> str:
    """The text with the password of every `user:password@host` in a URI masked."""
    text = re.sub(r"([?&]password=)[^&\s]*", r"\1***", text)
    return re.sub(r"(://[^/\s:@]*):\S*@", r"\1:***@", text)
