"""Folders of the cache: made once a machine, by one process at a time, and whole."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from filelock import FileLock

from study.errors import RequestError
from study.tasks.sources.places import CACHE_VARIABLE
from study.tasks.sources.reading import reading, why

T = TypeVar("T")


def cached(folder: Path, make: Callable[[Path], None], load: Callable[[Path], T]) -> T:
    """What `load` reads from a folder of the cache, which `make` fills if it is missing.

    If several processes of a machine ask at once, one makes it and the others wait. A damaged
    folder is made anew, an unfinished one never taken. Where the cache cannot be written, a
    temporary folder takes its place.

    Args:
        folder: of the cache; its name stands for the content.
        make: fills an empty folder.
        load: reads the folder; raises a `RequestError` if it is damaged.

    Raises:
        RequestError: from `make`; or the folder cannot be written, as when the disk is full.
    """
    if (loaded := _loaded(folder, load)) is not None:
        return loaded
    if not _can_write(folder.parent):
        folder = Path(_instead_of(folder.parent).name) / folder.name
    partial = folder.with_name(f".{folder.name}.part")
    try:
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if (loaded := _loaded(folder, load)) is not None:  # another process made it meanwhile
                return loaded
            shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
            try:
                partial.mkdir()
                make(partial)
                shutil.rmtree(folder, ignore_errors=True)
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise RequestError(
            f"{folder} cannot be written ({why(error)}). Free space there, or choose another "
            f"cache with --cache-dir (cache_dir in Python) or {CACHE_VARIABLE}."
        ) from error
    return load(folder)


def _loaded(folder: Path, load: Callable[[Path], T]) -> T | None:
    """What is in the folder; None if it is missing or damaged."""
    # os.path, which raises nothing if the cache cannot be entered.
    if os.path.isdir(folder):
        with contextlib.suppress(RequestError):
            return load(folder)
    return None


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@functools.cache
def _instead_of(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder that ends with this process."""
    warnings.warn(
        f"nothing can be kept in {folder}, so every run makes it again. Choose another cache with "
        f"--cache-dir (cache_dir in Python) or {CACHE_VARIABLE}.",
        stacklevel=3,
    )
    return tempfile.TemporaryDirectory()


# Arrays

_REST = "rest.json"


def prepared(
    folder: Path,
    read: Callable[[], T],
    create: Callable[..., T],
    arrays: Sequence[str],
    rest: Sequence[str],
) -> T:
    """What `read` gives, kept in a folder of the cache; its arrays are memory-mapped.

    So processes of one machine share the pages. They are copy-on-write, so that the arrays count
    as writable, which `torch.from_numpy` requires.

    Args:
        folder: see `cached`.
        read: makes what is kept; its attribute `digest` stands for the content.
        create: makes it of the named attributes, given by name.
        arrays: names of the attributes that are arrays.
        rest: of those that JSON takes.

    Raises:
        RequestError: from `read`, or as `cached`.
    """

    def make(partial: Path) -> None:
        made = read()
        for name in arrays:
            np.save(partial / f"{name}.npy", getattr(made, name), allow_pickle=False)
        known = {name: getattr(made, name) for name in (*rest, "digest")}
        (partial / _REST).write_text(json.dumps(known), encoding="utf-8")

    def load(folder: Path) -> T:
        with reading(folder):
            known = json.loads((folder / _REST).read_text(encoding="utf-8"))
            digest = known.pop("digest")
            loaded: Any = create(
                **{name: _mapped(folder / f"{name}.npy") for name in arrays}, **known
            )
            if loaded.digest != digest:
                raise ValueError(f"its digest is {loaded.digest}, {digest} was saved")
            return loaded

    return cached(folder, make, load)


def _mapped(file: Path) -> np.ndarray:
    # As a plain array: a np.memmap would pass its type on to every result.
    return np.asarray(np.load(file, mmap_mode="c", allow_pickle=False))


def digest_of(arrays: Iterable[np.ndarray], names: Sequence[str]) -> str:
    """16 hexadecimal digits that stand for arrays, their shapes, and names."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(json.dumps(array.shape).encode())
        # A fixed byte order, so that the digest is the same on every machine.
        digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
    digest.update(json.dumps(names).encode())
    return digest.hexdigest()[:16]


def fingerprint(version: object, files: Iterable[Path]) -> str:
    """16 hexadecimal digits that change with a version and the path, size or time of any file.

    Raises:
        RequestError: a file cannot be read.
    """
    digest = hashlib.sha256(str(version).encode())
    for path in files:
        with reading(path):
            status = path.stat()
        line = f"\n{path.absolute()}\t{status.st_size}\t{status.st_mtime_ns}"
        digest.update(line.encode(errors="surrogateescape"))
    return digest.hexdigest()[:16]
