"""How cells end that take no steps: what their method found, in how much time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from scipy.linalg import LinAlgError

from study.cell import AnyCell
from study.cell.events import Ended, Report

Columns = dict[str, Any]
"""Of `study.results.CELLS_SCHEMA`."""

Rows = dict[str, dict[str, Any]]
"""Split -> its row of `study.results.EVALUATIONS_SCHEMA`."""


def ended(cell: AnyCell, find: Callable[[], tuple[Columns, Rows]], report: Report | None) -> Ended:
    """Runs a method and times it; one that finds no numbers has diverged.

    Args:
        cell: whose method it is.
        find: the method; gives what it alone knows. Raises LinAlgError: at a low temperature K + T
            has no factor in float64.
        report: told of the one evaluation.
    """
    columns: Columns = {
        "status": "done", "steps": 0, "total_evaluate_seconds": 0.0, "shared_prefix": False,
    }  # fmt: skip
    rows: Rows = {}
    started = time.perf_counter()
    try:
        found, rows = find()
        columns |= found
    except LinAlgError as error:
        columns |= {"status": "diverged", "status_reason": str(error)}
    seconds = time.perf_counter() - started
    usual = {"step": 0, "budget_fraction": 1.0, "compute_flops": 0, "train_seconds": seconds}
    if rows and report:
        accuracy = rows["validation"]["accuracy"]
        told = {"budget_fraction": 1.0, "accuracy": accuracy, "saif": None}
        report({"event": "evaluation", "cells": {cell.id: accuracy}, **told})
    return Ended(
        columns["status"],
        columns | {"total_train_seconds": seconds},
        [{**usual, "split": split, **row} for split, row in rows.items()],
    )
