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

import hashlib
import os
import re
import socket
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from study.results import parquet
from study.results.copies import (
    copies_of,
    refuse_different_cells,
    refuse_different_evaluations,
    taken_files,
)
from study.results.coverage import (
    IDENTITY,
    KEY,
    OWN_NAME,
    Coverage,
    Damage,
    faults_of,
    own_file,
    own_id,
)
from study.results.parquet import DICTIONARIES
from study.results.schema import (
    CELLS_SCHEMA,
    EVALUATIONS_SCHEMA,
    METRICS,
    SCHEMAS,
    Table,
)
from study.storage.storage import ResultsError, Storage
from study.storage.urls import local_path

COMPACT_PREFIX = "compact-"
"""How the names of the files begin that `study.compact` writes."""

_MARK = ".driver"
_FOLDERS = (*SCHEMAS, "checkpoints", "forks")
_SMALL_FILES = 1_000
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
class Layout:
    """In which files the complete cells lie.

    Attributes:
        num_rows: id -> rows of evaluations of every complete cell. Cells that are compared are
            next to each other, and the seeds of an option, which are read together.
        only_file: id -> the name, in both tables, of the file that holds a cell, of those of
            which there is one copy.
        files: names, in both tables, of the files that hold them, from the last that the reader
            would take a cell from to the first.
        left_over: names in the directory of evaluations without their cells' rows, of cells that
            other files hold: what a killed compaction left.
    """

    num_rows: Mapping[str, int]
    only_file: Mapping[str, str]
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

    def databases(self) -> Path:
        """Folder of this machine where MLflow's and Optuna's databases lie.

        It is the results directory, or for one in an object store, which no database can work in,
        a folder of the working directory that is named after it, made where it is missing.

        Raises:
            ResultsError: it cannot be made.
        """
        path = local_path(self.url)
        if path is not None:
            return path.expanduser().resolve()
        url = self.url.rstrip("/")
        name = re.sub(r"[^\w.-]+", "-", url)  # of more than one URL
        digest = hashlib.sha256(url.encode()).hexdigest()[:8]
        folder = Path("databases", f"{name}-{digest}").resolve()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResultsError(
                f"{folder}, for the databases of {self.url}, cannot be made ({error.strerror}). "
                "Run the command in a directory that can be written."
            ) from error
        return folder

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

    def is_running(self) -> bool:
        """Whether a study runs with the directory now, as far as locks tell: not of a store."""
        return self.storage.is_locked()

    def mark(self) -> str:
        """Leaves a new mark in the directory, a fencing token.

        It tells the directory from others, and stops the trials of an earlier driver.

        For the one driver, before it lets others write.

        Returns:
            What `require_mark` takes.

        Raises:
            ResultsError: it cannot be written.
        """
        mark = uuid.uuid4().hex
        self.storage.write(_MARK, mark.encode())
        return mark

    def require_mark(self, mark: str) -> None:
        """Checks that this is the directory as the driver sees it, and still the driver's.

        Raises:
            ResultsError: it is not, or cannot be read.
        """
        try:
            there = self.storage.read(_MARK).decode(errors="replace")
        except FileNotFoundError:
            there = None
        if there == mark:
            return
        if there is None:
            raise ResultsError(
                f"{socket.gethostname()} does not see the results directory {self.url} of the "
                "command. Where it was lost, bring the directory back: the same command goes on. "
                "On a cluster it has to be on a file system that all nodes share, or at a URL as "
                "s3://bucket/results."
            )
        raise ResultsError(
            f"{socket.gethostname()} sees another results directory at {self.url} than the "
            "command, or another command runs with it now. On a cluster it has to be on a file "
            "system that all nodes share, or at a URL as s3://bucket/results; and one command at "
            "a time runs with it."
        )

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
        self.write_table(
            "evaluations", own_file(cell_id), parquet.from_rows("evaluations", evaluations)
        )
        self.write_table("cells", own_file(cell_id), parquet.from_rows("cells", [cell]))

    def write_table(self, table: Table, file: str, rows: pa.Table) -> None:
        """Writes a file of a table.

        Raises:
            ResultsError: it cannot be written.
        """
        parquet.write(self.storage, table, file, rows)

    def has_cell(self, cell_id: str) -> bool:
        """Whether a cell is complete under its own name, and not censored."""
        return self.status(cell_id) in ("done", "diverged")

    def status(self, cell_id: str) -> str | None:
        """How a cell ended that is complete under its own name, None where none is.

        Reads two files and lists none, however many there are.
        """
        file = own_file(cell_id)
        try:
            rows = parquet.read(self.storage, "cells", file, columns=IDENTITY)
            evaluations = parquet.read(self.storage, "evaluations", file, columns=KEY)
        except (FileNotFoundError, parquet.Damaged):
            return None
        if faults_of(file, rows, [evaluations]):
            return None
        found = rows.filter(pc.equal(rows["cell_id"], cell_id))["status"].to_pylist()
        return found[0] if len(found) == 1 else None

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

    def cells(
        self, cell_ids: Iterable[str] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """One row a complete cell, of all or of those of `cell_ids`, in the order of their ids.

        Of the cells of `cell_ids` that have files of their own name, only those are read.

        Args:
            cell_ids: keep these only; ids without a result are ignored.
            columns: of `CELLS_SCHEMA`, None: all.

        Raises:
            ResultsError: no such directory, a file that is damaged or of another schema, or two
                files that hold different results of one cell.
        """

        def exhaust(cells: pa.Table, parts: Iterator[pa.Table]) -> pa.Table:
            for _ in parts:
                pass
            return cells

        return self.scan(exhaust, KEY, cell_ids, columns).to_pandas()

    def evaluations(
        self, cell_ids: Iterable[str] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """One row a (cell, evaluation, split), of the cells that `cells` gives, in its order.

        Args:
            cell_ids: of these cells only.
            columns: of `EVALUATIONS_SCHEMA`, None: all.

        Raises:
            ResultsError: as `cells`.
        """
        columns = EVALUATIONS_SCHEMA.names if columns is None else list(columns)

        schema = parquet.selected("evaluations", {*columns, "cell_id"})

        def join(_: pa.Table, parts: Iterator[pa.Table]) -> pa.Table:
            return _in_order(parts, schema).select(columns)

        return self.scan(join, schema.names, cell_ids, ["cell_id"]).to_pandas()

    def scan(
        self,
        consume: Callable[[pa.Table, Iterator[pa.Table]], T],
        columns: Iterable[str],
        cell_ids: Iterable[str] | None = None,
        cell_columns: Sequence[str] | None = None,
    ) -> T:
        """Reads the evaluations part by part: all at once they may be larger than memory.

        Args:
            consume: called with the rows of the complete cells, in the order of their ids, and
                with the parts of their evaluations: tables with `columns`, in which `cell_id`
                and `split` are dictionaries. It has to take them all, since the last tells
                whether the files are whole. It is called again where a compaction removed files
                meanwhile.
            columns: of `EVALUATIONS_SCHEMA`.
            cell_ids: of these cells only.
            cell_columns: of `CELLS_SCHEMA`, None: all.

        Returns:
            What `consume` returned.

        Raises:
            ResultsError: as `cells`.
        """
        return self._scan(
            lambda cells, _, parts: consume(cells, parts), columns, cell_ids, cell_columns
        )

    def tables(self, cell_ids: Sequence[str] | None = None) -> tuple[pa.Table, pa.Table]:
        """The rows of `cells` and of `evaluations`, of `cell_ids` in their order, or of all by id.

        Raises:
            ResultsError: as `cells`.
        """
        return self.scan(
            lambda cells, parts: (
                _in_order(iter([cells]), CELLS_SCHEMA, cell_ids),
                _in_order(parts, EVALUATIONS_SCHEMA, cell_ids),
            ),
            EVALUATIONS_SCHEMA.names,
            cell_ids,
        )

    def layout(self) -> Layout:
        """Where every complete cell lies.

        Raises:
            ResultsError: as `cells`.
        """

        def look(cells: pa.Table, copies: pd.DataFrame, parts: Iterator[pa.Table]) -> Layout:
            own = set(copies.loc[copies["own"], "file"])
            files = sorted(set(copies["file"]), key=lambda file: (file not in own, file))
            counts: Counter[str] = Counter()
            for part in parts:
                for count in part["cell_id"].value_counts().to_pylist():
                    counts[count["values"]] += count["counts"]
            ordered = cells.sort_by([(name, "ascending") for name in together])
            num_rows = {cell_id: counts[cell_id] for cell_id in ordered["cell_id"].to_pylist()}
            single = copies[~copies.duplicated("cell_id", keep=False)]
            only_file = dict(zip(single["cell_id"], single["file"], strict=True))
            return Layout(num_rows, only_file, files[::-1], self._left_over(cells))

        together = ["comparison_id", "paradigm", "schedule", "seed", "cell_id"]
        return self._scan(look, ["cell_id"], cell_columns=together)

    def _scan(
        self,
        consume: Callable[[pa.Table, pd.DataFrame, Iterator[pa.Table]], T],
        columns: Iterable[str],
        cell_ids: Iterable[str] | None = None,
        cell_columns: Sequence[str] | None = None,
    ) -> T:
        """`scan`, which also tells what `copies_of` says."""
        ids = None if cell_ids is None else set(cell_ids)
        names = parquet.selected("evaluations", columns).names
        cell_columns = CELLS_SCHEMA.names if cell_columns is None else list(cell_columns)
        read_columns = parquet.selected("cells", {*cell_columns, *IDENTITY}).names

        def read() -> T:
            files = self._files() if ids is None else self._files_of(ids)
            held = self._read("cells", files, ids, read_columns)
            files = [file for file in files if ids is None or len(held[file])]
            cells = _joined(
                {file: parquet.of_cells(held[file], ids) for file in files},
                parquet.selected("cells", read_columns),
            )
            copies = copies_of(cells)
            refuse_different_cells(cells, copies, self.storage)
            parts = self._parts_of({file: held[file] for file in files}, copies, ids, names)
            taken = copies.index[copies["taken"]].to_numpy()
            return consume(cells.select(cell_columns).take(taken), copies, parts)

        return self._while_files_vanish(read)

    def _parts_of(
        self,
        held: Mapping[str, pa.Table],
        copies: pd.DataFrame,
        cell_ids: set[str] | None,
        columns: list[str],
    ) -> Iterator[pa.Table]:
        """The evaluations of the cells' rows that are taken, each once.

        Args:
            held: file -> its rows of cells; they are in the same file of evaluations.
            copies: as `copies_of` gives them.
            cell_ids: of these cells only.
            columns: to be given.
        """
        taken = taken_files(copies)
        if cell_ids is not None:
            taken = {cell_id: taken[cell_id] for cell_id in cell_ids & taken.keys()}
        read_columns = parquet.selected("evaluations", {*columns, *KEY}).names

        def taken_rows(file: str, coverage: Coverage, rows: pa.Table) -> pa.Table:
            mine = np.array([taken.get(i) == file for i in coverage.cell_ids] + [False])
            kept = mine[coverage.add(rows)]
            return (rows if kept.all() else rows.filter(pa.array(kept))).select(columns)

        def refuse(coverage: Coverage) -> None:
            for damage in coverage.faults():
                raise self._refusal(damage)

        small = [file for file in held if own_id(file)]
        for start in range(0, len(small), _SMALL_FILES):
            some = small[start : start + _SMALL_FILES]
            parts = []
            for file, rows in self._read("evaluations", some, cell_ids, read_columns).items():
                coverage = Coverage(file, held[file])
                parts.append(taken_rows(file, coverage, rows))
                refuse(coverage)
            yield _with_dictionaries(pa.concat_tables(parts))
        for file in held:
            if file not in small:
                coverage = Coverage(file, held[file])
                for rows in parquet.read_parts(self.storage, file, cell_ids, read_columns):
                    yield _with_dictionaries(taken_rows(file, coverage, rows))
                refuse(coverage)
        self._refuse_different_copies(copies)

    def _refuse_different_copies(self, copies: pd.DataFrame) -> None:
        several = set(copies.loc[~copies["taken"] & ~copies["gives_way"], "cell_id"])
        if several:
            files = sorted(set(copies.loc[copies["cell_id"].isin(several), "file"]))
            columns = parquet.selected("evaluations", {*KEY, *METRICS}).names
            rows = self._read("evaluations", files, several, columns)
            frame = _joined(rows, parquet.selected("evaluations", columns)).to_pandas()
            refuse_different_evaluations(frame, copies, self.storage)

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
        listed = self._list()
        damaged: list[Damage] = []

        def look_at_cells(file: str) -> pa.Table | Damage:
            try:
                return parquet.read(self.storage, "cells", file).select(IDENTITY)
            except parquet.Damaged as error:
                return Damage(f"cells/{file}", str(error))

        def look_at_evaluations(file: str) -> list[Damage]:
            try:
                parts = parquet.read_parts(self.storage, file, None, EVALUATIONS_SCHEMA.names)
                return faults_of(file, cells.get(file), parts)
            except parquet.Damaged as error:
                return [Damage(f"evaluations/{file}", str(error))]

        # Evaluations last, as they are written first: those of a row that is there are there.
        cells = {}
        for file, found in self._each(look_at_cells, listed["cells"]).items():
            if isinstance(found, Damage):
                damaged.append(found)
            else:
                cells[file] = found
        complete = {}
        for file, faults in self._each(look_at_evaluations, listed["evaluations"]).items():
            damaged.extend(faults)
            if file in cells and not faults:
                complete[file] = cells[file]
        for file in cells.keys() - set(listed["evaluations"]):
            damaged.extend(Coverage(file, cells[file]).faults_of_cells)
        rows = _joined(complete, parquet.selected("cells", IDENTITY))
        copies = copies_of(rows)
        taken = rows.take(copies.index[copies["taken"]].to_numpy())
        statuses = dict(
            zip(taken["cell_id"].to_pylist(), taken["status"].to_pylist(), strict=True)
        )
        return Survey(statuses, tuple(sorted(damaged, key=lambda each: each.name)))

    def _files_of(self, cell_ids: set[str]) -> list[str]:
        """Names of the files, in both tables, to look for some cells in."""
        there = self._each(self.has_cell, sorted(cell_ids))
        missing = {cell_id for cell_id in cell_ids if not there[cell_id]}
        own = {own_file(cell_id) for cell_id in cell_ids - missing}
        return sorted(own | self._may_hold(missing, self._files())) if missing else sorted(own)

    @staticmethod
    def _may_hold(cell_ids: set[str], files: Iterable[str]) -> set[str]:
        """The files, of some, to look for some cells in."""
        wanted = {own_file(cell_id) for cell_id in cell_ids}
        names = ((file, os.path.basename(file)) for file in files)
        # A file that is named like a cell holds that cell: others need not be opened.
        return {file for file, name in names if name in wanted or not OWN_NAME.match(name)}

    def _left_over(self, cells: pa.Table) -> list[str]:
        listed = self._list()
        alone = sorted(set(listed["evaluations"]) - set(listed["cells"]))
        parts = self._read("evaluations", alone, columns=["cell_id"])
        rows = _joined(parts, parquet.selected("evaluations", ["cell_id"])).to_pandas()
        elsewhere = rows["cell_id"].isin(cells["cell_id"].to_pylist())
        needed = set(rows.loc[~elsewhere, "file"])
        return [f"evaluations/{file}" for file in alone if file not in needed]

    def _read(
        self,
        table: Table,
        files: Sequence[str],
        cell_ids: set[str] | None = None,
        columns: list[str] | None = None,
    ) -> dict[str, pa.Table]:
        """File -> its rows, of all cells or of `cell_ids`; all of a file named like a cell."""

        def read(file: str) -> pa.Table:
            try:
                return parquet.read(
                    self.storage, table, file, None if own_id(file) else cell_ids, columns
                )
            except parquet.Damaged as error:
                raise self._refusal(Damage(f"{table}/{file}", str(error))) from error

        return self._each(read, files)

    def _refusal(self, damage: Damage) -> ResultsError:
        return ResultsError(
            f"{self.storage.path(damage.name)} is damaged ({damage.reason}). Run its study "
            "again, which sets it aside and runs its cells, or move it away."
        )

    def _each(self, read: Callable[[str], T], files: Sequence[str]) -> dict[str, T]:
        """File (or cell id) -> `read` of it."""
        if self.storage.local or len(files) < 2:
            return {file: read(file) for file in files}
        with ThreadPoolExecutor(_REQUESTS) as pool:
            return dict(zip(files, pool.map(read, files), strict=True))


def _with_dictionaries(rows: pa.Table) -> pa.Table:
    for name in DICTIONARIES:
        if name in rows.column_names and not pa.types.is_dictionary(rows[name].type):
            at = rows.column_names.index(name)
            rows = rows.set_column(at, name, rows[name].dictionary_encode())
    return rows


def _in_order(
    parts: Iterator[pa.Table], schema: pa.Schema, cell_ids: Sequence[str] | None = None
) -> pa.Table:
    """Parts as one table, in the order of `cell_ids` or by id; rows of a cell stay in theirs."""
    rows = pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])
    ids = rows["cell_id"].to_numpy()
    if cell_ids is not None:
        rank = {cell_id: number for number, cell_id in enumerate(cell_ids)}
        ids = np.array([rank[cell_id] for cell_id in ids], np.int64)
    return rows.take(np.argsort(ids, kind="stable"))


def _joined(parts: Mapping[str, pa.Table], schema: pa.Schema) -> pa.Table:
    """Tables of a schema one below the other, and the `file` that each row is from."""
    rows = pa.concat_tables([schema.empty_table(), *parts.values()])
    lengths = [len(part) for part in parts.values()]
    files = np.repeat(np.array(list(parts), dtype=object), np.array(lengths, dtype=int))
    return rows.append_column("file", pa.array(files, pa.string()))
