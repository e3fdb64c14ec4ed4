"""What runs of MLflow hold, in the form in which tests ask for it."""

from __future__ import annotations

from study.tracking.runs import Run

NOTE = "mlflow.note.content"
"""The tag of a run's note."""


def metrics_of(run: Run) -> dict[str, float]:
    """Name -> value, without curves and what else is of a split."""
    return {point.name: point.value for point in run.points if "/" not in point.name}


def curves_of(run: Run) -> dict[str, list[tuple[int, float]]]:
    """Name -> (step, value), in their order, of what is of a split."""
    found: dict[str, list[tuple[int, float]]] = {}
    for point in run.points:
        if "/" in point.name:
            found.setdefault(point.name, []).append((point.step, point.value))
    return found
