"""Makes MLflow's tables: all of them or none, and by one driver at a time."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from study.tracking.uris import sqlite_url

CONNECT_SECONDS = 20
"""How long a connection may take; libpq would wait for minutes."""


@contextlib.contextmanager
def made_whole(uri: str) -> Iterator[None]:
    """Within it, a store's tables can be made without another driver making them, too.

    MLflow makes its own in hundreds of steps, and after a kill in between cannot go on. So those
    of SQLite are made in a file beside and put in their place at once. In PostgreSQL a step is
    there or not, and an advisory lock of a transaction, which works behind a pool of connections,
    too, keeps others out; the database lets go of who has died.

    Args:
        uri: of MLflow's store; for any but these two nothing is done.

    Raises:
        OSError, SQLAlchemyError, ImportError: the database cannot be used; its driver is missing.
    """
    from sqlalchemy import create_engine, make_url, text
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    if uri.startswith("sqlite"):
        path = make_url(uri).database
        if path in (None, "", ":memory:"):
            raise ValueError("it names no file")
        _make_file(Path(str(path)))
    if not re.match(r"postgresql(\+\w+)?://", uri):
        yield
        return
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


def _make_file(path: Path) -> None:
    from mlflow import MlflowClient

    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".mlflow-", dir=path.parent) as folder:
        made = Path(folder, "made.db")
        MlflowClient(tracking_uri=sqlite_url(made))
        try:
            os.link(made, path)  # unless another driver was faster
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            os.replace(made, path)
