"""Lists the files of a results directory while other processes write, merge and remove some."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from study.results.schema import Table
from study.storage.storage import ResultsError, Storage
from study.terminal.working import Part

COMPACT_PREFIX = "compact-"
"""Prefix of the merged files that `study.results.compaction` writes."""

STALE_SECONDS = 60.0
"""How long another machine's file system may list what was removed (NFS: `acdirmax`)."""

PAUSE_SECONDS = 2.0
"""Before such a directory is listed once more."""

_REQUESTS = 16  # at a time to an object store; on a local disk threads measurably do not help

T = TypeVar("T")


def listed(storage: Storage) -> dict[Table, list[str]]:
    """The names of each table's files.

    Raises:
        FileNotFoundError: a compaction merged files meanwhile, so cells could be missing.
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
    """Lists and reads files, again if a compaction removed some meanwhile.

    Args:
        storage: the directory.
        read: lists and reads; raises FileNotFoundError if a listed file is gone.

    Raises:
        ResultsError: the same file is missing again and again for `STALE_SECONDS`.
    """
    vanished, since = "", 0.0
    while True:
        try:
            return read()
        except FileNotFoundError as error:
            now = time.monotonic()
            if str(error) != vanished:
                vanished, since = str(error), now
            elif now - since > STALE_SECONDS:
                raise ResultsError(
                    f"a file of {storage.url} is listed, but not there ({error}). Remove it."
                ) from error
            else:
                time.sleep(PAUSE_SECONDS)


def of_each(
    storage: Storage, read: Callable[[str], T], names: Sequence[str], part: Part
) -> dict[str, T]:
    """File name or cell id -> what `read` returns for it; in threads for an object store.

    Args:
        storage, read, names: what to read where.
        part: of the command's work, told of each.
    """
    if storage.local or len(names) < 2:
        return {name: read(name) for name in part.each(names)}
    with ThreadPoolExecutor(_REQUESTS) as pool:
        return dict(zip(names, part.each(pool.map(read, names)), strict=True))
