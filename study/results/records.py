"""Which files of a results directory hold which cells, and what is in them."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from study.results import cell_file
from study.results.cell_file import Damage, Damaged
from study.results.columns import (
    CELLS_SCHEMA,
    EVALUATIONS_SCHEMA,
    METRICS,
    ROWS_SCHEMA,
    selected,
)
from study.storage.storage import ResultsError, Storage
from study.terminal.working import working

CELLS = "cells"
KEY = ["cell_id", "split", "budget_fraction"]
"""Columns that tell evaluations apart."""

PLACE = ["cell_id", "study", "comparison_id", "paradigm", "schedule", "seed", "stage"]
"""Columns of `CELLS_SCHEMA` that say where a cell belongs."""

DUPLICATE_TOLERANCE = 1e-6
"""Absolute and relative; metrics of two records of a cell may differ by this much."""

ENDED = ("diverged", "done")
"""End states of cells that will not go on."""

_RANKS = ("failed", "censored", *ENDED)  # of two records of a cell, the later here counts

_PAUSES = (0.0, 0.0, 0.1, 1.0, 5.0, 15.0, 40.0)
"""Seconds before a directory is listed again that lists what is gone: NFS does so for a minute."""

_NO_RECORDS = selected(CELLS_SCHEMA, [*PLACE, "status"]).append(pa.field("file", pa.string()))
_NO_RECORDS = _NO_RECORDS.append(pa.field("rows", pa.float64())).empty_table()

T = TypeVar("T")


class Survey(NamedTuple):
    """What a results directory holds.

    Attributes:
        statuses: id of each cell -> done, diverged, censored or failed.
        damaged: files that are cut, changed or foreign.
        cells: one row a cell, with the columns `PLACE`.
        small: ids of the cells that are in files of their own alone, and will not go on.
    """

    statuses: Mapping[str, str]
    damaged: tuple[Damage, ...]
    cells: pd.DataFrame
    small: tuple[str, ...]


class Files(NamedTuple):
    """Files of a results directory, on this machine and with the bytes that were written.

    Attributes:
        paths: of the files.
        left_out: (path, cell id) of the records in them that do not count.
    """

    paths: list[str]
    left_out: list[tuple[str, str]]


class Records:
    """The records of cells in a results directory.

    Of several records of a cell one counts: a done one before a diverged one before a censored
    one before a failed one; among equals that in the file whose name is the last, a merged one if
    there is any.

    A file never changes, so each is looked into once; one that seems damaged, again and again,
    since it may still be on its way here. Whoever reads rows of a file checks its bytes.

    Args:
        storage: the files of the directory.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._files: dict[str, pa.Table | Damage] = {}  # name -> its records
        self._seen = _NO_RECORDS.to_pandas().assign(counts=True)
        self._copies: Path | None = None  # a folder of the files of an object store
        self._looking = threading.Lock()

    def status(self, cell_id: str) -> str | None:
        """How a cell ended, by the files of its own alone; None: none is whole.

        Only these are listed and read, so it is as fast in a large directory.
        """
        return max(self._own(cell_id, "status"), key=_RANKS.index, default=None)

    def failed_at(self, cell_id: str) -> str | None:
        """When a cell was recorded first, by the files of its own alone; for one that failed."""
        return min(self._own(cell_id, "finished_at"), default=None)

    def _own(self, cell_id: str, column: str) -> list[str]:
        """A column of the records of a cell in files of its own that are whole."""
        found: list[str] = []
        for name in self.storage.names(CELLS, f"{cell_id}-"):
            with contextlib.suppress(FileNotFoundError, Damaged):
                ids = pa.array([cell_id])  # a file may bear the name of another cell
                with self._open(name) as file:
                    found += cell_file.rows_in(file, "cells", ids, [column])[column].to_pylist()
        return found

    def survey(self) -> Survey:
        """What the directory holds; of files that were not read before every byte is checked.

        Raises:
            ResultsError: another version of the project wrote a file.
        """
        records = self.while_merged(self._look)
        own = records["file"].map(cell_file.own_cell).notna()
        in_own = own.groupby(records["cell_id"]).transform("all")
        counting = records[records["counts"]]
        small = counting.loc[in_own & counting["status"].isin(ENDED), "cell_id"]
        return Survey(
            dict(zip(counting["cell_id"], counting["status"], strict=True)),
            tuple(self._damaged()),
            counting[PLACE].reset_index(drop=True),
            tuple(small),
        )

    def finished(self) -> set[str]:
        """Ids of the cells whose results the directory holds; empty if there is none."""
        return {cell_id for cell_id, end in self.survey().statuses.items() if end != "failed"}

    def records(self, cell_ids: Iterable[str] | None = None) -> pd.DataFrame:
        """One row a record, those of a cell together.

        Args:
            cell_ids: only of these cells; ids without a result are ignored. None: of all.

        Returns:
            Of a cell, the one that counts is the last. The columns `PLACE` and `status`; `file`,
            the name of its file; `rows`, how many a cell has in that file, on average; `counts`,
            whether it is the record that counts.

        Raises:
            ResultsError: no such directory, or a file that is damaged or of another version.
        """
        records = self.while_merged(self._look)
        if records.empty:
            self.require()
        if cell_ids is not None:
            wanted = set(cell_ids)
            mine = pc.is_in(pa.array(records["cell_id"]), pa.array(wanted, pa.string()))
            records = records[mine.to_numpy(zero_copy_only=False)].reset_index(drop=True)
            missing = wanted.difference(records["cell_id"])
        for damage in self._damaged():
            own = cell_file.own_cell(damage.name)
            if cell_ids is None or own in missing or (missing and own is None):
                raise self._refusal(damage)
        return records

    def cells(
        self, cell_ids: Iterable[str] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """One row a cell, in the order of their ids.

        Args:
            cell_ids: only these cells; ids without a result are ignored. None: all cells.
            columns: of `CELLS_SCHEMA`; None: all.

        Raises:
            ResultsError: no such directory, or a file that is damaged or of another version.
        """
        return self.tables(cell_ids, columns, [])[0].to_pandas()

    def evaluations(
        self, cell_ids: Iterable[str] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """One row a (cell, evaluation, split), in the order of the ids of the cells.

        Args:
            cell_ids: only these cells; None: all.
            columns: of `EVALUATIONS_SCHEMA`; None: all.

        Raises:
            ResultsError: as `cells`.
        """
        return self.tables(cell_ids, [], columns)[1].to_pandas()

    def tables(
        self,
        cell_ids: Iterable[str] | None = None,
        cell_columns: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> tuple[pa.Table, pa.Table]:
        """What `cells` and `evaluations` give, of one moment, as Arrow tables.

        Args:
            cell_ids: only these cells; None: all.
            cell_columns, columns: of the two; None: all; where none is asked, nothing is read.

        Raises:
            ResultsError: as `cells`.
        """

        of_cells = selected(CELLS_SCHEMA, cell_columns)
        of_evaluations = selected(EVALUATIONS_SCHEMA, columns)

        def read() -> tuple[pa.Table, pa.Table]:
            records = self.records(cell_ids)
            counting = records[records["counts"]]
            cells = self._rows(counting, of_cells, "cells")
            return cells, self._rows(counting, of_evaluations)

        return self.while_merged(read)

    def rows(self, cell_ids: Iterable[str]) -> tuple[pa.Table, dict[str, str]]:
        """The rows of some cells as a file holds them, and id -> JSON, see `cell_file.encoded`.

        With columns of chapters and packages that are not here, too.

        Raises:
            ResultsError: as `cells`.
        """

        def read() -> tuple[pa.Table, dict[str, str]]:
            records = self.records(cell_ids)
            counting = records[records["counts"]]
            cells = self._rows(counting, selected(CELLS_SCHEMA, ["cell_id", "cell"]), "cells")
            texts = dict(zip(*cells.to_pydict().values(), strict=True))
            return self._rows(counting, ROWS_SCHEMA, "all", further=True), texts

        return self.while_merged(read)

    def files(self, cell_ids: Iterable[str] | None = None) -> Files:
        """The files that hold cells, for whoever queries them.

        Query them within `while_merged`: a running study may remove one, whose cells are then in
        another.

        Raises:
            ResultsError: as `cells`.
        """
        records = self.records(cell_ids)
        names = records.loc[records["counts"], "file"].unique()
        for name in names:
            with self._whole(name):
                pass  # whoever queries it reads it without a check
        path_of = dict(zip(names, map(str, self._at_hand(names)), strict=True))
        others = records[~records["counts"] & records["file"].isin(names)]
        left_out = zip(others["file"].map(path_of), others["cell_id"], strict=True)
        return Files([*path_of.values()], [*left_out])

    def disagreements(self, cell_ids: Iterable[str] | None = None) -> list[str]:
        """Says of which cells two records disagree beyond rounding.

        One that is censored or failed agrees with any other, since its cell went on.

        Raises:
            ResultsError: as `cells`.
        """

        def find() -> list[str]:
            records = self.records(cell_ids)
            ended = records[records["status"].isin(ENDED)]
            ended = ended.assign(digest=ended["file"].str.rsplit("-").str[-1])  # of equal bytes
            ended = ended.drop_duplicates(["cell_id", "digest"], keep="last")
            several = ended[ended.duplicated("cell_id", keep=False)]
            rows = self._rows(several, selected(ROWS_SCHEMA, [*KEY, *METRICS])).to_pandas()
            sizes, count = rows.groupby(KEY).size(), several.groupby("cell_id").size()
            lacking = sizes < count[sizes.index.get_level_values("cell_id")].to_numpy()
            unlike = several.groupby("cell_id")["status"].nunique().gt(1)
            each = (lacking, unlike, apart(rows, METRICS).any(axis=1))
            wrong = {cell for some in each for cell in some[some].index.get_level_values(0)}
            paths = several["file"].map(self.storage.path)
            return [
                f"cell {cell_id} has different results in {' and '.join(reversed([*places]))}"
                for cell_id, places in paths.groupby(several["cell_id"])
                if cell_id in wrong
            ]

        return self.while_merged(find)

    def while_merged(self, read: Callable[[], T]) -> T:
        """Reads, and again if a file vanished since a running study merged it.

        Args:
            read: raises FileNotFoundError if a file is gone.

        Raises:
            ResultsError: the directory lists for a minute what is not there.
        """
        for pause in _PAUSES:
            time.sleep(pause)
            try:
                return read()
            except FileNotFoundError as error:
                gone = error
        raise ResultsError(
            f"a file of {self.storage.url} is listed, but not there ({gone}). Remove it."
        )

    def require(self) -> None:
        """Refuses a directory that no study has written to.

        Raises:
            ResultsError: there is no such directory, or it is no results directory.
        """
        if not self.storage.exists(CELLS):
            raise ResultsError(
                f"{self.storage.url} is not a results directory (it has no folder cells/). Name "
                "the one that was given to `python -m study.run` as --results DIR, or run a "
                "study first."
            )

    # --- the files

    def _look(self) -> pd.DataFrame:
        """All records, as `records` gives them."""
        with self._looking:
            names, known = self._listed(), self._files
            whole = {name: each for name, each in known.items() if isinstance(each, pa.Table)}
            if names == known.keys() == whole.keys():
                return self._seen
            new = sorted(names - whole.keys())
            self._at_hand(new)
            with (
                working("reading results", len(new), "files") as part,
                ThreadPoolExecutor() as pool,
            ):
                looked_into = dict(
                    zip(new, part.each(pool.map(self._look_into, new)), strict=True)
                )
            known = whole | looked_into
            self._files = {name: known[name] for name in sorted(names)}
            tables = [each for each in self._files.values() if isinstance(each, pa.Table)]
            records = pa.concat_tables([_NO_RECORDS, *tables])
            rank = pc.index_in(records["status"], pa.array(_RANKS))
            order = [(name, "ascending") for name in ("cell_id", "rank", "file")]
            records = records.append_column("rank", rank).sort_by(order).to_pandas()
            self._seen = records.assign(counts=~records.duplicated("cell_id", keep="last"))
            return self._seen

    def _listed(self) -> set[str]:
        """Names of the files; listed again until none went meanwhile, or cells could lack."""
        names = set(self.storage.names(CELLS))
        while True:
            before, names = names, set(self.storage.names(CELLS))
            if before <= names:
                return {name for name in names if name.endswith(".parquet")}

    def _look_into(self, name: str) -> pa.Table | Damage:
        try:
            with self._open(name) as file:
                held = cell_file.rows_in(file, "cells", columns=[*PLACE, "status"])
        except Damaged as error:
            return Damage(name, str(error))
        held, count = held.drop_columns("split"), len(held)
        held = held.append_column("file", pa.array([name] * count, pa.string()))
        return held.append_column("rows", pa.array([file.metadata.num_rows / count] * count))

    def _damaged(self) -> list[Damage]:
        return [each for each in self._files.values() if isinstance(each, Damage)]

    def _at_hand(self, names: Sequence[str]) -> list[Path]:
        """Where files are on this machine; those of an object store are copied, each once."""
        if self.storage.local:
            return [Path(self.storage.path(name)) for name in names]
        if self._copies is None:
            self._copies = Path(tempfile.mkdtemp(prefix="attention-study-"))
            weakref.finalize(self, shutil.rmtree, self._copies, ignore_errors=True)
        paths = [self._copies / name for name in names]
        missing = [name for name, path in zip(names, paths, strict=True) if not path.exists()]
        if missing:
            self.storage.fetch(missing, self._copies)
        return paths

    def _refusal(self, damage: Damage) -> ResultsError:
        return ResultsError(
            f"{self.storage.path(damage.name)} is damaged ({damage.reason}). Run its study again, "
            "which sets it aside and runs its cells. Or move it away, and record runs of your own "
            "again."
        )

    @contextlib.contextmanager
    def _open(self, name: str) -> Iterator[pq.ParquetFile]:
        (path,) = self._at_hand([name])
        with self.storage.reading(name):
            yield cell_file.opened(self.storage.path(name), path)

    @contextlib.contextmanager
    def _whole(self, name: str) -> Iterator[pq.ParquetFile]:
        """Opens a file that was whole when it was looked at; raises ResultsError if it is not."""
        try:
            with self._open(name) as file:
                yield file
        except Damaged as error:
            damage = Damage(name, str(error))
            with self._looking:
                self._files = {**self._files, name: damage}  # others may be going through it
            raise self._refusal(damage) from None

    def _rows(
        self,
        records: pd.DataFrame,
        schema: pa.Schema,
        which: Literal["cells", "evaluations", "all"] = "evaluations",
        further: bool = False,
    ) -> pa.Table:
        """Rows of some records, those of a cell one after another, see `cell_file.rows_in`.

        With `further`, the columns of the files that the schema lacks come behind it.
        """
        if not schema.names or records.empty:
            return schema.empty_table()
        parts = []
        for name, ids in records.groupby("file")["cell_id"]:
            with self._whole(str(name)) as file:
                wanted = pa.array(ids, pa.string())
                columns = [*schema.names, *(file.schema_arrow.names if further else [])]
                parts.append(cell_file.rows_in(file, which, wanted, columns))
        rows = pa.concat_tables(parts, promote_options="default")
        place = pc.index_in(rows["cell_id"], pa.array(records["cell_id"], pa.string()))
        rows = rows.take(np.argsort(place.to_numpy(), kind="stable"))
        if further:
            others = [field for field in rows.schema if field.name not in schema.names]
            schema = pa.schema([*schema, *others])
        return cell_file.completed(rows, schema)


def apart(rows: pd.DataFrame, numbers: Iterable[str]) -> pd.DataFrame:
    """Which numbers the rows of an evaluation differ in beyond `DUPLICATE_TOLERANCE`, by `KEY`."""
    names = [*numbers]
    values = rows.astype(dict.fromkeys(names, float)).groupby(KEY, dropna=False)[names]
    low, high, known = values.min(), values.max(), values.count()
    partly_known = known.gt(0) & known.lt(values.size(), axis=0)
    return partly_known | (high - low > DUPLICATE_TOLERANCE * (1 + low.abs()))
