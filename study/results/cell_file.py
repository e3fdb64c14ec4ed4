"""One Parquet file of cells: what its bytes are, and how they are checked and read.

It has one row an (evaluation, split), with the columns of the cell repeated; a cell without any
evaluation has one row whose `split` is missing. Its first row group holds a row of every cell.
Its metadata hold the JSON of each cell, named by its id. Its name ends with a digest of its bytes,
so that a changed or half-copied file shows, wherever it is.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from study.errors import ResultsError
from study.results.columns import EVALUATIONS_SCHEMA, FAMILIES, ROWS_SCHEMA
from study.storage.hashed import hashed
from study.storage.stand_ins import refuse_stand_in

SCHEMA_VERSION = 11
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


def rows_of(cells: pa.Table, evaluations: pa.Table) -> pa.Table:
    """The rows of cells, one after another, with the columns of `ROWS_SCHEMA`.

    Args:
        cells: of `CELLS_SCHEMA`, each once.
        evaluations: of `EVALUATIONS_SCHEMA`, each of one of the cells; of a cell in their order.
    """
    cell_of = pc.index_in(evaluations["cell_id"], cells["cell_id"].combine_chunks()).to_numpy()
    without = np.setdiff1d(np.arange(len(cells)), cell_of)
    none = pa.Table.from_pylist([{}] * len(without), EVALUATIONS_SCHEMA)
    cell_of = np.concatenate([cell_of, without])
    order = np.argsort(cell_of, kind="stable")
    repeated = cells.drop_columns("cell").take(cell_of[order])  # its JSON is in the metadata
    measured = pa.concat_tables([evaluations, none]).take(order)
    both = {name: table[name] for table in (measured, repeated) for name in table.column_names}
    return pa.table(both).select(ROWS_SCHEMA.names)


def encoded(rows: pa.Table, texts: Mapping[str, str]) -> bytes:
    """The bytes of a file.

    Args:
        rows: of `ROWS_SCHEMA`, those of a cell one after another.
        texts: id -> JSON of each cell.
    """
    empty = {name for name in rows.column_names if rows[name].null_count == len(rows)}
    rows = rows.drop_columns([n for each in FAMILIES if empty.issuperset(each) for n in each])
    several = len(texts) > 1
    first = firsts(rows) if several else np.arange(len(rows))
    order = np.concatenate([first, np.delete(np.arange(len(rows)), first)])
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
        writer.add_key_value_metadata({_VERSION: str(SCHEMA_VERSION), **texts})
        for part in np.split(order, [len(first)]) if several else (order,):
            writer.write_table(rows.take(part), max(ROWS_A_GROUP, len(first)))
    return sink.getvalue()


def firsts(rows: pa.Table) -> NDArray[np.intp]:
    """Where each cell begins, of rows that are those of a cell one after another."""
    cell_of = pc.index_in(rows["cell_id"], pc.unique(rows["cell_id"])).to_numpy()
    return np.flatnonzero(np.diff(cell_of, prepend=-1))


def name_of(cell_id: str, data: bytes) -> str:
    """The name of a file of one cell, or of many if `cell_id` is `MERGED`."""
    return f"{cell_id}-{hashed(data)}.parquet"


def opened(name: str, path: Path) -> pq.ParquetFile:
    """Opens a file whose bytes are those that were written.

    What is checked is what is read: Parquet itself reads most changed bytes without an error.

    Args:
        name: in the results directory, for messages.
        path: on this machine.

    Raises:
        FileNotFoundError: there is no such file.
        Damaged: it is cut, changed or foreign.
        ResultsError: an earlier or later version of the project wrote it, or it is a pointer
            or no file.
    """
    if _EARLIER.search(name):
        raise ResultsError(_OTHER_VERSION.format(name))
    found = _NAME.search(name)
    if not found:
        raise Damaged("it was not written by this platform")
    refuse_stand_in(path, name)
    data = path.read_bytes()
    if found["digest"] != hashed(data):
        raise Damaged("its bytes are not those that were written")
    # Of a file of many cells, ids are read three times as fast so.
    file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=["cell_id"])
    if file.metadata.metadata.get(_VERSION.encode()) != str(SCHEMA_VERSION).encode():
        raise ResultsError(_OTHER_VERSION.format(name))
    return file


def rows_in(
    file: pq.ParquetFile,
    which: Literal["cells", "evaluations", "all"],
    cell_ids: pa.Array | None = None,
    columns: Collection[str] = ROWS_SCHEMA.names,
) -> pa.Table:
    """Rows of a file, without the columns that it lacks.

    Args:
        file: as `opened` gives it.
        which: one row of each cell; or its evaluations; or all, also of cells that have none.
        cell_ids: of these cells; None: of all.
        columns: of `ROWS_SCHEMA`, or `cell`; `cell_id` and `split` come with them.
    """
    groups = np.arange(1 if which == "cells" else file.num_row_groups)
    if len(groups) > 1 and cell_ids is not None:  # most groups have none of a few cells
        wanted = np.flatnonzero(pc.is_in(file.read(["cell_id"])["cell_id"], cell_ids))
        ends = np.cumsum([file.metadata.row_group(n).num_rows for n in groups])
        groups = np.unique(np.searchsorted(ends, wanted, side="right"))
    there = [n for n in file.schema_arrow.names if n in {*columns, "cell_id", "split"}]
    threads = len(groups) > 1  # of one group they take longer than they save
    rows = file.read_row_groups(groups, there, use_threads=threads)
    at = there.index("cell_id")
    rows = rows.set_column(at, "cell_id", rows["cell_id"].cast(pa.string()))
    rows = rows if cell_ids is None else rows.filter(pc.is_in(rows["cell_id"], cell_ids))
    if which == "cells":
        rows = rows.take(firsts(rows))
    if which == "evaluations":
        rows = rows.filter(rows["split"].is_valid())
    if "cell" in columns:
        texts = file.metadata.metadata
        cells = [texts[cell_id.encode()].decode() for cell_id in rows["cell_id"].to_pylist()]
        rows = rows.append_column("cell", pa.array(cells, pa.string()))
    return rows


def completed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema, missing ones empty."""
    none = {name: pa.nulls(len(rows), schema.field(name).type) for name in schema.names}
    there = {name: rows[name] for name in rows.column_names if name in none}
    return pa.table(none | there).cast(schema)
