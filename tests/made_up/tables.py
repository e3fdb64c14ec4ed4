"""Cells of every end, what a directory holds of them, and acts in the middle of other acts."""

from __future__ import annotations

import functools
import pkgutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import pandas as pd
import pytest

from study.cell import Cell
from study.results import Results
from tests.made_up.comparisons import POINTS, make_cell, write

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
"""What a clone without Git LFS has in the place of a file."""

NAMES = "study.storage.storage.Storage.names"
READ = "study.results.cell_file.opened"
WRITE = "study.storage.storage.Storage.write"
REMOVE = "study.storage.storage.Storage.remove"
LIST = "os.scandir"
FETCH = "study.storage.storage.Storage.fetch"


def in_memory() -> Results:
    results = Results(f"memory://{uuid.uuid4().hex}")
    results.prepare()
    return results


def write_some(results: Results) -> list[Cell]:
    """Cells of every kind: done, diverged with and without evaluations, censored."""
    return [
        write(results, make_cell(seed=0), 0.8),
        write(results, make_cell("hybrid", seed=1), 0.9),
        write(results, make_cell(seed=2), status="diverged", points=POINTS[:1]),
        write(results, make_cell(seed=3), status="diverged", points=()),
        write(results, make_cell(seed=4), status="censored", points=POINTS[:2], steps=50),
    ]


def contents(results: Results) -> dict[str, bytes]:
    """Name -> bytes of every file of cells."""
    return {name: results.storage.read(name) for name in results.storage.names("cells")}


def put(results: Results, files: Mapping[str, bytes], folder: str = "") -> None:
    """Adds files, in a folder of `cells/`, as `cp -r` does."""
    for name, data in files.items():
        target = f"cells/{folder}{name.removeprefix('cells/')}"
        results.storage.make(target.rpartition("/")[0])
        results.storage.write(target, data)


def frames(results: Results, ids: Sequence[str] | None = None) -> list[pd.DataFrame]:
    return [results.cells(ids), results.evaluations(ids)]


def assert_same(found: list[pd.DataFrame], expected: list[pd.DataFrame]) -> None:
    for one, other in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def interrupted(
    files: Mapping[str, bytes],
    act: Callable[[Results], Any],
    interrupt: Callable[[Results], object],
    *targets: str,
    new: Callable[[], Results] = in_memory,
) -> Iterator[tuple[Results, Any, bool]]:
    """Acts with directories of these files, each interrupted at another moment, the last at none.

    Args:
        files: what is in the directories.
        act: with a directory.
        interrupt: does something else with it, or raises KeyboardInterrupt.
        targets: functions; the moments are their calls.
        new: makes an empty directory.

    Yields:
        The directory, what `act` returned, and whether it was interrupted.
    """
    for moment in count():
        results = new()
        put(results, files)
        calls = count()
        acting = functools.partial(_before, results, interrupt, calls, moment)
        outcome = None
        with pytest.MonkeyPatch.context() as patch, suppress(KeyboardInterrupt):
            for target in targets:
                patch.setattr(target, acting(pkgutil.resolve_name(target)))
            outcome = act(Results(results.url))
        happened = next(calls) > moment
        yield results, outcome, happened
        if not happened:
            return


def _before(
    results: Results,
    interrupt: Callable[[Results], object],
    calls: Iterator[int],
    moment: int,
    real: Callable[..., Any],
) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        if next(calls) == moment:
            interrupt(Results(results.url))
        return real(*given, **named)

    return call
