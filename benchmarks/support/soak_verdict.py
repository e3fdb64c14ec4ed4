"""What the soak finds: whether anything was lost, doubled, wrong, half-written or left behind."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from pathlib import Path

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
        self._counted = Results(results)  # which looks into each file once
        self.rows: dict[str, str] = {}

    def count(self) -> int:
        """How many cells are recorded."""
        return len(self._counted.finished())

    def look(self, flipped: Set[str]) -> None:
        """Takes down the cells that were not complete before, but for the flipped ones."""
        new = self._counted.finished() - self.rows.keys() - flipped
        with contextlib.suppress(ResultsError):  # a flipped byte that is not found yet; next time
            self.rows |= digests(Results(self._path), new)


def digests(
    results: Results, cell_ids: Iterable[str] | None = None, without: Set[str] = frozenset()
) -> dict[str, str]:
    """Cell id -> a digest of its rows, bit by bit, without some columns.

    Raises:
        ResultsError: a file is damaged, or two contradict each other.
    """
    found: defaultdict[str, hashlib._Hash] = defaultdict(hashlib.sha256)
    cells, evaluations = results.tables(cell_ids)
    order = [(name, "ascending") for name in ("budget_fraction", "split")]
    for table in (cells, evaluations.sort_by(order)):
        kept = table.drop_columns([name for name in table.column_names if name in without])
        for row in kept.to_pylist():
            found[row["cell_id"]].update(repr(row).encode())
    return {cell_id: digest.hexdigest() for cell_id, digest in found.items()}


def faults(
    reference: Path, results: Path, recorded: Recorded, flipped: Set[str]
) -> dict[str, int]:
    """Counts of faults that must all be 0.

    Args:
        reference: of the uninterrupted study.
        results: of the other one.
        recorded: its cells, as they were when they were complete.
        flipped: cells of whose results a byte was flipped, so that they may have run again.
    """
    there = Results(results)
    expected, got = (digests(Results(each), without=NOT_COMPARED) for each in (reference, results))
    differing = [i for i in expected.keys() & got.keys() if expected[i] != got[i]]
    for cell_id in differing:
        print(f"cell {cell_id} differs", file=sys.stderr)
    rows = there.evaluations(columns=["cell_id", "budget_fraction", "split"])
    now = digests(there)
    return {
        "lost": len(expected.keys() - got.keys()),
        "doubled": int(rows.duplicated().sum()) + len(got.keys() - expected.keys()),
        "wrong (any bit but of times)": len(differing),
        "half-written": len(there.survey().damaged) + len(list(results.rglob("*.part"))),
        "changed after they were complete": sum(
            now.get(each) != recorded.rows[each] for each in recorded.rows.keys() - flipped
        ),
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
