"""What the soak finds: whether anything was lost, doubled, wrong, half-written or left behind."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from benchmarks.support.soak_faults import cells_in
from study.results import Results, ResultsError

TIMES = {"train_seconds", "total_train_seconds", "total_evaluate_seconds", "total_seconds"}

NOT_COMPARED = {*TIMES, "finished_at", "code_version", "shared_prefix"}
"""Columns in which an interrupted study may differ: times, the commit, and that cells whose fork
point was lost run straight, to the same numbers."""


class Recorded:
    """The cells of a results directory, as they were when they were first seen complete.

    Args:
        results: the directory.

    Attributes:
        rows: cell id -> digest of all its rows.
    """

    def __init__(self, results: Path) -> None:
        self._path = results
        self._ids: dict[str, list[str]] = {}  # file -> ids of its cells
        self.rows: dict[str, str] = {}

    def ids(self) -> list[str]:
        """Recorded cells, each as often as a file holds it."""
        paths = list(self._path.glob("cells/*.parquet"))
        for path in paths:
            if path.name not in self._ids and (found := cells_in(path)):
                self._ids[path.name] = found
        return [cell_id for path in paths for cell_id in self._ids.get(path.name, ())]

    def look(self, flipped: Iterable[str]) -> None:
        """Takes down the cells that were not complete before.

        Args:
            flipped: cells that are left out, since a byte of their files was flipped.
        """
        new = set(self.ids()) - self.rows.keys() - set(flipped)
        try:
            self.rows |= digests(Results(self._path), sorted(new))
        except ResultsError:  # a flipped byte that the study has not found yet; so next time
            return


def digests(
    results: Results, cell_ids: list[str] | None = None, without: Iterable[str] = ()
) -> dict[str, str]:
    """Cell id -> a digest of its rows, bit by bit.

    Args:
        results: the directory.
        cell_ids: only those; None: all.
        without: columns that do not count.

    Raises:
        ResultsError: a file is damaged, or two contradict each other.
    """
    found: defaultdict[str, hashlib._Hash] = defaultdict(hashlib.sha256)
    for table in results.tables(cell_ids):
        kept = table.drop_columns([name for name in table.column_names if name in set(without)])
        if "split" in kept.column_names:
            kept = kept.sort_by([(n, "ascending") for n in ("budget_fraction", "split")])
        for row in kept.to_pylist():
            found[row["cell_id"]].update(repr(row).encode())
    return {cell_id: digest.hexdigest() for cell_id, digest in found.items()}


def faults(
    reference: Path, results: Path, recorded: Recorded, flipped: set[str]
) -> dict[str, int]:
    """Counts of faults that must all be 0.

    Args:
        reference: of the uninterrupted study.
        results: of the other one.
        recorded: its cells, as they were when they were complete.
        flipped: cells of whose results a byte was flipped, so that they may have run again.
    """
    there = Results(results)
    expected, got = (digests(each, without=NOT_COMPARED) for each in (Results(reference), there))
    now = digests(there)
    rows = there.evaluations(columns=["cell_id", "budget_fraction", "split"])
    twice = len(there.cells(columns=["cell_id"])) - len(got) + int(rows.duplicated().sum())
    changed = (now.get(each) != recorded.rows[each] for each in recorded.rows.keys() - flipped)
    return {
        "lost": len(expected.keys() - got.keys()),
        "doubled": twice + len(got.keys() - expected.keys()),
        "wrong (any bit but of times)": sum(
            got[each] != expected[each] for each in expected.keys() & got.keys()
        ),
        "half-written": len(there.survey().damaged) + len(list(results.rglob("*.part"))),
        "changed after they were complete": sum(changed),
        "checkpoints left": len(list(results.glob("checkpoints/*"))),
    }


def runs(database: str, ids: set[str]) -> dict[str, int]:
    """How many of MLflow's runs are missing or doubled; must be 0."""
    import mlflow

    mlflow.set_tracking_uri(database)
    every = mlflow.search_runs(experiment_names=["digits"], output_format="list")
    found = Counter(run.data.tags["cell_id"] for run in every if "cell_id" in run.data.tags)
    return {
        "MLflow runs missing": len(ids - found.keys()),
        "MLflow runs doubled": found.total() - len(found),
    }
