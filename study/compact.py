"""The command `python -m study.compact RESULTS_DIR`: merges many small files into few."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from study.errors import ResultsError
from study.terminal.command import DONE, Parser, guarded, importing, run_as_command
from study.terminal.working import working

if TYPE_CHECKING:
    from study.results import Results

ROWS_A_FILE = 1_000_000
"""Rows of evaluations in a merged file, 300 MB in memory; a cell with more has its own file."""

CELLS_A_FILE = 5_000
"""Cells in a merged file: counts by image of 5,000 test images are 80 kB a cell in memory."""


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


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 done or 2 unusable request."""
    stopped = "stopped; no result is lost, the same command goes on"
    return guarded("study.compact", lambda: _run(argv), stopped)


def _run(argv: Sequence[str] | None) -> int:
    args = _parser().parse_args(argv)
    with importing():
        from study.results import Results

    done = compact(Results(args.results_dir))
    if done.before == done.after:
        files = "1 file" if done.before == 1 else f"{done.before} files"
        print(f"{args.results_dir}: nothing to do ({done.cells} cells in {files})")
    else:
        print(
            f"{args.results_dir}: {done.cells} cells, {done.before} files in each of cells/ and "
            f"evaluations/ merged into {done.after}"
        )
    return DONE


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
    from study.results import COMPACT_PREFIX

    together: list[list[str]] = []
    rows = 0
    for cell_id, count in num_rows.items():
        full = together and (rows + count > ROWS_A_FILE or len(together[-1]) == CELLS_A_FILE)
        if not together or full:
            together.append([])
            rows = 0
        together[-1].append(cell_id)
        rows += count
    return {
        f"{COMPACT_PREFIX}{hashlib.sha256(''.join(ids).encode()).hexdigest()[:16]}.parquet": ids
        for ids in together
    }


def _parser() -> Parser:
    parser = Parser("study.compact", _ABOUT, _EXAMPLES)
    parser.add_results_dir()
    return parser


_ABOUT = """Merges the small files of a results directory into few large ones. Every row stays as
it is, and studies and analyses go on with the directory as before. Refuses while a study runs; can
be stopped at any moment and run again."""

_EXAMPLES = """
examples:
  python -m study.compact results
  python -m study.compact s3://bucket/results

Results of another machine are merged by copying, whether compacted or not:
  cp -r other/cells results/cells/other
  cp -r other/evaluations results/evaluations/other
  python -m study.compact results
"""

if __name__ == "__main__":
    run_as_command(main)
