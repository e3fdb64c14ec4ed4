"""Which files of a results directory hold which cells, and what is in them."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from study.results import cell_file
from study.results.cell_file import Damage, Damaged
from study.results.columns import CELLS_SCHEMA, EVALUATIONS_SCHEMA, METRICS, selected
from study.storage.storage import ResultsError, Storage
from study.terminal.working import working

CELLS = "cells"
KEY = ["cell_id", "split", "budget_fraction"]
"""Columns that tell evaluations apart."""

PLACE = ["cell_id", "study", "comparison_id", "paradigm", "schedule", "seed", "stage"]
"""Columns of `CELLS_SCHEMA` that say where a cell belongs."""

DUPLICATE_TOLERANCE = 1e-6
"""Absolute and relative; metrics of two records of a cell may differ by this much."""

_HELD = [*PLACE, "status"]
_RANKS = ("censored", "diverged", "done")  # of two records of a cell, the later here counts
_PAUSES = (0.0, 0.0, 0.1, 1.0, 5.0, 15.0, 40.0)
"""Seconds before a directory is listed again that lists what is gone: NFS does so for a minute."""

Record = tuple[int, str]
"""Of a cell: its place in `_RANKS`, and the file. The largest of a cell counts."""

T = TypeVar("T")


@dataclass(frozen=True)
class Survey:
    """What a results directory holds.

    Attributes:
        statuses: id of each cell -> done, diverged or censored.
        damaged: files that are cut, changed or foreign.
        cells: one row a cell, with the columns `PLACE`.
        small: ids of the cells that are in files of their own alone, and will not go on.
    """

    statuses: Mapping[str, str]
    damaged: tuple[Damage, ...]
    cells: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=PLACE), compare=False)
    small: tuple[str, ...] = field(default=(), compare=False)


class Files(NamedTuple):
    """Files of a results directory, on this machine and with the bytes that were written.

    Attributes:
        paths: of the files.
        left_out: (path, cell id) of the records in them that do not count.
    """

    paths: list[str]
    left_out: list[tuple[str, str]]


class Holding(NamedTuple):
    """What a file holds: ids of cells, and how many rows there are of all of them."""

    cell_ids: set[str]
    num_rows: int


class Records:
    """The records of cells in a results directory.

    Of several records of a cell one counts: a done one before a diverged one before a censored
    one; among equals that in the file whose name is the last, a merged one if there is any.

    A file never changes, so each is checked and looked into once.

    Args:
        storage: the files of the directory.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._held: dict[str, pa.Table] = {}  # file -> columns `_HELD` of its cells
        self._num_rows: dict[str, int] = {}
        self._damaged: dict[str, Damage] = {}
        self._records: defaultdict[str, set[Record]] = defaultdict(set)
        self._copies: Path | None = None  # a folder of the files of an object store
        self._reading = threading.RLock()  # a study reads while MLflow's thread does

    def status(self, cell_id: str) -> str | None:
        """How a cell ended, by the files of its own alone; None: none is whole.

        Only these are listed and read, so it is as fast in a large directory.
        """
        found = []
        for name in self.storage.names(CELLS, f"{cell_id}-"):
            with contextlib.suppress(FileNotFoundError, Damaged):
                rows = cell_file.cells_in(self._opened(name), ["cell_id", "status"])
                found += rows.filter(pc.equal(rows["cell_id"], cell_id))["status"].to_pylist()
        return max(found, key=_RANKS.index, default=None)

    def survey(self) -> Survey:
        """What the directory holds; of files that were not read before every byte is checked.

        Raises:
            ResultsError: another version of the project wrote a file.
        """

        def look() -> Survey:
            self._look()
            counting = {cell_id: max(records) for cell_id, records in self._records.items()}
            return Survey(
                {cell_id: _RANKS[rank] for cell_id, (rank, _) in counting.items()},
                tuple(sorted(self._damaged.values())),
                self._cells(counting, PLACE).to_pandas(),
                tuple(i for i, records in self._records.items() if _are_small(records)),
            )

        return self.while_merged(look)

    def finished(self) -> set[str]:
        """Ids of the cells that the directory holds; empty if there is none."""
        return set(self.survey().statuses)

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
        return self.while_merged(
            lambda: self._cells(self._counting(cell_ids), columns).to_pandas()
        )

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
        return self.while_merged(
            lambda: self._evaluations(self._counting(cell_ids), columns).to_pandas()
        )

    def tables(self, cell_ids: Iterable[str] | None = None) -> tuple[pa.Table, pa.Table]:
        """What `cells` and `evaluations` give, of one moment, as Arrow tables.

        Raises:
            ResultsError: as `cells`.
        """

        def read() -> tuple[pa.Table, pa.Table]:
            counting = self._counting(cell_ids)
            return self._cells(counting), self._evaluations(counting)

        return self.while_merged(read)

    def files(self, cell_ids: Iterable[str] | None = None) -> Files:
        """The files that hold cells, for whoever queries them.

        Query them within `while_merged`: a running study may remove one, whose cells are then in
        another.

        Raises:
            ResultsError: as `cells`.
        """
        counting = self._counting(cell_ids)
        names = sorted({name for _, name in counting.values()})
        paths = [str(path) for path in self._at_hand(names)]
        left_out = [
            (path, cell_id)
            for name, path in zip(names, paths, strict=True)
            for cell_id in self._held[name]["cell_id"].to_pylist()
            if max(self._records[cell_id])[1] != name
        ]
        return Files(paths, left_out)

    def holdings(self) -> dict[str, Holding]:
        """File -> what it holds, whether these records count or not.

        Raises:
            ResultsError: as `cells`.
        """

        def look() -> dict[str, Holding]:
            self._counting(None)
            return {
                name: Holding(set(held["cell_id"].to_pylist()), self._num_rows[name])
                for name, held in self._held.items()
            }

        return self.while_merged(look)

    def disagreements(self, cell_ids: Iterable[str] | None = None) -> list[str]:
        """Sentences on the cells of which two records disagree beyond rounding.

        A censored record agrees with any other, since its cell went on.

        Raises:
            ResultsError: as `cells`.
        """

        def find() -> list[str]:
            found = []
            for cell_id, counts in self._counting(cell_ids).items():
                for other in sorted(self._records[cell_id] - {counts}):
                    if _RANKS[other[0]] != "censored" and not self._agree(cell_id, counts, other):
                        one, two = (self.storage.path(name) for _, name in (counts, other))
                        found.append(f"cell {cell_id} has different results in {one} and {two}")
            return found

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
                with self._reading:
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
                f"{self.storage.url} is no results directory (it has no folder cells/). Name the "
                "one that was given to `python -m study.run` as --results DIR, or run a study "
                "first."
            )

    # --- which record of a cell counts

    def _look(self) -> None:
        """Learns of files that came since, and forgets those that went."""
        names = self._listed()
        for name in (self._held.keys() | self._damaged.keys()) - names:
            self._forget(name)
        new = sorted(names - self._held.keys() - self._damaged.keys())
        with working("reading results", len(new), "files") as part:
            self._at_hand(new)
            for name in part.each(new):
                self._learn(name)

    def _listed(self) -> set[str]:
        """Names of the files; listed again if some were merged meanwhile, or cells could lack."""
        names = set(self.storage.names(CELLS))
        while True:
            before, names = names, set(self.storage.names(CELLS))
            merged = [name for name in names - before if cell_file.own_cell(name) is None]
            if before <= names and not merged:
                return {name for name in names if name.endswith(".parquet")}

    def _learn(self, name: str) -> None:
        try:
            file = self._opened(name)
            held = cell_file.cells_in(file, _HELD)
        except Damaged as error:
            self._damaged[name] = Damage(name, str(error))
            return
        self._held[name], self._num_rows[name] = held, file.metadata.num_rows
        for row in held.select(["cell_id", "status"]).to_pylist():
            self._records[row["cell_id"]].add((_RANKS.index(row["status"]), name))

    def _forget(self, name: str) -> None:
        self._damaged.pop(name, None)
        held = self._held.pop(name, None)
        for cell_id in [] if held is None else held["cell_id"].to_pylist():
            left = {record for record in self._records.pop(cell_id) if record[1] != name}
            if left:
                self._records[cell_id] = left

    def _counting(self, cell_ids: Iterable[str] | None) -> dict[str, Record]:
        """Cell id -> the record that counts, in the order of the ids."""
        self._look()
        if not self._held:
            self.require()
        known = self._records.keys()
        wanted = known if cell_ids is None else set(cell_ids)
        if self._damaged and (cell_ids is None or wanted - known):
            name, reason = min(self._damaged.values())
            raise ResultsError(
                f"{self.storage.path(name)} is damaged ({reason}). Run its study again, which "
                "sets it aside and runs its cells, or move it away."
            )
        return {cell_id: max(self._records[cell_id]) for cell_id in sorted(wanted & known)}

    def _agree(self, cell_id: str, one: Record, other: Record) -> bool:
        """Whether two records of a cell have the same end and the same evaluations."""
        columns = [*KEY, *METRICS]
        rows = [
            self._evaluations({cell_id: each}, columns).to_pandas().sort_values(KEY)[columns]
            for each in (one, other)
        ]
        keys, metrics = ([each[names].to_numpy() for each in rows] for names in (KEY, [*METRICS]))
        return (
            one[0] == other[0]
            and np.array_equal(*keys)
            and bool(agree(*(each.astype(float) for each in metrics)).all())
        )

    # --- what is in the files

    def _at_hand(self, names: Sequence[str]) -> list[Path]:
        """Where files are on this machine; those of an object store are copied, each once."""
        if self.storage.local:
            return [Path(self.storage.path(name)) for name in names]
        if self._copies is None:
            self._copies = Path(tempfile.mkdtemp(prefix="attention-study-"))
            weakref.finalize(self, shutil.rmtree, self._copies, ignore_errors=True)
        folder = self._copies
        if missing := [name for name in names if not (folder / name).exists()]:
            self.storage.fetch(missing, folder)
        return [folder / name for name in names]

    def _opened(self, name: str) -> pq.ParquetFile:
        (path,) = self._at_hand([name])
        return cell_file.opened(name, path, checked=name in self._held)

    def _cells(
        self, counting: Mapping[str, Record], columns: Sequence[str] | None = None
    ) -> pa.Table:
        schema = selected(CELLS_SCHEMA, columns)
        needed = [*schema.names, "cell_id"]

        def read(name: str, cell_ids: pa.Array) -> pa.Table:
            at_hand = set(needed) <= set(_HELD)
            rows = self._held[name] if at_hand else cell_file.cells_in(self._opened(name), needed)
            return rows.filter(pc.is_in(rows["cell_id"], cell_ids))

        return _joined(counting, schema, read)

    def _evaluations(
        self, counting: Mapping[str, Record], columns: Sequence[str] | None = None
    ) -> pa.Table:
        schema = selected(EVALUATIONS_SCHEMA, columns)
        needed = [*schema.names, "cell_id"]

        def read(name: str, cell_ids: pa.Array) -> pa.Table:
            return cell_file.evaluations_in(self._opened(name), cell_ids, needed)

        return _joined(counting, schema, read)


def agree(one: ArrayLike, other: ArrayLike) -> NDArray[np.bool_]:
    """Which numbers of two records agree within `DUPLICATE_TOLERANCE`; missing ones do."""
    return np.isclose(one, other, DUPLICATE_TOLERANCE, DUPLICATE_TOLERANCE, equal_nan=True)


def _joined(
    counting: Mapping[str, Record], schema: pa.Schema, read: Callable[[str, pa.Array], pa.Table]
) -> pa.Table:
    """The rows of cells, cell after cell, from the files that count.

    Args:
        counting: cell id -> the record that counts.
        schema: of the rows.
        read: gives the rows of some cells in a file, with their `cell_id`.
    """
    by_file = defaultdict(list)
    for cell_id, (_, name) in counting.items():
        by_file[name].append(cell_id)
    parts = [read(name, pa.array(ids, pa.string())) for name, ids in by_file.items()]
    if not parts:
        return schema.empty_table()
    rows = pa.concat_tables(parts)
    place = pc.index_in(rows["cell_id"], pa.array([*counting], pa.string())).to_numpy()
    return rows.take(np.argsort(place, kind="stable")).select(schema.names)


def _are_small(records: Collection[Record]) -> bool:
    own = all(cell_file.own_cell(name) for _, name in records)
    return own and _RANKS[max(records)[0]] != "censored"
