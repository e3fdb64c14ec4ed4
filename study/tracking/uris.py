"""Where MLflow's store is, and why it does not answer."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from urllib.parse import urlsplit

from study.errors import RequestError

NONE = "none"
"""The `--tracking` that logs nothing."""


class ServerDown(RequestError):
    """A tracking server that does not answer now, and may later."""


def tracking_uri(uri: str | None) -> str | None:
    """The URI that was asked for, by an option or by the environment; None for neither."""
    return uri or os.environ.get("MLFLOW_TRACKING_URI") or None


def reason(error: BaseException) -> str:
    """Why something failed, on one line and without passwords.

    MLflow's message for a failed connection is a paragraph; the system's error in it is enough.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError):
            error = cause
        cause = cause.__cause__ or cause.__context__
    return _without_password((str(error) or repr(error)).splitlines()[0])


def _without_password(text: str) -> str:
    """A text in which `user:password@host` of any URI has no password any more."""
    return re.sub(r"(://[^/\s:@]*):\S*@", r"\1:***@", text)


def _is_server(uri: str) -> bool:
    return uri.startswith(("http://", "https://"))


def _may_pass(error: Exception) -> bool:
    """Whether a server was not there or not ready, rather than refused the request."""
    from mlflow.exceptions import InvalidUrlException, MlflowException

    if not isinstance(error, MlflowException) or isinstance(error, InvalidUrlException):
        return isinstance(error, OSError)
    return error.get_http_status_code() >= 500


def _require_store(uri: str) -> None:
    """Raises at once for an address or a file that cannot be used; MLflow would try for long."""
    from sqlalchemy import make_url

    if _is_server(uri):
        parts = urlsplit(uri)
        if not parts.hostname or parts.port == 0:  # reading the port checks it
            raise ValueError("the address names no host")
    elif uri.startswith("sqlite") and (path := make_url(uri).database):
        with open(path, "ab"):  # creates it, as SQLite would
            pass
        with contextlib.closing(sqlite3.connect(path, timeout=20)) as database:
            database.execute("PRAGMA schema_version")
