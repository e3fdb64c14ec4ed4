"""Checks that two files of one name, one of each table, hold their cells completely.

Pure functions of tables; `study.results` reads the files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from study.results.schema import SPLITS

IDENTITY = ["cell_id", "cell", "status", "steps"]
"""Columns of `CELLS_SCHEMA` that must agree in copies of a cell; the others may differ."""
KEY = ["cell_id", "split", "budget_fraction"]

_OWN_NAME = re.compile(r"[0-9a-f]{16}\.parquet$")
_POINTS = re.compile(r'"evaluation_points": \[([^\]]*)\]')


@dataclass(frozen=True)
class Damage:
    """A damaged file: its name in the directory, and the reason."""

    name: str
    reason: str


def own_file(cell_id: str) -> str:
    return f"{cell_id}.parquet"


def is_own(file: str) -> bool:
    """Whether a file is named like a cell, so that it holds this one alone."""
    return bool(_OWN_NAME.match(os.path.basename(file)))


class Coverage:
    """Checks that a file of evaluations holds all those of the cells in the file of its name.

    It is made from the file of cells; the rows of evaluations are added part by part.

    Args:
        file: their name.
        cells: the columns `IDENTITY` of the file of cells.

    Attributes:
        cell_ids: ids of the cells; rows refer to them by number.
    """

    def __init__(self, file: str, cells: pa.Table) -> None:
        self._file = file
        self.cell_ids = cells["cell_id"].to_numpy()
        self._number = {cell_id: number for number, cell_id in enumerate(self.cell_ids)}
        # Counted in the text, since to parse 100,000 of them is slow.
        lists = [_POINTS.findall(text)[0] for text in cells["cell"].to_pylist()]
        points = np.array([text.count(",") + 1 for text in lists], np.int64)
        done = cells["status"].to_numpy() == "done"
        self._lacking = np.where(done, points * len(SPLITS), 0)

    def add(self, rows: pa.Table) -> NDArray[np.int64]:
        """Adds rows of evaluations, with at least the column `cell_id`.

        Returns:
            (rows,) the number of each row's cell in `cell_ids`; -1 if the cell is not there.
        """
        ids, codes = coded(rows["cell_id"])
        cell = np.array([self._number.get(each, -1) for each in ids], np.int64)[codes]
        self._lacking -= np.bincount(cell[cell >= 0], minlength=len(self.cell_ids))
        return cell

    def fault(self) -> Damage | None:
        """What is wrong with the file, once all rows were added; None if it is whole."""
        own = os.path.basename(self._file).removesuffix(".parquet")
        if is_own(self._file) and set(self.cell_ids) - {own}:
            return Damage(f"cells/{self._file}", "it holds another cell than its name says")
        for cell_id in self.cell_ids[self._lacking > 0]:
            return Damage(f"evaluations/{self._file}", f"it lacks evaluations of cell {cell_id}")
        return None


def fault_of(file: str, cells: pa.Table, evaluations: Iterable[pa.Table]) -> Damage | None:
    """What is wrong with a file of evaluations, see `Coverage`, of which these are the parts."""
    coverage = Coverage(file, cells)
    for part in evaluations:
        coverage.add(part)
    return coverage.fault()


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
