"""Reads the two tables of a results directory in parts, each cell once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from study.results import parquet
from study.results.cell_copies import (
    copies_of,
    refuse_different_cells,
    refuse_different_evaluations,
    taken_files,
)
from study.results.coverage import (
    IDENTITY,
    KEY,
    Coverage,
    Damage,
    fault_of,
    is_own,
    own_file,
)
from study.results.listing import listed, of_each, while_files_vanish
from study.results.parquet import DICTIONARIES
from study.results.schema import CELLS_SCHEMA, METRICS, Table
from study.storage.storage import ResultsError, Storage
from study.terminal.working import Part, working

_SMALL_FILES = 1_000
"""Files of one cell each that are read and passed on as one part."""

T = TypeVar("T")


class Reader:
    """Reads the complete cells of a results directory, and their evaluations.

    Args:
        storage: the files of the directory.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def scan(
        self,
        consume: Callable[[pa.Table, pd.DataFrame, Iterator[pa.Table]], T],
        columns: Iterable[str],
        cell_ids: Iterable[str] | None = None,
        cell_columns: Sequence[str] | None = None,
    ) -> T:
        """Reads like `Results.scan`, and also gives `consume` the table of `copies_of`."""
        ids = None if cell_ids is None else set(cell_ids)
        names = parquet.selected("evaluations", columns).names
        cell_columns = CELLS_SCHEMA.names if cell_columns is None else list(cell_columns)
        read_columns = parquet.selected("cells", {*cell_columns, *IDENTITY}).names

        def read() -> T:
            files = self._files() if ids is None else self._files_of(ids, part)
            part.total = part.done + 2 * len(files)  # of cells, then of evaluations
            held = self.rows("cells", files, part, ids, read_columns)
            files = [file for file in files if ids is None or len(held[file])]
            cells = joined(
                {file: parquet.of_cells(held[file], ids) for file in files},
                parquet.selected("cells", read_columns),
            )
            copies = copies_of(cells)
            refuse_different_cells(cells, copies, self._storage)
            parts = self._parts_of({file: held[file] for file in files}, copies, part, ids, names)
            taken = copies.index[copies["taken"]].to_numpy()
            return consume(cells.select(cell_columns).take(taken), copies, parts)

        with working("reading results", unit="files") as part:
            return while_files_vanish(self._storage, read)

    def status(self, cell_id: str) -> str | None:
        file = own_file(cell_id)
        try:
            rows = parquet.read(self._storage, "cells", file, columns=IDENTITY)
            evaluations = parquet.read(self._storage, "evaluations", file, columns=["cell_id"])
        except (FileNotFoundError, parquet.Damaged):
            return None
        if not rows or fault_of(file, rows, [evaluations]):
            return None
        return rows["status"][0].as_py()

    def has_cell(self, cell_id: str) -> bool:
        return self.status(cell_id) in ("done", "diverged")

    def rows(
        self,
        table: Table,
        files: Sequence[str],
        part: Part,
        cell_ids: set[str] | None = None,
        columns: list[str] | None = None,
    ) -> dict[str, pa.Table]:
        """The rows of a table by file.

        Args:
            table, files: which.
            part: of the command's work, told of each file.
            cell_ids: only these cells, except that files named like a cell are read whole.
            columns: to read; None: all.

        Raises:
            FileNotFoundError: a file is not there.
            ResultsError: a file is damaged or of another schema.
        """

        def read(file: str) -> pa.Table:
            try:
                return parquet.read(
                    self._storage, table, file, None if is_own(file) else cell_ids, columns
                )
            except parquet.Damaged as error:
                raise self._refusal(Damage(f"{table}/{file}", str(error))) from error

        return of_each(self._storage, read, files, part)

    def _refusal(self, damage: Damage) -> ResultsError:
        return ResultsError(
            f"{self._storage.path(damage.name)} is damaged ({damage.reason}). Run its study "
            "again, which sets it aside and runs its cells, or move it away."
        )

    def _parts_of(
        self,
        held: Mapping[str, pa.Table],
        copies: pd.DataFrame,
        part: Part,
        cell_ids: set[str] | None,
        columns: list[str],
    ) -> Iterator[pa.Table]:
        """The evaluations of the cells, each once, from the files that `copies` takes.

        Args:
            held: file -> its rows of cells; the file of evaluations has the same name.
            copies: as `copies_of` gives them.
            part: of the command's work, told of each file.
            cell_ids: only these cells; None: all.
            columns: of the parts.

        Raises:
            ResultsError: after the last part: files are damaged, or copies differ.
        """
        taken = taken_files(copies)
        if cell_ids is not None:
            taken = {cell_id: taken[cell_id] for cell_id in cell_ids & taken.keys()}
        read_columns = parquet.selected("evaluations", {*columns, "cell_id"}).names

        def taken_rows(file: str, coverage: Coverage, rows: pa.Table) -> pa.Table:
            mine = np.array([taken.get(i) == file for i in coverage.cell_ids] + [False])
            kept = mine[coverage.add(rows)]
            return (rows if kept.all() else rows.filter(pa.array(kept))).select(columns)

        def refuse(coverage: Coverage) -> None:
            if damage := coverage.fault():
                raise self._refusal(damage)

        small = [file for file in held if is_own(file)]
        for start in range(0, len(small), _SMALL_FILES):
            some = small[start : start + _SMALL_FILES]
            parts = []
            for file, rows in self.rows("evaluations", some, part, cell_ids, read_columns).items():
                coverage = Coverage(file, held[file])
                parts.append(taken_rows(file, coverage, rows))
                refuse(coverage)
            yield _with_dictionaries(pa.concat_tables(parts))
        for file in held:
            if file not in small:
                coverage = Coverage(file, held[file])
                try:
                    for rows in parquet.read_parts(self._storage, file, cell_ids, read_columns):
                        yield _with_dictionaries(taken_rows(file, coverage, rows))
                except parquet.Damaged as error:
                    raise self._refusal(Damage(f"evaluations/{file}", str(error))) from error
                refuse(coverage)
                part.step()
        self._refuse_different_copies(copies, part)

    def _refuse_different_copies(self, copies: pd.DataFrame, part: Part) -> None:
        several = set(copies.loc[~copies["taken"] & ~copies["gives_way"], "cell_id"])
        if several:
            files = sorted(set(copies.loc[copies["cell_id"].isin(several), "file"]))
            columns = parquet.selected("evaluations", {*KEY, *METRICS}).names
            rows = self.rows("evaluations", files, part, several, columns)
            frame = joined(rows, parquet.selected("evaluations", columns)).to_pandas()
            refuse_different_evaluations(frame, copies, self._storage)

    def _files(self) -> list[str]:
        """The file names that both tables have.

        Raises:
            ResultsError: there is no results directory.
        """
        files = listed(self._storage)
        if not files["cells"] and not self._storage.exists("cells"):
            raise ResultsError(
                f"{self._storage.url} holds no results (it has no folder cells/). "
                "Run a study first, e.g. `python -m study.run digits --results DIR`."
            )
        return sorted(set(files["cells"]) & set(files["evaluations"]))

    def _files_of(self, cell_ids: set[str], part: Part) -> list[str]:
        """The files that may hold some cells: only those of their own name if these suffice."""
        there = of_each(self._storage, self.has_cell, sorted(cell_ids), part)
        missing = {cell_id for cell_id in cell_ids if not there[cell_id]}
        own = {own_file(cell_id) for cell_id in cell_ids - missing}
        return sorted(own | _may_hold(missing, self._files())) if missing else sorted(own)


def _may_hold(cell_ids: set[str], files: Iterable[str]) -> set[str]:
    """The files that may hold some cells."""
    wanted = {own_file(cell_id) for cell_id in cell_ids}
    return {file for file in files if os.path.basename(file) in wanted or not is_own(file)}


def _with_dictionaries(rows: pa.Table) -> pa.Table:
    for name in DICTIONARIES:
        if name in rows.column_names and not pa.types.is_dictionary(rows[name].type):
            at = rows.column_names.index(name)
            rows = rows.set_column(at, name, rows[name].dictionary_encode())
    return rows


def in_order(
    parts: Iterator[pa.Table], schema: pa.Schema, cell_ids: Sequence[str] | None = None
) -> pa.Table:
    """Joins parts into one table, cell after cell, in the order of `cell_ids` or of the ids.

    The rows of a cell keep their order.
    """
    rows = pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])
    ids = rows["cell_id"].to_numpy()
    if cell_ids is not None:
        rank = {cell_id: number for number, cell_id in enumerate(cell_ids)}
        ids = np.array([rank[cell_id] for cell_id in ids], np.int64)
    return rows.take(np.argsort(ids, kind="stable"))


def joined(parts: Mapping[str, pa.Table], schema: pa.Schema) -> pa.Table:
    """Joins tables of one schema, with a further column `file`: where each row is from.

    Args:
        parts: file -> its rows.
        schema: of the rows.
    """
    rows = pa.concat_tables([schema.empty_table(), *parts.values()])
    lengths = [len(part) for part in parts.values()]
    files = np.repeat(np.array(list(parts), dtype=object), np.array(lengths, dtype=int))
    return rows.append_column("file", pa.array(files, pa.string()))
