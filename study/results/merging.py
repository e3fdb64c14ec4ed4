"""Merges the files of cells into larger ones, all at once or as a study goes.

A merged file is written before the files whose cells it holds are removed. So a kill loses
nothing, and doubles nothing, since of several records of a cell one counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pandas as pd

from study.results.cell_file import MERGED
from study.results.results import Results
from study.storage.storage import ResultsError
from study.terminal.working import working

ROWS_A_FILE = 1_000_000
"""Rows of evaluations in a merged file, 300 MB in memory; a cell with more has its own file."""

CELLS_A_FILE = 5_000
"""Cells in a merged file: counts by image of 5,000 test images are 80 kB a cell in memory."""

MOST_SMALL_FILES = 250
"""Cells with files of their own that a running study lets come together."""

TOGETHER = ["comparison_id", "paradigm", "schedule", "seed", "cell_id"]
"""Columns by which cells are ordered in merged files: what is read together lies together."""


@dataclass(frozen=True)
class Compaction:
    """The outcome of a compaction.

    Attributes:
        cells: number of cells in the directory.
        before: number of files before.
        after: number of files now.
    """

    cells: int
    before: int
    after: int


def merge(results: Results, cell_ids: Collection[str]) -> None:
    """Puts cells into one file, and removes the files that held them alone.

    Raises:
        ResultsError: a file cannot be read or written.
    """
    before = results.records()
    _remove(results, before, [_write(results, cell_ids)], cell_ids)


def compact(results: Results) -> Compaction:
    """Puts all cells of a directory into few large files; readers get the same rows as before.

    It can be killed at any moment and run again.

    Raises:
        ResultsError: no results directory; a study runs with it; or a file is damaged, of another
            version, or contradicts another. Then nothing is changed.
    """
    results.require()
    with results.lock():
        before = results.records()
        for sentence in results.disagreements():
            raise ResultsError(f"{sentence}. Move one of the two away; then compact.")
        wanted = list(_groups(before[before["counts"]].sort_values(TOGETHER)))
        files = before.groupby("file")["cell_id"].agg(set)
        if len(wanted) < len(files):
            new = [group for group in wanted if set(group) not in files.tolist()]
            with working("merging files", len(new), "files") as part:
                written = [_write(results, group) for group in part.each(new)]
            _remove(results, before, written, [cell_id for group in new for cell_id in group])
    after = results.records()
    return Compaction(after["cell_id"].nunique(), len(files), after["file"].nunique())


def _groups(records: pd.DataFrame) -> Iterator[list[str]]:
    """Which cells go together, as many as `ROWS_A_FILE` and `CELLS_A_FILE` allow."""
    group: list[str] = []
    rows = 0.0
    for cell_id, count in zip(records["cell_id"], records["rows"], strict=True):
        if group and (rows + count > ROWS_A_FILE or len(group) == CELLS_A_FILE):
            yield group
            group, rows = [], 0.0
        group.append(cell_id)
        rows += count
    if group:
        yield group


def _write(results: Results, cell_ids: Collection[str]) -> str:
    """The name of a new file with these cells."""
    cells, evaluations = results.tables(cell_ids)
    ordered = cells.sort_by([(name, "ascending") for name in TOGETHER])
    return results.write(MERGED, ordered, evaluations)


def _remove(
    results: Results, before: pd.DataFrame, written: Collection[str], merged: Collection[str]
) -> None:
    """Removes the files of `before` all of whose cells are merged now.

    A file that was written may have been there before, with equal bytes.
    """
    for name, of_merged in before["cell_id"].isin(merged).groupby(before["file"]):
        if of_merged.all() and name not in written:
            results.storage.remove(name)
