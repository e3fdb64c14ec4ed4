"""Merges the files of cells into larger ones, all at once or as a study goes.

A merged file is written before the files whose cells it holds are removed. So a kill loses
nothing, and doubles nothing, since of several records of a cell one counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pandas as pd

from study.results.cell_file import MERGED
from study.results.results import Results
from study.storage.storage import ResultsError
from study.terminal.working import working

ROWS_A_FILE = 1_000_000
"""Rows of evaluations in a merged file, 300 MB in memory; a cell with more has its own file."""

CELLS_A_FILE = 5_000
"""Cells in a merged file, whose footer has the JSON of each."""

MOST_SMALL_FILES = 250
"""Cells with files of their own that a running study lets come together."""

_AT_A_TIME = 16  # files of an object store that are removed side by side

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

    Cells with several records stay as they are: these may disagree, see `compact`.

    Raises:
        ResultsError: a file cannot be read or written.
    """
    records = results.records()
    mine = records["cell_id"].isin(cell_ids) & ~records.duplicated("cell_id", keep=False)
    if mine.any():
        alone = mine.groupby(records["file"]).all()
        _remove(results, alone.index[alone], [_write(results, records.loc[mine, "cell_id"])])


def compact(results: Results) -> Compaction:
    """Puts all cells of a directory into few large files; readers get the same rows as before.

    It can be killed at any moment and run again.

    Raises:
        ResultsError: no results directory; a study runs with it; or a file is damaged, of another
            version, or contradicts another. Then nothing is changed.
    """
    results.require()
    with results.lock():
        records = results.records()
        for sentence in results.disagreements():
            raise ResultsError(f"{sentence}. Move one of the two away; then compact.")
        groups = {frozenset(group): group for group in _groups(records[records["counts"]])}
        files = records.groupby("file").agg({"cell_id": frozenset, "counts": "all"})
        if len(groups) < len(files):
            whole = files.loc[files["counts"], "cell_id"]
            kept = {cell_ids: name for name, cell_ids in whole.items() if cell_ids in groups}
            missing = [group for cell_ids, group in groups.items() if cell_ids not in kept]
            with working("merging files", len(missing), "files") as part:
                written = [_write(results, group) for group in part.each(missing)]
            _remove(results, files.index, [*kept.values(), *written])
    cells = records["cell_id"].nunique()
    return Compaction(cells, len(files), min(len(groups), len(files)))


def _groups(records: pd.DataFrame) -> Iterator[list[str]]:
    """Which cells go together, as many as `ROWS_A_FILE` and `CELLS_A_FILE` allow."""
    group: list[str] = []
    total = 0.0
    ordered = records.sort_values(TOGETHER)
    for cell_id, rows in zip(ordered["cell_id"], ordered["rows"], strict=True):
        if group and (total + rows > ROWS_A_FILE or len(group) == CELLS_A_FILE):
            yield group
            group, total = [], 0.0
        group.append(cell_id)
        total += rows
    if group:
        yield group


def _write(results: Results, cell_ids: Collection[str]) -> str:
    """The name of a new file with these cells."""
    rows, texts = results.rows(cell_ids)
    return results.write(MERGED, rows.sort_by([(name, "ascending") for name in TOGETHER]), texts)


def _remove(results: Results, names: Iterable[str], but: Collection[str]) -> None:
    """Removes files, but some: one that was written may have been there, with equal bytes."""
    gone = [name for name in names if name not in but]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        list(pool.map(results.storage.remove, gone))
