"""Keeps MLflow's artifacts beside its database in the results directory, wherever that is moved.

MLflow stores absolute URIs of experiments and runs. They are corrected when the database is
opened, so that a results directory can be moved and copied.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from study.errors import RequestError

DATABASE = "mlflow.db"
_FOLDER = "mlflow-artifacts"


def artifact_root(folder: Path, experiment: str) -> str:
    """The URI of an experiment's artifacts, beside the database in a folder."""
    return (folder / _FOLDER / experiment).as_uri()


def follow(folder: Path) -> str | None:
    """Corrects the URIs in the database of a folder that has been moved or copied.

    Only the driver calls it, before MLflow opens the database. It is one transaction.

    Returns:
        The folder's former path by the database; None if it has not moved.
    """
    here, before = folder.as_uri(), None
    with contextlib.closing(sqlite3.connect(folder / DATABASE, timeout=20)) as database, database:
        if not database.execute("PRAGMA table_info(experiments)").fetchall():  # a new one
            return None
        experiments = database.execute("SELECT experiment_id, artifact_location FROM experiments")
        for number, old in experiments.fetchall():
            there, ours, name = (old or "").rpartition(f"/{_FOLDER}/")
            if not ours or not there.startswith("file:") or there == here:
                continue
            new, before = f"{here}{ours}{name}", unquote(urlsplit(there).path)
            database.execute(
                "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?",
                (new, number),
            )
            database.execute(
                "UPDATE runs SET artifact_uri = ? || substr(artifact_uri, ?)"
                " WHERE experiment_id = ? AND substr(artifact_uri, 1, ?) = ?",
                (new, len(old) + 1, number, len(old), old),
            )
    return before


@contextlib.contextmanager
def in_folder(files: Mapping[str, bytes]) -> Iterator[str]:
    """Gives a folder that holds files, path -> content, as MLflow takes them."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        yield folder


def require_writable(location: str) -> None:
    """Checks that artifacts can be written, if they go to a local folder.

    Args:
        location: of an experiment's artifacts, a path or URI.

    Raises:
        RequestError: the folder cannot be written.
    """
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        return
    path = Path(unquote(parts.path) if parts.scheme else location)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise RequestError(
            f"MLflow keeps artifacts in {path}, which cannot be written ({error.strerror}). Make "
            "it writable, or choose another store with --tracking URI, or --tracking none."
        ) from error
