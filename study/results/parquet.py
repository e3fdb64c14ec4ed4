"""Writes Parquet files of a results directory, and reads them in parts.

Files have the version of their schema and a digest, and their pages checksums.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from study.results.coverage import is_own
from study.results.schema import SCHEMA_VERSION, SCHEMAS, Table
from study.storage.storage import ResultsError, Storage

DICTIONARIES = ("cell_id", "split")
"""Columns that `Results.scan` gives as dictionaries."""

# Larger groups are faster to read whole; smaller ones let a reader of few cells skip more.
ROWS_A_GROUP = 30_000
VALUES_A_PART = 8_000_000  # 64 MB as float64

_SCHEMA = b"attention_study_schema"
_DIGEST = b"attention_study_sha256"
"""Of the whole file, kept in its own metadata, since checksums of pages do not cover their headers
nor the footer, where a flipped bit may change what is read, unseen."""

_BLANK = b"0" * 64
"""Stands for the digest while the file is written, and when it is digested."""


class Damaged(Exception):
    """A damaged file; the message is the reason."""


def write(storage: Storage, table: Table, file: str, rows: pa.Table) -> None:
    """Writes a file of a table.

    Raises:
        ResultsError: it cannot be written.
    """
    metadata = {_SCHEMA: str(SCHEMA_VERSION), _DIGEST: _BLANK}
    sink = io.BytesIO()
    pq.write_table(
        rows.replace_schema_metadata(metadata),
        sink,
        row_group_size=ROWS_A_GROUP,
        write_page_checksum=True,
    )
    data = sink.getvalue()
    storage.write(f"{table}/{file}", _replaced(data, _BLANK, _digest(data)))


def read(
    storage: Storage,
    table: Table,
    file: str,
    cell_ids: set[str] | None = None,
    columns: list[str] | None = None,
) -> pa.Table:
    """The rows of a file, of all cells or of `cell_ids`; all columns or some.

    Raises:
        FileNotFoundError: there is no such file.
        ResultsError: it is of another schema.
        Damaged: it is truncated or foreign.
    """
    schema = selected(table, columns)
    parts = list(_row_groups(storage, table, file, cell_ids, schema, math.inf))
    return parts[0] if parts else schema.empty_table()  # one part, or no row group has the cells


def verify(storage: Storage, table: Table, file: str) -> None:
    """Checks that every byte of a file of many cells is what was written.

    Reading a file of one cell checks it. Of one of many, only checksums are checked, of the pages
    that are read.

    Raises:
        FileNotFoundError: there is no such file.
        ResultsError: it cannot be read, or is of another schema.
        Damaged: it is not.
    """
    if is_own(file):
        return
    name = f"{table}/{file}"
    data = storage.read(name)
    try:
        _require_ours(storage.path(name), pq.ParquetFile(pa.BufferReader(data)), data)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Damaged(" ".join(str(error).split())) from error


def read_parts(
    storage: Storage, file: str, cell_ids: set[str] | None, columns: list[str]
) -> Iterator[pa.Table]:
    """The rows of a file of evaluations, in parts of about `VALUES_A_PART` values.

    Raises:
        As `read`, while the parts are taken.
    """
    schema = selected("evaluations", columns)
    yield from _one_ahead(
        _row_groups(storage, "evaluations", file, cell_ids, schema, VALUES_A_PART, DICTIONARIES)
    )


def _row_groups(
    storage: Storage,
    table: Table,
    file: str,
    cell_ids: set[str] | None,
    schema: pa.Schema,
    most_values: float,
    dictionaries: Sequence[str] = (),
) -> Iterator[pa.Table]:
    """The rows of a file in parts: whole row groups, at least one, else up to `most_values`.

    Args:
        table, file: which.
        cell_ids: only these cells; None: all.
        schema: the columns to read.
        most_values: in a part, those of lists included.
        dictionaries: columns to give as dictionaries.
    """
    name = f"{table}/{file}"
    # A file of one cell is read in one request; one of many may be larger than memory.
    data = storage.read(name) if is_own(file) else None
    source = storage.open(name) if data is None else pa.BufferReader(data)
    with contextlib.closing(source):
        try:
            opened = pq.ParquetFile(
                source,
                read_dictionary=[each for each in dictionaries if each in schema.names],
                page_checksum_verification=True,
            )
            _require_ours(storage.path(name), opened, data)
            found = _groups_of(opened, cell_ids)
            if most_values < math.inf:  # counting takes a fifth of a small file's time
                batches = _together(opened, found, schema.names, most_values)
            else:
                batches = filter(None, [list(found)])
            for groups in batches:
                rows = opened.read_row_groups(groups, schema.names, use_threads=not is_own(file))
                yield of_cells(rows.replace_schema_metadata(), cell_ids)
        except FileNotFoundError:  # removed from an object store meanwhile
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Damaged(" ".join(str(error).split())) from error


def _require_ours(path: str, opened: pq.ParquetFile, data: bytes | None) -> None:
    """Checks that a file is of today's schema, and its bytes, if given, by its digest.

    Raises:
        Damaged: this platform did not write it, or not these bytes.
        ResultsError: it is of another schema.
    """
    metadata = opened.metadata.metadata or {}
    version, held = metadata.get(_SCHEMA, b"").decode(errors="replace"), metadata.get(_DIGEST)
    if data is not None and held and held != _digest(_replaced(data, held, _BLANK)):
        raise Damaged("its bytes are not those that were written")
    if version and version != str(SCHEMA_VERSION):
        raise ResultsError(
            f"{path} has results schema {version}, this version reads schema {SCHEMA_VERSION}. "
            "Move the directory away, or choose another with --results DIR."
        )
    if not (version and held):
        raise Damaged("it was not written by this platform")


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _replaced(data: bytes, there: bytes, by: bytes) -> bytes:
    """The file with another digest; metadata are at its end."""
    before, _, after = data.rpartition(there)
    return before + by + after


def _groups_of(opened: pq.ParquetFile, cell_ids: set[str] | None) -> Iterator[int]:
    """Numbers of the row groups that hold some of the cells; None: all groups."""
    column = opened.metadata.schema.names.index("cell_id")
    for number in range(opened.num_row_groups):
        if cell_ids is not None:
            group = opened.metadata.row_group(number)
            range_ = group.column(column).statistics
            if range_ is not None and range_.has_min_max and range_.min == range_.max:
                if range_.min not in cell_ids:
                    continue
            elif cell_ids.isdisjoint(_ids_in(opened, number)):
                continue
        yield number


def _ids_in(opened: pq.ParquetFile, group: int) -> list[str | None]:
    """The ids of the cells in a row group."""
    return opened.read_row_group(group, ["cell_id"])["cell_id"].unique().to_pylist()


def _together(
    opened: pq.ParquetFile, groups: Iterator[int], columns: Sequence[str], most_values: float
) -> Iterator[list[int]]:
    """Batches of row groups with up to `most_values` in the columns, at least one group each."""
    places = [
        number
        for number in range(opened.metadata.num_columns)
        if opened.metadata.schema.column(number).path.partition(".")[0] in columns
    ]
    together: list[int] = []
    values = 0
    for number in groups:
        group = opened.metadata.row_group(number)
        count = sum(group.column(place).num_values for place in places)
        if together and values + count > most_values:
            yield together
            together, values = [], 0
        together.append(number)
        values += count
    if together:
        yield together


def _one_ahead(parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same parts, each read in a thread while the one before is used."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = thread.submit(next, parts, None)
            yield part


def of_cells(rows: pa.Table, cell_ids: set[str] | None) -> pa.Table:
    """The rows of some cells; None: all rows."""
    if cell_ids is None:
        return rows
    return rows.filter(pc.is_in(rows["cell_id"], pa.array(cell_ids, pa.string())))


def from_rows(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], SCHEMAS[table])


def selected(table: Table, columns: Iterable[str] | None) -> pa.Schema:
    """Some columns of a table, in its order."""
    schema = SCHEMAS[table]
    if columns is None:
        return schema
    wanted = set(columns)
    return pa.schema([field for field in schema if field.name in wanted])
