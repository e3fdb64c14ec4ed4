"""Writes Parquet files of a results directory, and reads them in parts.

Files have digests, and their pages checksums. A file without the columns and the version of the
schema is damaged.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from study.results import digest
from study.results.coverage import own_id
from study.results.schema import NEW_COLUMNS, OLDEST_READABLE, SCHEMA_VERSION, SCHEMAS, Table
from study.storage.storage import ResultsError, Storage

DICTIONARIES = ("cell_id", "split")
"""Columns that `Results.scan` gives as dictionaries."""
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())

# Larger groups are faster to read whole; smaller ones let a reader of few cells skip more.
ROWS_A_GROUP = 30_000
VALUES_A_PART = 8_000_000  # 64 MB as float64

_METADATA_KEY = b"attention_study_schema"

_FOREIGN = "it was not written by this platform"


class Damaged(Exception):
    """A damaged file; the message is the reason."""


def write(storage: Storage, table: Table, file: str, rows: pa.Table) -> None:
    """Writes a file of a table.

    Raises:
        ResultsError: it cannot be written.
    """
    metadata = {_METADATA_KEY: str(SCHEMA_VERSION), digest.KEY: digest.BLANK}
    sink = io.BytesIO()
    pq.write_table(
        rows.replace_schema_metadata(metadata),
        sink,
        row_group_size=ROWS_A_GROUP,
        write_page_checksum=True,
    )
    storage.write(f"{table}/{file}", digest.with_digest(sink.getvalue()))


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
        Damaged: it is truncated or foreign, or a broken link.
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
        ResultsError: it cannot be read.
        Damaged: it is not.
    """
    if own_id(file):
        return
    name = f"{table}/{file}"
    data = _whole(storage, name)
    try:
        _require_whole(data, pq.ParquetFile(pa.BufferReader(data)))
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
    data = _whole(storage, name) if own_id(file) else None
    source = _opened(storage, name) if data is None else pa.BufferReader(data)
    with contextlib.closing(source):
        try:
            opened = pq.ParquetFile(
                source,
                read_dictionary=[each for each in dictionaries if each in schema.names],
                page_checksum_verification=True,
            )
            if data is not None:
                _require_whole(data, opened)
            written = opened.schema_arrow
            version = _version(storage.path(name), written)
            absent = {name for name, since in NEW_COLUMNS[table].items() if since > version}
            there = pa.schema([field for field in schema if field.name not in absent])
            if not written.equals(SCHEMAS[table]) and (
                lacks := _lacks(written, there, dictionaries)
            ):
                raise Damaged(f"it has no column {lacks} as this platform writes it")
            found = _groups_of(opened, cell_ids)
            if most_values < math.inf:  # counting takes a fifth of a small file's time
                batches = _together(opened, found, there.names, most_values)
            else:
                batches = filter(None, [list(found)])
            for groups in batches:
                rows = opened.read_row_groups(groups, there.names, use_threads=not own_id(file))
                yield of_cells(_completed(rows.replace_schema_metadata(), schema), cell_ids)
        except FileNotFoundError:  # removed from an object store meanwhile
            raise
        except KeyError as error:  # no such column
            raise Damaged(_FOREIGN) from error
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Damaged(" ".join(str(error).split())) from error


def _whole(storage: Storage, name: str) -> bytes:
    with _links(storage, name):
        return storage.read(name)


def _opened(storage: Storage, name: str) -> Any:
    with _links(storage, name):
        return storage.open(name)


@contextlib.contextmanager
def _links(storage: Storage, name: str) -> Iterator[None]:
    """Takes a link to nothing for damage."""
    try:
        yield
    except (FileNotFoundError, ResultsError) as error:
        if storage.is_broken_link(name):
            raise Damaged("it is a link to nothing") from error
        raise


def _require_whole(data: bytes, opened: pq.ParquetFile) -> None:
    """Checks the digest of a file; older ones have none.

    Raises:
        Damaged: it is another one.
    """
    held = (opened.metadata.metadata or {}).get(digest.KEY)
    if held is not None and not digest.is_whole(data, held):
        raise Damaged("its bytes are not those that were written")


def _lacks(schema: pa.Schema, wanted: pa.Schema, dictionaries: Sequence[str]) -> str:
    """The first wanted column that a file lacks or has with another type; empty if none."""
    for field in wanted:
        kind = _DICTIONARY if field.name in dictionaries else field.type
        there = schema.field(field.name) if field.name in schema.names else None
        if there is None or there.type != kind or not there.nullable:
            return field.name
    return ""


def _completed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of a schema; columns that they lack are missing values."""
    names = rows.column_names
    if names == schema.names:  # skips a select, which would take most of a small file's time
        return rows
    for field in schema:
        if field.name not in names:
            rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    return rows.select(schema.names)


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


def _version(path: str, schema: pa.Schema) -> int:
    """The schema version of a file.

    Raises:
        Damaged: this platform did not write it.
        ResultsError: the version cannot be read.
    """
    version = (schema.metadata or {}).get(_METADATA_KEY, b"").decode()
    if not version.isdecimal():
        raise Damaged(_FOREIGN)
    if not OLDEST_READABLE <= int(version) <= SCHEMA_VERSION:
        raise ResultsError(
            f"{path} has results schema {version}, this version reads schemas {OLDEST_READABLE} "
            f"to {SCHEMA_VERSION}. Move the directory away, or choose another with --results DIR."
        )
    return int(version)
