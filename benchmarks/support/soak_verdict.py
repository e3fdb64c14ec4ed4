"""What the soak finds: whether anything was lost, doubled, wrong, half-written or left behind."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from study.results import Results, ResultsError
from study.results.cell_file import own_cell

TIMES = {"train_seconds", "total_train_seconds", "total_evaluate_seconds", "total_seconds"}

NOT_COMPARED = {*TIMES, "finished_at", "code_version", "shared_prefix"}
"""Columns in which an interrupted study may differ: times, the commit, and that cells whose fork
point was lost run straight, to the same numbers."""


class Recorded:
    """The cells of a results directory, as they were when they were first seen complete.

    Args:
        results: the directory.
    """

    def __init__(self, results: Path) -> None:
        self._path = results
        self._ids: dict[str, list[str]] = {}  # file of many cells -> their ids
        self.rows: dict[str, str] = {}
        """Cell id -> digest of all its rows."""

    def ids(self) -> list[str]:
        """Recorded cells, each as often as a file holds it."""
        return [i for path in self._path.glob("cells/*.parquet") for i in self._ids_in(path)]

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

    def _ids_in(self, path: Path) -> list[str]:
        if own := own_cell(path.name):
            return [own]
        if path.name not in self._ids:
            try:
                rows = pq.read_table(path, columns=["cell_id"])
            except (pa.ArrowException, OSError):  # flipped, or merged with others meanwhile
                return []
            self._ids[path.name] = rows["cell_id"].unique().to_pylist()
        return self._ids[path.name]


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
    expected = digests(Results(reference), without=NOT_COMPARED)
    there = Results(results)
    got = digests(there, without=NOT_COMPARED)
    now = digests(there)
    rows = there.evaluations(columns=["cell_id", "budget_fraction", "split"])
    left = [*results.glob("checkpoints/*")]
    return {
        "lost": len(expected.keys() - got.keys()),
        "doubled": len(there.cells(columns=["cell_id"])) - len(got)
        + int(rows.duplicated().sum()) + len(got.keys() - expected.keys()),
        "wrong (any bit but of times)": sum(
            got[cell_id] != digest for cell_id, digest in expected.items() if cell_id in got
        ),
        "half-written": len(there.survey().damaged) + len(list(results.rglob("*.part"))),
        "changed after they were complete": sum(
            now.get(cell_id) != digest
            for cell_id, digest in recorded.rows.items()
            if cell_id not in flipped
        ),
        "checkpoints left": len(left),
    }  # fmt: skip


def runs(database: str, ids: set[str]) -> dict[str, int]:
    """How many of MLflow's runs are missing or doubled; must be 0."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=database)
    experiment = client.get_experiment_by_name("digits").experiment_id
    found: Counter[str] = Counter()
    token = None
    while True:
        page = client.search_runs([experiment], max_results=1000, page_token=token)
        found.update(run.data.tags.get("cell_id", "") for run in page)
        token = page.token
        if not token:
            break
    del found[""]
    return {
        "MLflow runs missing": len(ids - found.keys()),
        "MLflow runs doubled": found.total() - len(found),
    }
