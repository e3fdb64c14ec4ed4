"""Which files a results directory has, while others may write, merge and remove some."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from study.results.schema import Table
from study.storage.storage import ResultsError, Storage

COMPACT_PREFIX = "compact-"
"""How the names of the files begin that `study.compact` writes."""

_REQUESTS = 16  # to an object store at a time; on a local disk, threads were measured not to help

T = TypeVar("T")


def listed(storage: Storage) -> dict[Table, list[str]]:
    """The names of each table's files.

    Raises:
        FileNotFoundError: files were merged meanwhile, so that cells could be missing.
    """
    cells, evaluations, again = (
        [name.partition("/")[2] for name in storage.names(table, ".parquet")]
        for table in ("cells", "evaluations", "cells")
    )
    new = set(again) - set(cells)
    gone = sorted(set(cells) - set(again))
    gone += [file for file in new if os.path.basename(file).startswith(COMPACT_PREFIX)]
    if gone:
        raise FileNotFoundError(storage.path(f"cells/{gone[0]}"))
    return {"cells": cells, "evaluations": evaluations}


def while_files_vanish(storage: Storage, read: Callable[[], T]) -> T:
    """Reads, and once more from the list of files on when a compaction removed some meanwhile.

    Args:
        storage: the directory.
        read: lists and reads; raises FileNotFoundError where a listed file is gone.

    Raises:
        ResultsError: the same file is missing again.
    """
    vanished = ""
    while True:
        try:
            return read()
        except FileNotFoundError as error:
            if str(error) == vanished:
                raise ResultsError(
                    f"a file of {storage.url} is listed, but not there ({error}). Remove it."
                ) from error
            vanished = str(error)


def of_each(storage: Storage, read: Callable[[str], T], names: Sequence[str]) -> dict[str, T]:
    """Name of a file, or id of a cell -> what `read` makes of it."""
    if storage.local or len(names) < 2:
        return {name: read(name) for name in names}
    with ThreadPoolExecutor(_REQUESTS) as pool:
        return dict(zip(names, pool.map(read, names), strict=True))
