"""Merges the small files of a results directory into large ones, all at once or as a study goes.

Merged files are written before the small ones are removed, evaluations first, so readers get the
same rows at every moment, and a kill loses and doubles none: equal copies of a cell count once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from study.results.coverage import own_file
from study.results.listing import COMPACT_PREFIX, of_each
from study.results.reader import in_order
from study.results.results import Results
from study.results.schema import EVALUATIONS_SCHEMA
from study.results.survey import TOGETHER
from study.storage.storage import ResultsError
from study.terminal.working import Part, working

ROWS_A_FILE = 1_000_000
"""Rows of evaluations in a merged file, 300 MB in memory; a cell with more has its own file."""

CELLS_A_FILE = 5_000
"""Cells in a merged file: counts by image of 5,000 test images are 80 kB a cell in memory."""

MOST_SMALL_FILES = 250
"""Cells with files of their own that a running study lets come together. A start reads each of
these files, in 3 ms, and merged ones of 10,000 cells in 0.3 s."""


@dataclass(frozen=True)
class Compaction:
    """The outcome of a compaction.

    Attributes:
        cells: number of cells in the directory.
        before: number of files a table before.
        after: number of files a table now.
    """

    cells: int
    before: int
    after: int


def compact(results: Results) -> Compaction:
    """Merges the files of a results directory; readers get the same rows as before.

    It can be killed at any moment and run again: the merged files are written before the small
    ones are removed, and meanwhile equal copies of a cell count once.

    Raises:
        ResultsError: no results directory; a study runs with it; or a file is damaged, of another
            schema, or contradicts another. Then nothing is changed.
    """
    results.require()
    storage = results.storage
    with results.lock():
        for each in results.survey().damaged:
            raise ResultsError(
                f"{storage.path(each.name)} is damaged ({each.reason}). Run its study again, "
                "which sets it aside and runs its cells, or move it away; then compact."
            )
        layout = results.layout()
        for folder in ("cells", "evaluations"):
            storage.sweep(folder)
        # First, since a merged file may have the name of a left-over one.
        for name in layout.left_over:
            storage.remove(name)
        before, files = len(layout.files), files_for(layout.num_rows)
        after = min(before, len(files))
        if after < before:
            results.fence()  # else a worker could record anew what is merged now
            with working("merging files", len(files), "files") as part:
                for file, cell_ids in part.each(files.items()):
                    if any(layout.only_file.get(cell_id) != file for cell_id in cell_ids):
                        cells, evaluations = results.tables(cell_ids)
                        results.write_table("evaluations", file, evaluations)
                        results.write_table("cells", file, cells)
            # In this order, a reader takes the same copy of a cell until that is removed, last.
            for old in layout.files:
                if old not in files:
                    storage.remove(f"cells/{old}")
                    storage.remove(f"evaluations/{old}")
    return Compaction(len(layout.num_rows), before, after)


def files_for(num_rows: Mapping[str, int]) -> dict[str, list[str]]:
    """Name of a merged file -> its cells, as many as `ROWS_A_FILE` and `CELLS_A_FILE` allow."""
    together: list[list[str]] = []
    rows = 0
    for cell_id, count in num_rows.items():
        full = together and (rows + count > ROWS_A_FILE or len(together[-1]) == CELLS_A_FILE)
        if not together or full:
            together.append([])
            rows = 0
        together[-1].append(cell_id)
        rows += count
    return {_file_of(ids): ids for ids in together}


class Merger:
    """Merges the files of recorded cells while a study runs, so that the next start reads few.

    Only the process that keeps other drivers out may have one. It is given a cell once no worker
    writes or asks for the cell's own files any more.

    Args:
        results: the directory.
    """

    def __init__(self, results: Results) -> None:
        self._results = results
        self._waiting: list[str] = []

    def add(self, cell_ids: Sequence[str]) -> None:
        """Takes complete cells with files of their own; merges as many as came together.

        Raises:
            ResultsError: a file cannot be read or written.
        """
        self._waiting += cell_ids
        while len(self._waiting) >= MOST_SMALL_FILES:
            self._merge(self._waiting[:MOST_SMALL_FILES])
            del self._waiting[:MOST_SMALL_FILES]

    def _merge(self, cell_ids: Sequence[str]) -> None:
        def read(cells: pa.Table, parts: Iterator[pa.Table]) -> tuple[pa.Table, pa.Table]:
            ordered = cells.sort_by([(name, "ascending") for name in TOGETHER])
            ids = ordered["cell_id"].to_pylist()
            return ordered, in_order(parts, EVALUATIONS_SCHEMA, ids)

        cells, evaluations = self._results.scan(read, EVALUATIONS_SCHEMA.names, cell_ids)
        file = _file_of(cells["cell_id"].to_pylist())
        self._results.write_table("evaluations", file, evaluations)
        self._results.write_table("cells", file, cells)
        of_each(self._results.storage, self._remove, cell_ids, Part("merging files"))

    def _remove(self, cell_id: str) -> None:
        for table in ("cells", "evaluations"):
            self._results.storage.remove(f"{table}/{own_file(cell_id)}")


def _file_of(cell_ids: Sequence[str]) -> str:
    """The name of a merged file of these cells."""
    digest = hashlib.sha256("".join(cell_ids).encode()).hexdigest()
    return f"{COMPACT_PREFIX}{digest[:16]}.parquet"
