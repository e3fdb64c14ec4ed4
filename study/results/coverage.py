"""Checks that two files of one name, one of each table, hold the same cells completely.

Pure functions of tables; `study.results` reads the files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from study.results.schema import SPLITS

IDENTITY = ["cell_id", "cell", "status", "steps"]
"""Columns of `CELLS_SCHEMA` that must agree in copies of a cell; the others may differ."""
KEY = ["cell_id", "split", "budget_fraction"]

OWN_NAME = re.compile(r"[0-9a-f]{16}\.parquet$")

_OF_ANOTHER = "it holds the evaluations of another cell"
_POINTS = re.compile(r'"evaluation_points": \[[^\[\]{}"]*\]')


@dataclass(frozen=True)
class Damage:
    """A damaged file: its name in the directory, and the reason."""

    name: str
    reason: str


def own_file(cell_id: str) -> str:
    return f"{cell_id}.parquet"


def own_id(file: str) -> str | None:
    """The id in a file's name, if the file is named like a cell."""
    name = os.path.basename(file)
    return name.partition(".")[0] if OWN_NAME.match(name) else None


class Coverage:
    """Checks that two files of one name, one of each table, hold the same cells completely.

    It is made from the file of cells; the rows of evaluations are added part by part.

    Args:
        file: their name.
        cells: the columns `IDENTITY` of the file of cells; None: there is no such file.

    Attributes:
        cell_ids: ids of the cells, each once; rows refer to them by number.
        faults_of_cells: faults of the rows of cells themselves.
    """

    def __init__(self, file: str, cells: pa.Table | None) -> None:
        self._file, self._own = file, own_id(file)
        self.faults_of_cells: list[Damage] = []
        self._no_cells = cells is None
        self._foreign = self._added = self._own_added = False
        self.cell_ids = np.array([], dtype=object)
        if cells is None:
            return
        ids, texts, statuses, _ = (cells[name].to_pylist() for name in IDENTITY)
        if self._own and ids and self._own not in ids:
            self.faults_of_cells.append(Damage(f"cells/{file}", "it holds another cell"))
        first: dict[str, int] = {}
        for row, cell_id in enumerate(ids):
            first.setdefault(cell_id, row)
        self.cell_ids = np.array(list(first), dtype=object)
        self._number = {cell_id: number for number, cell_id in enumerate(first)}
        self._done = np.array([statuses[row] == "done" for row in first.values()], bool)
        groups: dict[tuple[float, ...], int] = {}
        group_of = []
        for row in first.values():
            try:
                points = evaluation_points(texts[row])
            except (TypeError, ValueError, KeyError):
                reason = f"cell {ids[row]} has no evaluation points"
                self.faults_of_cells.append(Damage(f"cells/{file}", reason))
                points = ()
            group_of.append(groups.setdefault(points, len(groups)))
        self._points = np.unique(np.array([p for points in groups for p in points]))
        # For each group of cells with equal points: which (point, split) they have.
        has = np.array([np.isin(self._points, points) for points in groups], bool)
        self._has = np.repeat(has.reshape(len(groups), len(self._points)), len(SPLITS), axis=1)
        self._group = np.array(group_of, np.int64)
        self._seen = np.zeros((len(self.cell_ids), len(self._points) * len(SPLITS)), bool)
        self._others = np.zeros(len(self.cell_ids), bool)

    def add(self, rows: pa.Table) -> NDArray[np.int64]:
        """Adds rows of evaluations, with at least the columns `KEY`.

        Returns:
            (rows,) the number of each row's cell in `cell_ids`; -1 if the cell is not there, it
            has no such evaluation, or the row was added before.
        """
        ids, codes = coded(rows["cell_id"])
        if ids:
            self._added = True
            self._own_added |= self._own in ids
        if self._no_cells:
            return np.full(len(rows), -1)
        numbers = np.array([self._number.get(str(i), -1) for i in ids], np.int64)
        cell = numbers[codes] if ids else codes
        names, codes = coded(rows["split"])
        split = np.array([SPLITS.index(n) if n in SPLITS else -1 for n in names] or [-1])[codes]
        fraction = rows["budget_fraction"].to_numpy()
        at = np.searchsorted(self._points, fraction)
        at[at == len(self._points)] = 0
        mine = cell >= 0
        known = mine & (split >= 0)
        if len(self._points):
            known &= self._points[at] == fraction
        else:
            known[:] = False
        self._foreign |= not mine.all()
        self._others[cell[mine & ~known]] = True
        cell = np.where(known, cell, -1)
        seen = self._seen.reshape(-1)
        key = (cell * self._seen.shape[1] + at * len(SPLITS) + split)[known]
        before = np.count_nonzero(seen)
        new = ~seen[key]
        seen[key] = True
        if np.count_nonzero(seen) < before + len(key):
            new &= ~pd.Series(key).duplicated().to_numpy()
            cell[np.flatnonzero(known)[~new]] = -1
        return cell

    def faults(self) -> list[Damage]:
        """The faults of the files, once all rows were added; empty if they are whole."""
        file, faults = self._file, list(self.faults_of_cells)
        if self._own and self._added and not self._own_added:
            faults.append(Damage(f"evaluations/{file}", _OF_ANOTHER))
        if faults or self._no_cells:
            return faults[:2]
        if self._foreign:
            return [Damage(f"evaluations/{file}", _OF_ANOTHER)]
        has = self._has[self._group]
        others = self._others | (self._seen & ~has).any(axis=1)
        lacks = self._done & (has & ~self._seen).any(axis=1)
        for cell_id in self.cell_ids[others]:
            reason = f"it holds evaluations that cell {cell_id} has not"
            return [Damage(f"evaluations/{file}", reason)]
        for cell_id in self.cell_ids[lacks]:
            return [Damage(f"evaluations/{file}", f"it lacks evaluations of cell {cell_id}")]
        return []


def faults_of(file: str, cells: pa.Table | None, evaluations: Iterable[pa.Table]) -> list[Damage]:
    """The faults of two files of one name, see `Coverage`; empty if they are whole.

    Args:
        file: their name.
        cells: the columns `IDENTITY` of the file of cells; None: there is no such file.
        evaluations: parts of the file of evaluations, with the columns `KEY`.
    """
    coverage = Coverage(file, cells)
    for part in evaluations:
        coverage.add(part)
    return coverage.faults()


def evaluation_points(cell: str) -> tuple[float, ...]:
    """The evaluation points in the JSON of a cell.

    Raises:
        KeyError, TypeError, ValueError: it has none.
    """
    # Cut out and cached, as most cells share them: parsing 100,000 JSON texts is slow.
    points = _POINTS.search(cell)
    return _points_of(f"{{{points[0]}}}" if points else cell)


@lru_cache(maxsize=1_000)
def _points_of(text: str) -> tuple[float, ...]:
    return tuple(float(point) for point in json.loads(text)["evaluation_points"])


def coded(column: pa.ChunkedArray) -> tuple[list[str | None], NDArray[np.int64]]:
    """The distinct values of a column, and the index of each row's value among them.

    The values of a dictionary column may include some that no row has.
    """
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    column = column.unify_dictionaries().combine_chunks()
    if column.null_count:
        column = column.dictionary_decode().dictionary_encode(null_encoding="encode")
    return column.dictionary.to_pylist(), column.indices.to_numpy().astype(np.int64)
