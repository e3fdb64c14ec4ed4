"""Downloads with a time limit, quietly, and with errors for people."""

from __future__ import annotations

import contextlib
import io
import socket
import urllib.error
import warnings
from collections.abc import Iterator
from pathlib import Path

from study.errors import RequestError
from study.tasks.sources.reading import why
from study.terminal.working import aside, working

_SILENCE_SECONDS = 20.0
"""A server that is silent for this long is given up."""


@contextlib.contextmanager
def downloading(
    title: str, megabytes: int, folder: Path, where: str, remedy: str
) -> Iterator[None]:
    """Announces a download, which its body carries out.

    Args:
        title: of the data set.
        megabytes: its size.
        folder: which the body fills.
        where: its place, for the announcement.
        remedy: what to do without it, a sentence.

    Raises:
        RequestError: no connection, a broken connection, a wrong checksum, or a full disk.
    """
    aside(f"downloading {title} ({megabytes} MB) to {where}")
    try:
        with (
            working(f"downloading {title}", megabytes, "MB", lambda: _size(folder, megabytes)),
            _impatient(),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(action="ignore"),  # of libraries
        ):
            yield
    except Exception as error:  # libraries have no error of their own
        _close(error)
        damaged = isinstance(error, RuntimeError | ValueError)
        reason = "what arrived is damaged or incomplete" if damaged else why(error)
        raise RequestError(
            f"{title} is not at hand and could not be downloaded ({reason}). {remedy} The study "
            "digits needs no download."
        ) from error


def _size(folder: Path, most: float) -> float:
    """MB of the files below a folder; at most `most`, as they are unpacked there, too."""
    with contextlib.suppress(OSError):  # a file that moves
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
        return min(size, most)
    return most


def _close(error: BaseException | None) -> None:
    """Closes the connections that refusals hold, of all attempts; else they stay open."""
    while error is not None:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        error = error.__context__


@contextlib.contextmanager
def _impatient() -> Iterator[None]:
    """Lets connections fail after `_SILENCE_SECONDS`."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_SILENCE_SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
