"""Makes MLflow's tables: all of them or none, and by one driver at a time."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from study.tracking.uris import sqlite_url

CONNECT_SECONDS = 20
"""How long a connection may take; libpq would wait for minutes."""


@contextlib.contextmanager
def alone(uri: str) -> Iterator[None]:
    """Keeps other drivers out of a PostgreSQL database while they ask for the same.

    It waits for them, and the database lets go of who has died. An advisory lock of a transaction
    does both, behind a pool of connections, too.

    Args:
        uri: of MLflow's store; for any but PostgreSQL nothing is done.

    Raises:
        SQLAlchemyError, ImportError: the database cannot be reached; its driver is missing.
    """
    if not re.match(r"postgresql(\+\w+)?://", uri):
        yield
        return
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    of_libpq = re.match(r"postgresql(\+psycopg2?)?://", uri)
    wait = {"connect_timeout": CONNECT_SECONDS} if of_libpq else {}
    connection = create_engine(uri, poolclass=NullPool, connect_args=wait).connect()
    try:
        # Some servers end transactions that wait, as this one does while the work is done.
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('attention-study'))"))
        yield
    finally:
        with contextlib.suppress(SQLAlchemyError):  # what was done is done, whatever it says now
            connection.close()


def make_whole(uri: str, make: Callable[[str], object]) -> None:
    """Gives an empty SQLite file its tables in one transaction, while others that ask for it wait.

    MLflow makes its own in hundreds, and after a kill in between cannot go on.

    Args:
        uri: of MLflow's store; for any but a SQLite file nothing is done.
        make: makes the tables in another file, given its URI.

    Raises:
        sqlite3.Error, OSError: the file cannot be used, or no other one be made.
    """
    import sqlite3

    from sqlalchemy import make_url

    if not uri.startswith("sqlite") or not (path := make_url(uri).database):
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
