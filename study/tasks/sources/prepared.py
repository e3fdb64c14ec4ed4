"""The prepared form of images: arrays in a folder of the cache, made once for a machine."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from study.errors import RequestError
from study.tasks.sources.cache import CACHE_VARIABLE, locked, whole
from study.tasks.sources.reading import reading
from study.terminal.working import working

T = TypeVar("T")


def prepared(
    folder: Path,
    read: Callable[[], T],
    save: Callable[[T, Path], None],
    load: Callable[[Path], T],
) -> T:
    """The prepared form in `folder`; if it is missing or damaged, calls `read` and keeps it there.

    If several processes of a machine ask at once, one reads and the others wait. A cache that
    cannot be written costs a warning and time.

    Args:
        folder: of the prepared form.
        read: makes what is prepared.
        save: writes it; raises an `OSError`.
        load: reads it, and checks it; raises a `RequestError`.

    Raises:
        RequestError: from `read`.
    """
    kept = _kept(folder, load)
    if kept is not None:
        return kept
    with working("preparing images"), locked(folder):
        kept = _kept(folder, load)  # another process may have made it meanwhile
        if kept is not None:
            return kept
        shutil.rmtree(folder, ignore_errors=True)
        made = read()
        try:
            save(made, folder)
            return load(folder)  # shared pages instead of this process's own copy
        except (OSError, RequestError) as error:
            warnings.warn(
                f"cannot keep the prepared images in {folder} ({error}); every run will prepare "
                f"them again. Set {CACHE_VARIABLE} to a directory that can be written.",
                stacklevel=3,
            )
            return made


def _kept(folder: Path, load: Callable[[Path], T]) -> T | None:
    """The prepared form; None if it is missing or damaged."""
    with contextlib.suppress(RequestError):
        return load(folder)
    return None


def save_arrays(
    folder: Path, arrays: Mapping[str, np.ndarray], rest: Mapping[str, Any], rest_name: str
) -> None:
    """Writes one .npy file an array, and one JSON file `rest_name` for the rest.

    Raises:
        OSError: it cannot be written.
    """
    with whole(folder) as partial:
        for name, array in arrays.items():
            np.save(partial / f"{name}.npy", array, allow_pickle=False)
        (partial / rest_name).write_text(json.dumps(rest), encoding="utf-8")


def load_arrays(
    folder: Path,
    names: Sequence[str],
    rest_name: str,
    create: Callable[[list[np.ndarray], Mapping[str, Any]], T],
) -> T:
    """Reads what `save_arrays` wrote; the arrays are memory-mapped, copy-on-write.

    So processes of one machine share the pages, and the arrays count as writable, which
    `torch.from_numpy` requires.

    Args:
        folder: of the prepared form.
        names: of the arrays.
        rest_name: of the JSON file.
        create: (arrays, rest) -> what was saved; an error of bad data counts as damage.

    Raises:
        RequestError: it is missing or damaged.
    """
    with reading(folder, "Delete the folder; the next run makes it again."):
        rest = json.loads((folder / rest_name).read_text(encoding="utf-8"))
        arrays = [
            # As a plain array: a np.memmap would pass its type on to every result.
            np.asarray(np.load(folder / f"{name}.npy", mmap_mode="c", allow_pickle=False))
            for name in names
        ]
        return create(arrays, rest)


def check_digest(made: str, saved: str) -> None:
    """Refuses a prepared form that is not what was saved.

    Raises:
        ValueError: the digests differ.
    """
    if made != saved:
        raise ValueError(f"digest {made}, {saved} was saved")


def digest_of(arrays: Iterable[np.ndarray], names: Sequence[str]) -> str:
    """16 hexadecimal digits that stand for arrays, their shapes, and names."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(json.dumps(array.shape).encode())
        # A fixed byte order, so that the digest is the same on every machine.
        digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
    digest.update(json.dumps(names).encode())
    return digest.hexdigest()[:16]


def fingerprint(version: str, files: Iterable[Path]) -> str:
    """16 hexadecimal digits that change with a version and the path, size or time of any file.

    Raises:
        RequestError: a file cannot be read.
    """
    digest = hashlib.sha256(version.encode())
    for path in files:
        with reading(path):
            status = path.stat()
        line = f"\n{path.absolute()}\t{status.st_size}\t{status.st_mtime_ns}"
        digest.update(line.encode(errors="surrogateescape"))
    return digest.hexdigest()[:16]
