"""What the soak finds: whether anything was lost, doubled, wrong, half-written or left behind."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Set
from pathlib import Path

from study.results import Results

TIMES = {"train_seconds", "total_train_seconds", "total_evaluate_seconds", "total_seconds"}

NOT_COMPARED = {*TIMES, "finished_at", "code_version", "shared_prefix"}
"""Columns in which an interrupted study may differ: times, the commit, and that cells whose fork
point was lost run straight, to the same numbers."""


def ends(results: Path) -> dict[str, str]:
    """Cell id -> when it was recorded.

    Raises:
        ResultsError: a file is damaged.
    """
    cells = Results(results).cells(columns=["cell_id", "finished_at"])
    return dict(zip(cells["cell_id"], cells["finished_at"], strict=True))


def rows(results: Path) -> dict[str, list[str]]:
    """Cell id -> its rows as text, to the last bit, without the columns that may differ.

    Raises:
        ResultsError: a file is damaged, or two contradict each other.
    """
    found = defaultdict(list)
    for table in Results(results).tables():
        compared = [name for name in table.column_names if name not in NOT_COMPARED]
        for row in table.select(compared).to_pylist():
            found[row["cell_id"]].append(repr(row))
    return {cell_id: sorted(texts) for cell_id, texts in found.items()}


def faults(
    reference: Path, results: Path, recorded: Mapping[str, str], flipped: Set[str]
) -> dict[str, int]:
    """Counts of faults that must all be 0.

    Args:
        reference: of the uninterrupted study.
        results: of the other one.
        recorded: cell id -> when it was seen to be recorded.
        flipped: cells of whose results a byte was flipped, so that they may have run again.
    """
    expected, got, now = rows(reference), rows(results), ends(results)
    differing = [i for i in expected.keys() & got.keys() if expected[i] != got[i]]
    for cell_id in differing:
        print(f"cell {cell_id} differs", file=sys.stderr)
    damaged = Results(results).survey().damaged
    return {
        "lost": len(expected.keys() - got.keys()),
        "doubled": sum(len(texts) > len(expected.get(i, ())) for i, texts in got.items()),
        "wrong (any bit but of times)": len(differing),
        "half-written": len(damaged) + len([*results.rglob("*.part")]),
        "changed after they were complete": sum(
            now.get(i) != end for i, end in recorded.items() if i not in flipped
        ),
        "checkpoints left": len([*results.glob("checkpoints/*")]),
    }


def runs(database: str, cell_ids: Set[str]) -> dict[str, int]:
    """How many of MLflow's runs are missing or doubled; must be 0."""
    import mlflow

    mlflow.set_tracking_uri(database)
    logged = mlflow.search_runs(experiment_names=["digits"])["tags.cell_id"].dropna()
    return {
        "MLflow runs missing": len(cell_ids - {*logged}),
        "MLflow runs doubled": int(logged.duplicated().sum()),
    }
