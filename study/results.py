"""The results directory: its Parquet schema, the writer and the reader.

This module is the only door between `study` and `analysis`. A results directory (a local path or
any fsspec URL) holds

    cells/<cell_id>.parquet        one row: the cell, how it ended, where it ran
    evaluations/<cell_id>.parquet  one row an evaluation and split

A file is written whole, evaluations first, so a reader never sees half a cell. Files may have any
other name, lie in folders and hold many cells (`study.compact` makes such): one rule covers all,
a row in `cells/NAME` counts while `evaluations/NAME` holds its evaluations. So directories are
merged by copying: `cp -r other/cells results/cells/other && cp -r other/evaluations
results/evaluations/other`.

The evaluations of a done cell are one a point of the cell and split, those of others some of
these. `evaluations/NAME` with less, or with rows of a cell that `cells/NAME` has not, is damaged,
and so is a file that is named like a cell and holds others only.

Copies of a cell that are equal are one; others are a contradiction, which names both files. A
censored copy gives way to one that went on. A cell's two rows are always taken from one pair of
files: from those under its own name, else from the first by name.

Many studies may share a directory, one at a time.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from study.copies import (
    IDENTITY,
    KEY,
    OWN_NAME,
    copies_of,
    faults_of,
    own_file,
    own_id,
    refuse_different_cells,
    refuse_different_evaluations,
    taken_files,
)
from study.copies import Damage as Damage
from study.metrics import HEATMAP_EDGES as HEATMAP_EDGES
from study.schema import CELLS_SCHEMA as CELLS_SCHEMA
from study.schema import EVALUATIONS_SCHEMA as EVALUATIONS_SCHEMA
from study.schema import METRICS as METRICS
from study.schema import SCHEMA_VERSION, SCHEMAS, Table
from study.schema import SPLITS as SPLITS
from study.schema import cell_columns as cell_columns
from study.storage import ResultsError as ResultsError
from study.storage import Storage

_METADATA_KEY = b"attention_study_schema"

COMPACT_PREFIX = "compact-"
"""How the names of the files begin that `study.compact` writes."""

_FOLDERS = (*SCHEMAS, "checkpoints", "forks")
_ROWS_A_GROUP = 10_000  # a reader of one cell skips the other groups of a compacted file
_REQUESTS = 16  # to an object store at a time; on a local disk, threads were measured not to help

T = TypeVar("T")


@dataclass(frozen=True)
class Survey:
    """What a results directory holds.

    Attributes:
        statuses: id -> done, diverged or censored of every complete cell.
        damaged: files that are truncated, foreign, links to nothing, or hold the rows of others.
    """

    statuses: Mapping[str, str]
    damaged: tuple[Damage, ...]


@dataclass(frozen=True)
class Merged:
    """Every complete cell once, as the reader takes it.

    Attributes:
        cells: rows of `CELLS_SCHEMA`, in the order of their ids.
        evaluations: rows of `EVALUATIONS_SCHEMA`, likewise.
        files: names, in both tables, of the files that hold them, from the last that the reader
            would take a cell from to the first.
        left_over: names in the directory of evaluations without their cells' rows, of cells that
            other files hold: what a killed compaction left.
    """

    cells: pa.Table
    evaluations: pa.Table
    files: list[str]
    left_over: list[str]


class Results:
    """One results directory.

    Args:
        url: local path or fsspec URL.

    Attributes:
        url: as given.
        storage: the files of the directory.

    Raises:
        ResultsError: no file system is known or installed for the URL.
    """

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.storage = Storage(url)
        self.url = self.storage.url

    def prepare(self) -> None:
        """Makes the directory, checks that it can be written, removes what killed writers left.

        For the one driver. While another one holds the lock, nothing is removed.

        Raises:
            ResultsError: it cannot be made or written.
        """
        for folder in _FOLDERS:
            self.storage.make(folder)
            self.storage.probe(folder)
            self.storage.sweep(folder)

    def lock(self) -> AbstractContextManager[None]:
        """Keeps other drivers out of a local directory; the lock ends with the process.

        Raises:
            ResultsError: another process holds it.
        """
        return self.storage.lock()

    def write_cell(
        self, cell: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]]
    ) -> None:
        """Records a finished cell: its row in `cells/` appears only when all else is in place.

        A cell that `has_cell` stays as it is, to the byte.

        Raises:
            ResultsError: it cannot be written.
        """
        cell_id = str(cell["cell_id"])
        if self.has_cell(cell_id):
            return
        # The row of a censored or incomplete cell must not count with the new evaluations.
        self.storage.remove(f"cells/{own_file(cell_id)}")
        self.write_table("evaluations", own_file(cell_id), _table("evaluations", evaluations))
        self.write_table("cells", own_file(cell_id), _table("cells", [cell]))

    def write_table(self, table: Table, file: str, rows: pa.Table) -> None:
        """Writes a file of a table.

        Raises:
            ResultsError: it cannot be written.
        """
        metadata = {_METADATA_KEY: str(SCHEMA_VERSION)}
        sink = io.BytesIO()
        pq.write_table(
            rows.replace_schema_metadata(metadata),
            sink,
            row_group_size=_ROWS_A_GROUP,
            write_page_checksum=True,
        )
        self.storage.write(f"{table}/{file}", sink.getvalue())

    def has_cell(self, cell_id: str) -> bool:
        """Whether a cell is complete under its own name, and not censored."""
        file = own_file(cell_id)
        try:
            rows = self._parsed("cells", file, columns=IDENTITY)
            evaluations = self._parsed("evaluations", file, columns=KEY)
        except (FileNotFoundError, _Damaged):
            return False
        if faults_of(file, rows, evaluations):
            return False
        status = rows.filter(pc.equal(rows["cell_id"], cell_id))["status"]
        return status.to_pylist() in (["done"], ["diverged"])

    def finished(self) -> set[str]:
        """Ids of the complete cells, none without a directory.

        Raises:
            ResultsError: a file in the directory is of another schema.
        """
        return set(self.survey().statuses)

    def survey(self) -> Survey:
        """Reads every file and says which cells are complete and which files are damaged.

        Raises:
            ResultsError: a file in the directory is of another schema.
        """
        return self._while_files_vanish(self._survey)

    def set_aside(self, damaged: Iterable[Damage]) -> list[str]:
        """Moves damaged files to the folder `damaged/`; their cells are then run again.

        Returns:
            Their new paths.

        Raises:
            ResultsError: one cannot be moved.
        """
        moved = []
        for each in damaged:
            with suppress(FileNotFoundError):  # someone else moved it
                moved.append(self.storage.move(each.name, f"damaged/{each.name}"))
        return [self.storage.path(name) for name in moved]

    def cells(self, cell_ids: Iterable[str] | None = None) -> pd.DataFrame:
        """One row a complete cell, of all or of those of `cell_ids`, in the order of their ids.

        Of the cells of `cell_ids` that have files of their own name, only those are read.

        Raises:
            ResultsError: no such directory, a file that is damaged or of another schema, or two
                files that hold different results of one cell.
        """
        cell_ids = None if cell_ids is None else set(cell_ids)

        def read() -> pa.Table:
            cells, _ = self._pairs(cell_ids, evaluations_columns=KEY)
            return _taken_cells(cells, self._checked_copies(cells))

        return self._while_files_vanish(read).to_pandas()

    def evaluations(self, cell_ids: Iterable[str] | None = None) -> pd.DataFrame:
        """One row a (cell, evaluation, split), of the cells that `cells` gives, in its order.

        Raises:
            ResultsError: as `cells`.
        """
        cell_ids = None if cell_ids is None else set(cell_ids)

        def read() -> pa.Table:
            cells, evaluations = self._pairs(cell_ids, cells_columns=IDENTITY)
            return self._taken_evaluations(evaluations, self._checked_copies(cells))

        return self._while_files_vanish(read).to_pandas()

    def merged(self) -> Merged:
        """Every complete cell once.

        Raises:
            ResultsError: as `cells`.
        """

        def read() -> Merged:
            cells, evaluations = self._pairs(None)
            copies = self._checked_copies(cells)
            own = set(copies.loc[copies["own"], "file"])
            files = sorted(set(copies["file"]), key=lambda file: (file not in own, file))
            cells = _taken_cells(cells, copies)
            evaluations = self._taken_evaluations(evaluations, copies)
            return Merged(cells, evaluations, files[::-1], self._left_over(cells))

        return self._while_files_vanish(read)

    def _while_files_vanish(self, read: Callable[[], T]) -> T:
        """Reads again, from the list of files on, when a compaction removed some meanwhile."""
        vanished = ""
        while True:
            try:
                return read()
            except FileNotFoundError as error:
                if str(error) == vanished:
                    raise ResultsError(
                        f"a file of {self.url} is listed, but not there ({error}). Remove it."
                    ) from error
                vanished = str(error)

    def _list(self) -> dict[Table, list[str]]:
        """Names of each table's files.

        Raises:
            FileNotFoundError: files were merged meanwhile, so that cells could be missing.
        """
        cells, evaluations, again = (
            [name.partition("/")[2] for name in self.storage.names(table, ".parquet")]
            for table in ("cells", "evaluations", "cells")
        )
        new = set(again) - set(cells)
        gone = sorted(set(cells) - set(again))
        gone += [file for file in new if os.path.basename(file).startswith(COMPACT_PREFIX)]
        if gone:
            raise FileNotFoundError(self.storage.path(f"cells/{gone[0]}"))
        return {"cells": cells, "evaluations": evaluations}

    def _files(self) -> list[str]:
        """Names of the files that both tables have."""
        listed = self._list()
        if not listed["cells"] and not self.storage.exists("cells"):
            raise ResultsError(
                f"{self.url} holds no results (it has no folder cells/). "
                "Run a study first, e.g. `python -m study.run digits --results DIR`."
            )
        return sorted(set(listed["cells"]) & set(listed["evaluations"]))

    def _survey(self) -> Survey:
        damaged: list[Damage] = []

        def look(table: Table, columns: list[str], files: list[str]) -> dict[str, pa.Table]:
            def look_at(file: str) -> pa.Table | Damage:
                try:
                    return self._parsed(table, file).select(columns)
                except _Damaged as error:
                    return Damage(f"{table}/{file}", str(error))

            found = dict(zip(files, self._each(look_at, files), strict=True))
            damaged.extend(each for each in found.values() if isinstance(each, Damage))
            return {file: each for file, each in found.items() if isinstance(each, pa.Table)}

        listed = self._list()
        # Evaluations last, as they are written first: those of a row that is there are there.
        cells = look("cells", IDENTITY, listed["cells"])
        evaluations = look("evaluations", KEY, listed["evaluations"])
        complete = {}
        for file in sorted({*cells, *evaluations}):
            faults = faults_of(file, cells.get(file), evaluations.get(file))
            damaged.extend(faults)
            if file in cells and file in evaluations and not faults:
                complete[file] = cells[file]
        copies = copies_of(_joined(complete, _selected("cells", IDENTITY)))
        taken = copies[copies["taken"]]
        statuses = dict(zip(taken["cell_id"], taken["status"], strict=True))
        return Survey(statuses, tuple(sorted(damaged, key=lambda each: each.name)))

    def _pairs(
        self,
        cell_ids: set[str] | None,
        cells_columns: list[str] | None = None,
        evaluations_columns: list[str] | None = None,
    ) -> tuple[pa.Table, pa.Table]:
        """The rows of both tables, of all complete cells or of `cell_ids`, with their `file`."""
        files = self._files() if cell_ids is None else self._files_of(cell_ids)
        cells = self._read("cells", files, cell_ids, cells_columns)
        if cell_ids is not None:
            files = [file for file in files if len(cells[file])]
        # Evaluations last, as they are written first: those of a row that is there are there.
        evaluations = self._read("evaluations", files, cell_ids, evaluations_columns)
        for file in files:
            for damage in faults_of(file, cells[file], evaluations[file]):
                raise self._refusal(damage)
        return (
            _joined(
                {file: _of(cells[file], cell_ids) for file in files},
                _selected("cells", cells_columns),
            ),
            _joined(
                {file: _of(evaluations[file], cell_ids) for file in files},
                _selected("evaluations", evaluations_columns),
            ),
        )

    def _checked_copies(self, cells: pa.Table) -> pd.DataFrame:
        """What `copies_of` says, when none contradicts another."""
        copies = copies_of(cells)
        refuse_different_cells(copies, self.storage)
        return copies

    def _files_of(self, cell_ids: set[str]) -> list[str]:
        """Names of the files, in both tables, to look for some cells in."""
        missing = {cell_id for cell_id in cell_ids if not self.has_cell(cell_id)}
        own = {own_file(cell_id) for cell_id in cell_ids - missing}
        if not missing:
            return sorted(own)
        wanted = {own_file(cell_id) for cell_id in missing}
        files = [(file, os.path.basename(file)) for file in self._files()]
        # A file that is named like a cell holds that cell: others need not be opened.
        return sorted(
            own | {file for file, name in files if name in wanted or not OWN_NAME.match(name)}
        )

    def _taken_evaluations(self, rows: pa.Table, copies: pd.DataFrame) -> pa.Table:
        """The evaluations of the cells' rows that are taken."""
        frame = rows.select([*KEY, *METRICS, "file"]).to_pandas()
        refuse_different_evaluations(frame, copies, self.storage)
        file = frame["cell_id"].map(taken_files(copies)).to_numpy(object)
        taken = frame[frame["file"].to_numpy(object) == file].drop_duplicates(KEY)
        order = taken.sort_values("cell_id", kind="stable").index
        return rows.drop_columns("file").take(order.to_numpy())

    def _left_over(self, cells: pa.Table) -> list[str]:
        listed = self._list()
        alone = sorted(set(listed["evaluations"]) - set(listed["cells"]))
        parts = self._read("evaluations", alone, columns=["cell_id"])
        rows = _joined(parts, _selected("evaluations", ["cell_id"])).to_pandas()
        elsewhere = rows["cell_id"].isin(cells["cell_id"].to_pylist())
        needed = set(rows.loc[~elsewhere, "file"])
        return [f"evaluations/{file}" for file in alone if file not in needed]

    def _read(
        self,
        table: Table,
        files: list[str],
        cell_ids: set[str] | None = None,
        columns: list[str] | None = None,
    ) -> dict[str, pa.Table]:
        """File -> its rows, of all cells or of `cell_ids`; all of a file named like a cell."""

        def read(file: str) -> pa.Table:
            try:
                return self._parsed(table, file, None if own_id(file) else cell_ids, columns)
            except _Damaged as error:
                raise self._refusal(Damage(f"{table}/{file}", str(error))) from error

        return dict(zip(files, self._each(read, files), strict=True))

    def _refusal(self, damage: Damage) -> ResultsError:
        return ResultsError(
            f"{self.storage.path(damage.name)} is damaged ({damage.reason}). Run its study "
            "again, which sets it aside and runs its cells, or move it away."
        )

    def _each(self, read: Callable[[str], T], files: list[str]) -> list[T]:
        """`read` of each file."""
        if self.storage.local or len(files) < 2:
            return [read(file) for file in files]
        with ThreadPoolExecutor(_REQUESTS) as pool:
            return list(pool.map(read, files))

    def _parsed(
        self,
        table: Table,
        file: str,
        cell_ids: set[str] | None = None,
        columns: list[str] | None = None,
    ) -> pa.Table:
        """The rows of a file, of all cells or of `cell_ids`; all columns or some.

        Raises:
            FileNotFoundError: it is not there.
            ResultsError: it is of another schema.
            _Damaged: it is truncated or foreign, or a link to nothing.
        """
        name = f"{table}/{file}"
        schema = _selected(table, columns)
        try:
            data = pa.BufferReader(self.storage.read(name))
        except (FileNotFoundError, ResultsError) as error:
            if self.storage.is_broken_link(name):
                raise _Damaged("it is a link to nothing") from error
            raise
        how = {"columns": schema.names, "use_threads": False}
        try:
            opened = pq.ParquetFile(data, page_checksum_verification=True)
            _check_version(self.storage.path(name), opened.schema_arrow)
            if cell_ids is None or opened.metadata.num_row_groups <= 1:
                rows = opened.read(**how)
            else:
                wanted = [("cell_id", "in", cell_ids)]
                rows = pq.read_table(data, filters=wanted, page_checksum_verification=True, **how)
            rows = rows.select(schema.names).replace_schema_metadata()
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise _Damaged(" ".join(str(error).split())) from error
        if rows.schema != schema:
            raise _Damaged(_FOREIGN)
        return _of(rows, cell_ids)


class _Damaged(Exception):
    """A file that is no result in itself; the message is the reason."""


_FOREIGN = "it was not written by this platform"


def _of(rows: pa.Table, cell_ids: set[str] | None) -> pa.Table:
    """The rows of some cells, None: of all."""
    if cell_ids is None:
        return rows
    return rows.filter(pc.is_in(rows["cell_id"], pa.array(cell_ids, pa.string())))


def _taken_cells(rows: pa.Table, copies: pd.DataFrame) -> pa.Table:
    """The cells' rows that are taken."""
    return rows.drop_columns("file").take(copies.index[copies["taken"]].to_numpy())


def _table(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], SCHEMAS[table])


def _selected(table: Table, columns: list[str] | None) -> pa.Schema:
    schema = SCHEMAS[table]
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


def _check_version(path: str, schema: pa.Schema) -> None:
    version = (schema.metadata or {}).get(_METADATA_KEY)
    if version is None:
        raise _Damaged(_FOREIGN)
    if version != str(SCHEMA_VERSION).encode():
        raise ResultsError(
            f"{path} has results schema {version.decode()}, this version reads schema "
            f"{SCHEMA_VERSION}. Move the directory away, or choose another with --results DIR."
        )


def _joined(parts: Mapping[str, pa.Table], schema: pa.Schema) -> pa.Table:
    """Tables of a schema one below the other, and the `file` that each row is from."""
    rows = pa.concat_tables([schema.empty_table(), *parts.values()]).combine_chunks()
    lengths = [len(part) for part in parts.values()]
    files = np.repeat(np.array(list(parts), dtype=object), np.array(lengths, dtype=int))
    return rows.append_column("file", pa.array(files, pa.string()))
