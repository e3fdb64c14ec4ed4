"""One Parquet file of cells: what its bytes are, and how they are checked and read.

It has one row an (evaluation, split), with the columns of the cell repeated; a cell without any
evaluation has one row whose `split` is missing. Its first row group holds a row of every cell.
Its metadata hold the JSON of each cell, named by its id. Its name ends with a digest of its bytes,
so that a changed or half-copied file shows, wherever it is.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from study.errors import ResultsError
from study.results.columns import CELLS_SCHEMA, EVALUATIONS_SCHEMA, FAMILIES, selected

SCHEMA_VERSION = 10
"""Of the files that are written and read."""

MERGED = "merged"
"""In place of the cell id, in the name of a file of many cells."""

ROWS_A_GROUP = 30_000  # larger groups are faster to read whole; of smaller ones more are skipped

_NAME = re.compile(
    rf"(^|/)(?:(?P<cell>[0-9a-f]{{16}})|{MERGED})-(?P<digest>[0-9a-f]{{16}})\.parquet$"
)
_EARLIER = re.compile(r"(^|/)([0-9a-f]{16}|compact-[0-9a-f]{16})\.parquet$")
_VERSION = "attention_study_schema"
_OTHER_VERSION = (
    "{} was made by another version of this project. Move the directory away, or choose another "
    "with --results DIR."
)


class Damage(NamedTuple):
    """A damaged file: its name in the directory, and the reason."""

    name: str
    reason: str


class Damaged(Exception):
    """A damaged file; the message is the reason."""


def own_cell(name: str) -> str | None:
    """The id of the cell that alone is in a file of this name; None: it may hold many."""
    found = _NAME.search(name)
    return found["cell"] if found else None


def encoded(cells: pa.Table, evaluations: pa.Table) -> bytes:
    """The bytes of a file.

    Args:
        cells: of `CELLS_SCHEMA`, each once.
        evaluations: of `EVALUATIONS_SCHEMA`, each of one of the cells; of a cell in their order.
    """
    cell_of = pc.index_in(evaluations["cell_id"], cells["cell_id"].combine_chunks()).to_numpy()
    without = np.setdiff1d(np.arange(len(cells)), cell_of)
    none = pa.Table.from_pylist([{}] * len(without), EVALUATIONS_SCHEMA)
    cell_of = np.concatenate([cell_of, without])
    order = np.argsort(cell_of, kind="stable")
    first = np.unique(cell_of[order], return_index=True)[1]
    order = np.concatenate([order[first], np.delete(order, first)])

    repeated = cells.drop_columns("cell").take(cell_of[order])
    measured = pa.concat_tables([evaluations, none]).take(order).drop_columns("cell_id")
    columns = {name: table[name] for table in (repeated, measured) for name in table.column_names}
    empty = {name for name, column in columns.items() if column.null_count == len(order)}
    left_out = {name for family in FAMILIES if empty.issuperset(family) for name in family}
    rows = pa.table({name: columns[name] for name in columns if name not in left_out})

    texts = zip(cells["cell_id"].to_pylist(), cells["cell"].to_pylist(), strict=True)
    metadata = {_VERSION: str(SCHEMA_VERSION), **dict(texts)}
    several = len(cells) > 1
    sink = io.BytesIO()
    with pq.ParquetWriter(
        sink,
        rows.schema,
        compression="zstd",
        compression_level=None if several else 9,
        use_dictionary=several,
        store_schema=False,
        write_statistics=False,
    ) as writer:
        writer.add_key_value_metadata(metadata)
        for part in (rows[: len(cells)], rows[len(cells) :]) if several else (rows,):
            writer.write_table(part, ROWS_A_GROUP)
    return sink.getvalue()


def name_of(cell_id: str, data: bytes) -> str:
    """The name of a file of one cell, or of many if `cell_id` is `MERGED`."""
    return f"{cell_id}-{hashlib.sha256(data).hexdigest()[:16]}.parquet"


def opened(name: str, path: Path, checked: bool = False) -> pq.ParquetFile:
    """Opens a file whose bytes are those that were written.

    Args:
        name: in the results directory, for messages.
        path: on this machine.
        checked: its bytes are known to be those that were written.

    Raises:
        FileNotFoundError: there is no such file.
        Damaged: it is cut, changed or foreign.
        ResultsError: an earlier or later version of the project wrote it.
    """
    if _EARLIER.search(name):
        raise ResultsError(_OTHER_VERSION.format(name))
    found = _NAME.search(name)
    if not found:
        raise Damaged("it was not written by this platform")
    if not checked and found["digest"] != _digest(path):
        raise Damaged("its bytes are not those that were written")
    file = pq.ParquetFile(path, read_dictionary=["cell_id"])
    if file.metadata.metadata.get(_VERSION.encode()) != str(SCHEMA_VERSION).encode():
        raise ResultsError(_OTHER_VERSION.format(name))
    return file


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def cells_in(
    file: pq.ParquetFile, cell_ids: pa.Array | None = None, columns: Iterable[str] | None = None
) -> pa.Table:
    """One row a cell, of some or all cells, with some or all columns of `CELLS_SCHEMA`."""
    schema = selected(CELLS_SCHEMA, columns)
    rows = _of_cells(file.read_row_group(0, _there(file, schema)), cell_ids)
    rows = rows.take(np.sort(np.unique(rows["cell_id"].to_numpy(), return_index=True)[1]))
    if "cell" in schema.names:
        texts = file.metadata.metadata
        cells = [texts[cell_id.encode()] for cell_id in rows["cell_id"].to_pylist()]
        rows = rows.append_column("cell", pa.array(cells, pa.binary()).cast(pa.string()))
    return _completed(rows, schema)


def evaluations_in(
    file: pq.ParquetFile, cell_ids: pa.Array | None = None, columns: Iterable[str] | None = None
) -> pa.Table:
    """The evaluations of some or all cells, with some or all columns of `EVALUATIONS_SCHEMA`."""
    schema = selected(EVALUATIONS_SCHEMA, columns)
    groups = np.arange(file.num_row_groups)
    if len(groups) > 1 and cell_ids is not None:  # most groups have none of a few cells
        wanted = np.flatnonzero(pc.is_in(file.read(["cell_id"])["cell_id"], cell_ids))
        ends = np.cumsum([file.metadata.row_group(n).num_rows for n in groups])
        groups = np.unique(np.searchsorted(ends, wanted, side="right"))
    rows = _of_cells(file.read_row_groups(groups, _there(file, schema)), cell_ids)
    return _completed(rows.filter(rows["split"].is_valid()), schema)


def _there(file: pq.ParquetFile, schema: pa.Schema) -> list[str]:
    """The columns to read: a file lacks what none of its cells has."""
    return [n for n in file.schema_arrow.names if n in {*schema.names, "cell_id", "split"}]


def _of_cells(rows: pa.Table, cell_ids: pa.Array | None) -> pa.Table:
    return rows if cell_ids is None else rows.filter(pc.is_in(rows["cell_id"], cell_ids))


def _completed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema, missing ones empty."""
    none = {name: pa.nulls(len(rows), schema.field(name).type) for name in schema.names}
    there = {name: rows[name] for name in rows.column_names if name in none}
    return pa.table(none | there).cast(schema)
