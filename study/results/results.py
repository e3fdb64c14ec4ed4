"""The results directory: what is recorded there, and what others are given of it.

A results directory (a local path or any fsspec URL) holds

    cells/<cell_id>.parquet        one row: the cell, how it ended, where it ran
    evaluations/<cell_id>.parquet  one row an evaluation and split

A file is written whole, evaluations first, so a reader never sees half a cell. Files may have any
other name, lie in folders and hold many cells (`study.compact` makes such). One rule covers all: a
row in `cells/NAME` counts when `evaluations/NAME` holds the cell's evaluations. So directories are
merged by copying: `cp -r other/cells results/cells/other && cp -r other/evaluations
results/evaluations/other`.

A cell that is done has one evaluation for each of its evaluation points and splits; a cell that
ended otherwise may lack some. A file is damaged if evaluations are missing or belong to a cell
without a row in the file of the same name in `cells/`, or if it is named like a cell and holds
only others.

Copies of a cell that are equal count once; copies that differ are an error, which names both
files. A censored copy gives way to one that went on. Both tables' rows of a cell are always taken
under one name: its own, else the first of the others.

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
from study.results.coverage import KEY, Damage, own_file
from study.results.listing import while_files_vanish
from study.results.reader import Reader, in_order
from study.results.schema import CELLS_SCHEMA, EVALUATIONS_SCHEMA, SCHEMAS, Table
from study.results.survey import Layout, Survey, layout_of, survey_of
from study.storage.storage import ResultsError, Storage
from study.storage.urls import local_path

_MARK = ".driver"
_FOLDERS = (*SCHEMAS, "checkpoints", "forks")

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
        """The local folder of MLflow's and Optuna's databases.

        It is the results directory itself. No database works in an object store: its databases
        lie in a folder of the working directory, named after the URL and made if missing.

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
        """Writes a new mark into the directory, a fencing token.

        By it workers know that they see the directory of their driver, and trials of an earlier
        driver stop. For the one driver, before it lets others write.

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
        """Whether the files named after a cell hold it, complete and not censored."""
        return self._reader.has_cell(cell_id)

    def status(self, cell_id: str) -> str | None:
        """How a cell ended, if the files named after it hold it complete; else None.

        It reads these two and lists none, so it takes no longer in a large directory.
        """
        return self._reader.status(cell_id)

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
        return while_files_vanish(self.storage, lambda: survey_of(self.storage))

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
            return in_order(parts, schema).select(columns)

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
                and `split` are dictionaries. It has to take them all: whether the files are
                whole is known after the last. It is called again if a compaction removed files
                meanwhile.
            columns: of `EVALUATIONS_SCHEMA`.
            cell_ids: of these cells only.
            cell_columns: of `CELLS_SCHEMA`, None: all.

        Returns:
            What `consume` returned.

        Raises:
            ResultsError: as `cells`.
        """
        return self._reader.scan(
            lambda cells, _, parts: consume(cells, parts), columns, cell_ids, cell_columns
        )

    def tables(self, cell_ids: Sequence[str] | None = None) -> tuple[pa.Table, pa.Table]:
        """The rows of `cells` and of `evaluations`, of `cell_ids` in their order, or of all by id.

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
        """Where every complete cell lies.

        Raises:
            ResultsError: as `cells`.
        """
        return layout_of(self.storage)
