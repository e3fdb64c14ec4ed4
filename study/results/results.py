"""The results directory: records cells and reads them back.

A results directory (a local path or any fsspec URL) holds

    cells/<cell_id>.parquet        one row: the cell, how it ended, where it ran
    evaluations/<cell_id>.parquet  one row an evaluation and split

A file is written whole, evaluations first, so a reader never sees half a cell. Files may also have
other names, lie in folders and hold many cells (`study.results.compaction` writes them). One rule
covers all: a row in `cells/NAME` counts if `evaluations/NAME` holds the cell's evaluations. So
directories are merged by copying: `cp -r other/cells results/cells/other && cp -r
other/evaluations results/evaluations/other`.

A done cell has one evaluation for each of its evaluation points and splits, and a file that lacks
some is damaged; other cells may lack some.

Equal copies of a cell count once; different ones are an error that names both files. A censored
copy gives way to one that went on. Both tables' rows of a cell are always taken from files of one
name: the cell's own, else the first of the others.

Many studies may share a directory, one at a time.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa

from study.results import parquet
from study.results.coverage import Damage, own_file
from study.results.listing import while_files_vanish
from study.results.reader import Reader, in_order
from study.results.schema import CELLS_SCHEMA, EVALUATIONS_SCHEMA, SCHEMAS, Table
from study.results.survey import Layout, Survey, layout_of, survey_of
from study.storage.storage import ResultsError, Storage
from study.storage.urls import local_path, place_of

_MARK = ".driver"
_ORIGIN = ".origin"
_FOLDERS = (*SCHEMAS, "checkpoints", "forks", "networks")

T = TypeVar("T")


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
        self._reader = Reader(self.storage)

    def databases(self) -> Path:
        """The local folder of MLflow's database.

        It is the results directory itself. No database works in an object store, so a store's
        database lies in a folder of the working directory, named after the URL and made if
        missing.

        Raises:
            ResultsError: the folder cannot be made.
        """
        path = local_path(self.url)
        if path is not None:
            return path.resolve()
        url = self.url.rstrip("/")
        name = re.sub(r"[^\w.-]+", "-", url)  # two URLs may share it; the digest tells them apart
        digest = hashlib.sha256(url.encode()).hexdigest()[:8]
        folder = Path("databases", f"{name}-{digest}").resolve()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResultsError(
                f"{folder}, for MLflow's database of {self.url}, cannot be made "
                f"({error.strerror}). Run the command in a directory that can be written."
            ) from error
        return folder

    def require(self) -> None:
        """Refuses a directory that no study has written to.

        Raises:
            ResultsError: there is no such directory, or it is no results directory.
        """
        if not self.storage.exists("cells"):
            raise ResultsError(
                f"{self.url} is no results directory (it has no folder cells/). Name the one that "
                "was given to `python -m study.run` as --results DIR."
            )

    def prepare(self) -> None:
        """Makes the directory, checks that it can be written, removes killed writers' files.

        Only the driver calls it. While another driver holds the lock, nothing is removed.

        Raises:
            ResultsError: the directory cannot be made or written.
        """
        for folder in _FOLDERS:
            self.storage.make(folder)
            self.storage.probe(folder)
            self.storage.sweep(folder)

    def lock(self) -> AbstractContextManager[None]:
        """Keeps all others out of a local directory; the lock ends with the process.

        Raises:
            ResultsError: another process holds it, or shares it.
        """
        return self.storage.lock()

    def is_running(self) -> bool:
        """Whether a study runs with the directory now; always False for an object store."""
        return self.storage.is_locked()

    def mark(self, mark: str | None = None) -> str:
        """Writes a mark, a fencing token, into the directory and returns it.

        Workers check it with `require_mark`, so that they see their driver's directory and trials
        of an earlier driver stop. It is written before any worker writes.

        Args:
            mark: that others share; None: a new one.

        Raises:
            ResultsError: it cannot be written.
        """
        mark = uuid.uuid4().hex if mark is None else mark
        self.storage.write(_MARK, mark.encode())
        return mark

    def fence(self) -> None:
        """Lets no worker of an earlier command record anything any more.

        Raises:
            ResultsError: the mark cannot be read or written.
        """
        if (there := self.marked()) is not None:
            self.storage.write(_MARK, f"{there} ".encode())  # what shards agreed on can be read

    def marked(self) -> str | None:
        """The mark of the last command that trained with the directory; None: none did.

        Raises:
            ResultsError: it cannot be read.
        """
        try:
            return self.storage.read(_MARK).decode(errors="replace")
        except FileNotFoundError:
            return None

    def origin(self) -> str:
        """A name of the directory that stays when it is moved, or its machine changes its name.

        It is made when it is first asked for; where it cannot be written, it is the place alone.
        """
        try:
            return self.storage.read(_ORIGIN).decode(errors="replace")
        except FileNotFoundError:
            made = f"{place_of(self.url)} {uuid.uuid4().hex[:8]}"
        try:
            self.storage.write(_ORIGIN, made.encode())
        except ResultsError:
            return place_of(self.url)
        return made

    def require_mark(self, mark: str) -> None:
        """Checks that this is the driver's directory, and that no later driver took it over.

        Raises:
            ResultsError: it is not, or the mark cannot be read.
        """
        there = self.marked()
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
        """Records a finished cell: its evaluations first, then its row in `cells/`.

        A cell that `has_cell` keeps its files, to the byte.

        Raises:
            ResultsError: it cannot be written.
        """
        cell_id = str(cell["cell_id"])
        if self.has_cell(cell_id):
            return
        # An old row (of a censored or incomplete cell) must not meet the new evaluations.
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
        """Whether the files named after a cell hold it, complete and not censored."""
        return self._reader.has_cell(cell_id)

    def status(self, cell_id: str) -> str | None:
        """How a cell ended, if the files named after it hold it complete; else None.

        Only these two files are read and none is listed, so it is as fast in a large directory.
        """
        return self._reader.status(cell_id)

    def finished(self) -> set[str]:
        """Ids of the complete cells; empty if there is no directory.

        Raises:
            ResultsError: a file in the directory is of another schema.
        """
        return set(self.survey().statuses)

    def survey(self) -> Survey:
        """Reads every file to find the complete cells and the damaged files.

        Raises:
            ResultsError: a file in the directory is of another schema.
        """
        return while_files_vanish(self.storage, lambda: survey_of(self.storage))

    def set_aside(self, damaged: Iterable[Damage]) -> list[str]:
        """Moves damaged files to the folder `damaged/`, so that their cells run again.

        Returns:
            Their new paths.

        Raises:
            ResultsError: a file cannot be moved.
        """
        moved = []
        for each in damaged:
            with suppress(FileNotFoundError):  # another process moved it
                moved.append(self.storage.move(each.name, f"damaged/{each.name}"))
        return [self.storage.path(name) for name in moved]

    def cells(
        self, cell_ids: Iterable[str] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """One row a complete cell, in the order of their ids.

        Args:
            cell_ids: only these cells; ids without a result are ignored. Cells with files of their
                own name are read from these files alone. None: all cells.
            columns: of `CELLS_SCHEMA`; None: all.

        Raises:
            ResultsError: no such directory, a file that is damaged or of another schema, or two
                files that hold different results of one cell.
        """

        def exhaust(cells: pa.Table, parts: Iterator[pa.Table]) -> pa.Table:
            for _ in parts:
                pass
            return cells

        return self.scan(exhaust, ["cell_id"], cell_ids, columns).to_pandas()

    def evaluations(
        self, cell_ids: Iterable[str] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """One row a (cell, evaluation, split), of the cells that `cells` gives, in its order.

        Args:
            cell_ids: only these cells; None: all.
            columns: of `EVALUATIONS_SCHEMA`; None: all.

        Raises:
            ResultsError: as `cells`.
        """
        columns = EVALUATIONS_SCHEMA.names if columns is None else list(columns)
        schema = parquet.selected("evaluations", {*columns, "cell_id"})

        def join(_: pa.Table, parts: Iterator[pa.Table]) -> pa.Table:
            return in_order(parts, schema).select(columns)

        return self.scan(join, schema.names, cell_ids, ["cell_id"]).to_pandas()

    def scan(
        self,
        consume: Callable[[pa.Table, Iterator[pa.Table]], T],
        columns: Iterable[str],
        cell_ids: Iterable[str] | None = None,
        cell_columns: Sequence[str] | None = None,
    ) -> T:
        """Reads the evaluations part by part, since all at once may be larger than memory.

        Args:
            consume: called with the rows of the complete cells, in the order of their ids, and
                with the parts of their evaluations: tables with `columns`, in which `cell_id`
                and `split` are dictionaries. It has to take all parts: only after the last are
                the files known to be whole. It is called again if a compaction removed files
                meanwhile.
            columns: of `EVALUATIONS_SCHEMA`.
            cell_ids: only these cells; None: all.
            cell_columns: of `CELLS_SCHEMA`; None: all.

        Returns:
            What `consume` returned.

        Raises:
            ResultsError: as `cells`.
        """
        return self._reader.scan(
            lambda cells, _, parts: consume(cells, parts), columns, cell_ids, cell_columns
        )

    def tables(self, cell_ids: Sequence[str] | None = None) -> tuple[pa.Table, pa.Table]:
        """The rows of `cells` and of `evaluations`, in the order of `cell_ids`, or all by id.

        Raises:
            ResultsError: as `cells`.
        """
        return self.scan(
            lambda cells, parts: (
                in_order(iter([cells]), CELLS_SCHEMA, cell_ids),
                in_order(parts, EVALUATIONS_SCHEMA, cell_ids),
            ),
            EVALUATIONS_SCHEMA.names,
            cell_ids,
        )

    def layout(self) -> Layout:
        """Which files hold the complete cells.

        Raises:
            ResultsError: as `cells`.
        """
        return layout_of(self.storage)
