"""Merges the files of cells into larger ones, all at once or as a study goes.

A merged file is written before the files whose cells it holds are removed. So a kill loses
nothing, and doubles nothing, since of several records of a cell one counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from study.results.cell_file import MERGED
from study.results.records import Holding
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
    before = results.holdings()
    merged = _write(results, cell_ids)
    held = set(cell_ids)
    _remove(results, (name for name in before if before[name].cell_ids <= held), {merged})


def compact(results: Results) -> Compaction:
    """Puts all cells of a directory into few large files; readers get the same rows as before.

    It can be killed at any moment and run again.

    Raises:
        ResultsError: no results directory; a study runs with it; or a file is damaged, of another
            version, or contradicts another. Then nothing is changed.
    """
    results.require()
    with results.lock():
        before = results.holdings()
        for sentence in results.disagreements():
            raise ResultsError(f"{sentence}. Move one of the two away; then compact.")
        groups = list(_groups(results, before))
        if len(groups) < len(before):
            with working("merging files", len(groups), "files") as part:
                merged = {_write(results, group) for group in part.each(groups)}
            _remove(results, before, merged)
    return Compaction(sum(map(len, groups)), len(before), min(len(groups), len(before)))


def _groups(results: Results, holdings: Mapping[str, Holding]) -> Iterator[list[str]]:
    """Which cells go together, as many as `ROWS_A_FILE` and `CELLS_A_FILE` allow."""
    rows_of = {
        cell_id: holding.num_rows / len(holding.cell_ids)
        for holding in holdings.values()
        for cell_id in holding.cell_ids
    }
    group: list[str] = []
    rows = 0.0
    there = results.cells(rows_of, TOGETHER)  # a shard may have recorded others meanwhile
    for cell_id in there.sort_values(TOGETHER)["cell_id"]:
        if group and (rows + rows_of[cell_id] > ROWS_A_FILE or len(group) == CELLS_A_FILE):
            yield group
            group, rows = [], 0.0
        group.append(cell_id)
        rows += rows_of[cell_id]
    if group:
        yield group


def _write(results: Results, cell_ids: Collection[str]) -> str:
    """The name of a new file with these cells."""
    cells, evaluations = results.tables(cell_ids)
    ordered = cells.sort_by([(name, "ascending") for name in TOGETHER])
    return results.write(MERGED, ordered, evaluations)


def _remove(results: Results, before: Iterable[str], merged: Collection[str]) -> None:
    """Removes files that were there before, but those that merging made anew with equal bytes."""
    for name in before:
        if name not in merged:
            results.storage.remove(name)
