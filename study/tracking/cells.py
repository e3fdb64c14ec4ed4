"""The run of a cell: what people look at of it, from its rows in the results."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from study.kinds import kind_of
from study.results import (
    FOUND_NUMBERS,
    FURTHER,
    HELD,
    METRICS,
    OF_DATA,
    OTHER_NUMBERS,
    RECORDED,
    SET_UP,
    TRAINED,
)
from study.tracking.runs import METRIC_STEP_FLOPS, Point, Run

CURVES = ("accuracy", "saif", "loss")
"""Of these a run has every evaluation but those of the training split, of all else the last:
people look at no more, and a run of four times as many numbers takes twice as long."""

PARAMS = (
    "task", "num_classes", "n", "precision", *TRAINED, "paradigm", "schedule", "lr", "last_lr",
    "switch_point", "seed", "stage", *OF_DATA, *SET_UP, "budget_amount", "budget_unit",
)  # fmt: skip

TAGS = (
    "cell_id", "comparison_id", "status", "status_reason", "data_digest", "device", "code_version",
)  # fmt: skip

_OF_AN_EVALUATION = (*METRICS, *FURTHER, *HELD, *OTHER_NUMBERS)
_OF_A_CELL = (*FOUND_NUMBERS, "total_train_seconds")


def of_cell(cell: Mapping[str, Any], evaluations: pd.DataFrame, state: str) -> Run:
    """The run of a cell.

    Args:
        cell: a row of `study.results.CELLS_SCHEMA`.
        evaluations: its rows of `study.results.EVALUATIONS_SCHEMA`.
        state: of the run.
    """
    kind = None if cell["kind"] == RECORDED else kind_of(cell)
    recorded = (cell["paradigm"], cell["schedule"], f"seed={cell['seed']}")
    own = {"cell.json": json.dumps(json.loads(cell["cell"]), indent=2).encode()}
    return Run(
        key=cell["cell_id"],
        state=state,
        name=kind.run_name(cell) if kind else " ".join(filter(is_known, recorded)),
        tags=_texts(cell, TAGS),
        params=_texts(cell, PARAMS),
        points=[*points_of(cell, evaluations)],
        files=lambda: own | (kind.artifacts(cell, evaluations) if kind else {}),
    )


def points_of(cell: Mapping[str, Any], evaluations: pd.DataFrame) -> Iterator[Point]:
    """The metrics of a cell; missing values are left out.

    The steps of runs that were recorded without their compute are the examples or seconds that
    they were trained for.
    """
    finished = datetime.datetime.fromisoformat(cell["finished_at"]).timestamp()
    rows = records(evaluations)
    last = {row["split"]: row for row in rows}
    step = 0
    for row in rows:
        amounts = (row[name] for name in ("compute_flops", "mosaics_seen", "train_seconds"))
        step = int(next(amount for amount in amounts if is_known(amount)))
        step //= METRIC_STEP_FLOPS if is_known(row["compute_flops"]) else 1
        before_the_end = cell["total_train_seconds"] - row["train_seconds"]
        at = finished - (before_the_end if is_known(before_the_end) else 0)
        own = json.loads(row["measures"]) if is_known(row["measures"]) else {}
        for name in (*_OF_AN_EVALUATION, *own):
            value = own[name] if name in own else row[name]
            curve = name in CURVES and row["split"] != "train"
            if is_known(value) and (curve or row is last[row["split"]]):
                yield Point(f"{row['split']}/{name}", value, int(1000 * at), step)
    for name in _OF_A_CELL:
        if is_known(cell[name]):
            yield Point(name, cell[name], int(1000 * finished), step)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as dictionaries."""
    # `DataFrame.to_dict` takes five times as long for the few rows of a cell.
    columns = {str(name): table[name].tolist() for name in table.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def is_known(value: Any) -> bool:
    """Whether a value is neither missing nor an empty text."""
    return not pd.isna(value) and value != ""


def _texts(cell: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """The known values of a cell as the texts of tags or parameters."""
    known = ((name, cell[name]) for name in names if is_known(cell[name]))
    return {name: f"{v:g}" if isinstance(v, float) else str(v) for name, v in known}
