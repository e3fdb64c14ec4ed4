"""Cells of every end in files of every sort: copied, merged, damaged, contradicting each other."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from study.cell import Cell
from study.results import Results
from study.results.schema import SCHEMAS
from study.storage.storage import Storage
from tests.made_up.comparisons import POINTS, make_cell, write

TABLES = ("cells", "evaluations")


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
    """Name -> bytes of every file of both tables."""
    storage = results.storage
    return {name: storage.read(name) for table in TABLES for name in storage.names(table)}


def frames(results: Results, ids: Sequence[str] | None = None) -> list[pd.DataFrame]:
    return [results.cells(ids), results.evaluations(ids)]


def assert_same(found: list[pd.DataFrame], expected: list[pd.DataFrame]) -> None:
    for one, other in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def copy(
    results: Results,
    cell: Cell,
    file: str,
    change: Callable[[str, pd.DataFrame], pd.DataFrame] = lambda _, rows: rows,
    source: Results | None = None,
) -> None:
    """Puts a changed copy of a cell's rows into `file`.

    Args:
        results: where to.
        cell: of which.
        file: its name in both tables.
        change: gives the rows of the copy, of those of a table (named first).
        source: where from, if not from `results`.
    """
    rows = dict(zip(TABLES, frames(source or results, [cell.id]), strict=True))
    for table in TABLES:
        frame = change(table, rows[table])
        results.storage.make(f"{table}/{file}".rpartition("/")[0])
        results.write_table(
            table, file, pa.Table.from_pandas(frame, SCHEMAS[table], preserve_index=False)
        )


@contextmanager
def acting_before(action: Callable[[int], Any], *methods: str) -> Iterator[list[str]]:
    """Calls `action` with the number of the call before each call of methods of `Storage`."""
    calls: list[str] = []

    def acting(method: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Storage, name: str, *rest: Any) -> Any:
            calls.append(f"{method} {name}")
            action(len(calls) - 1)
            return real(self, name, *rest)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for method in methods:
            patch.setattr(Storage, method, acting(method, getattr(Storage, method)))
        yield calls


def slightly(factor: float) -> Callable[[str, pd.DataFrame], pd.DataFrame]:
    def change(table: str, rows: pd.DataFrame) -> pd.DataFrame:
        return rows if table == "cells" else rows.assign(loss=rows["loss"] * factor)

    return change


def on_another_machine(table: str, rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(device="other", total_seconds=99.0) if table == "cells" else rows


def changed(only: str, **columns: Any) -> Callable[[str, pd.DataFrame], pd.DataFrame]:
    return lambda table, rows: rows.assign(**columns) if table == only else rows


CONTRADICTIONS = {
    "numbers": slightly(1.01),
    "missing number": changed("evaluations", ftpt=float("nan")),
    "missing row": lambda table, rows: rows if table == "cells" else rows.iloc[1:],
    "no rows": lambda table, rows: rows if table == "cells" else rows.iloc[:0],
    "status": changed("cells", status="done"),
    "steps": changed("cells", steps=99),
    "cell": changed("cells", cell=json.dumps({"evaluation_points": POINTS})),
}
"""Of a cell that diverged: a done one without some of its rows is damaged by itself."""


def with_files(files: Mapping[str, bytes]) -> Results:
    results = in_memory()
    for name, data in files.items():
        results.storage.write(name, data)
    return results


def the_evaluations_of_another(results: Results, cells: list[Cell]) -> None:
    """As a copy that was broken off leaves it, between the one table and the other."""
    own, other = (f"evaluations/{cell.id}.parquet" for cell in cells[:2])
    results.storage.write(own, results.storage.read(other))


def one_row_less(results: Results, cells: list[Cell]) -> None:
    copy(
        results,
        cells[0],
        f"{cells[0].id}.parquet",
        lambda table, rows: rows if table == "cells" else rows.iloc[1:],
    )


LACKING = [the_evaluations_of_another, one_row_less]
"""Leave the first of some cells without evaluations."""
