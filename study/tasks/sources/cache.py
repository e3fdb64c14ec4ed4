"""The local cache, whose folders are complete and made by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from study.storage import urls

CACHE_VARIABLE = "ATTENTION_STUDY_CACHE"


def is_url(place: str | os.PathLike[str] | None) -> bool:
    """Whether a place is on shared storage, such as s3://bucket/folder."""
    return "://" in str(place)


def absolute(place: str | None) -> str | None:
    """The absolute path of a directory; a URL or None stays.

    Raises:
        RequestError: it is a URL with a mistake.
    """
    if place is None or is_url(place):
        return place
    return urls.absolute(place)


def cache_root(cache_dir: str | os.PathLike[str] | None) -> Path:
    """The cache directory of this machine.

    Args:
        cache_dir: a directory. None, or a URL (which keeps only downloads): `default_cache_dir()`.
    """
    if cache_dir is None or is_url(cache_dir):
        return default_cache_dir()
    return urls.expanded(cache_dir)


def default_cache_dir() -> Path:
    """`$ATTENTION_STUDY_CACHE`, or `~/.cache/attention-study`."""
    return urls.expanded(os.environ.get(CACHE_VARIABLE) or "~/.cache/attention-study")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lets one process of this machine at a time make a folder of the cache; others wait.

    The lock is a file beside the folder, held by `flock`, so it ends even with a killed holder.
    The file stays, since removing it would let two processes lock two files of one name. If the
    file system knows no locks or cannot be written, nobody waits, and several processes may make
    the folder at once.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(open(folder.with_name(f".{folder.name}.lock"), "ab"))
            fcntl.flock(file, fcntl.LOCK_EX)
            for left in folder.parent.glob(_partial_name(folder, "*")):  # of a killed holder
                shutil.rmtree(left, ignore_errors=True)
        yield


@contextlib.contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """An empty folder to fill, renamed to `folder` at the end, so that nobody sees half of it.

    If another process was faster, its folder stays. After an error there is no folder.

    Raises:
        OSError: it cannot be made or renamed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(_partial_name(folder, uuid.uuid4().hex))
    try:
        partial.mkdir()
        yield partial
        try:
            partial.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _partial_name(folder: Path, suffix: str) -> str:
    return f".{folder.name}-{suffix}.part"
