"""The URI of MLflow's store, and why a store does not answer."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from study.errors import ResultsError
from study.storage.urls import local_path

NONE = "none"
"""The `--tracking` that logs nothing."""


def tracking_uri(uri: str | None) -> str | None:
    """The URI given by the option or else by the environment; None if neither gives one."""
    return uri or os.environ.get("MLFLOW_TRACKING_URI") or None


def is_server(uri: str) -> bool:
    """Whether a URI names a tracking server."""
    return uri.startswith(("http://", "https://"))


def sqlite_url(path: Path) -> str:
    """The URI of a SQLite database.

    It is quoted, since SQLAlchemy, which MLflow uses, reads options after a `?` and decodes `%`.
    """
    quoted = str(path).translate({ord(sign): f"%{ord(sign):02X}" for sign in "%?#"})
    # MLflow makes the folder that a `sqlite:` URL spells, which is wrong for a quoted path. With
    # the driver's name in the URL, it makes none.
    driver = "sqlite" if quoted == str(path) else "sqlite+pysqlite"
    return f"{driver}:///{quoted}"


def database_folder(url: str) -> Path:
    """The local folder of the MLflow database of a results directory at a path or URL.

    It is the directory itself. No database works in an object store, so a store's database lies
    in a folder of the working directory, named after the URL and made if missing.

    Raises:
        ResultsError: the folder cannot be made.
    """
    path = local_path(url)
    if path is not None:
        return path.resolve()
    url = url.rstrip("/")
    name = re.sub(r"[^\w.-]+", "-", url)  # two URLs may share it; the digest tells them apart
    digest = hashlib.sha256(url.encode()).hexdigest()[:8]
    folder = Path("databases", f"{name}-{digest}").resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError(
            f"{folder}, for MLflow's database of {url}, cannot be made ({error.strerror}). Run "
            "the command in a writable directory."
        ) from error
    return folder


def may_pass(error: Exception) -> bool:
    """Whether a server's error may go away: it was absent or not ready, and refused nothing."""
    from mlflow.exceptions import MlflowException

    if any(isinstance(cause, ValueError) for cause in causes(error)):  # the address is none
        return False
    is_absent = any(isinstance(cause, OSError) for cause in causes(error))
    code = error.get_http_status_code() if isinstance(error, MlflowException) else 0
    return is_absent or code > 500


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
