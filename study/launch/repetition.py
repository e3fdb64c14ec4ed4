"""Trains a recorded cell once more and compares the numbers.

The results directory is only read.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from study import tasks
from study.cell import AnyCell
from study.cell.version import code_version
from study.cell.work import Job, Work
from study.errors import RequestError
from study.kinds import kind_of
from study.launch.run_job import run_job
from study.results import FURTHER, METRICS, Results
from study.results.one_cell import cell_of, row_of
from study.results.records import DUPLICATE_TOLERANCE
from study.tasks.sources.places import NO_PLACES, Places
from study.terminal import counted
from study.terminal.working import duration, working

_CIRCUMSTANCES = {
    "status": "status",
    "steps": "steps",
    "device": "device",
    "threads": "CPU threads",
    "micro_batch": "mosaics, posts or captions a pass",
    "code_version": "code version",
    "pack": "cells trained together",
    "shared_prefix": "first phase shared",
}
"""Columns of `CELLS_SCHEMA` that are no part of a cell -> name for people."""

_BITS = {
    "instance_right": "instances that are right",
    "instance_known": "instances whose foreground is known",
    "instance_saif": "instances in SAIF",
}
_LISTS = {"heatmap": "heat map", "predictor_mean": "mean predictor", **_BITS}
"""Columns of `EVALUATIONS_SCHEMA` that hold lists of numbers -> name for people."""

_TAKEN = ["budget_fraction", "split"]
_TAKEN += ["step", "mosaics_seen", "compute_flops", "num_evaluated", "instances"]
"""Where an evaluation was taken: numbers are of one only where all of it is equal."""

_ON_A_GPU = (
    "; a GPU adds numbers in an order that varies, so two runs of a cell agree to rounding only, "
    "which training magnifies: compare the difference with the spread over seeds"
)
_ONE_ONLY = (
    ", where only one of them has a finite number after so many steps and of these instances"
)


def repeat(results: Results, asked: str, places: Places = NO_PLACES) -> tuple[str, bool]:
    """Trains a recorded cell from its start, alone, and compares every evaluation.

    It uses the recorded threads and inputs a pass, and the recorded kind of device if there is
    one. Packed and forked cells have the numbers of a straight run, so they are repeated as one.

    Args:
        results: where the cell is recorded.
        asked: its id, or the beginning of it.
        places: of the task's files.

    Returns:
        One line for people; and whether both ended alike and every number agrees within
        `DUPLICATE_TOLERANCE`.

    Raises:
        RequestError: no such cell or several, the cell cannot be repeated, or the data differs
            from what it was trained on.
    """
    recorded = row_of(results, asked)
    cell = _repeatable(recorded)
    tasks.require_use(places, [cell.task])
    with tempfile.TemporaryDirectory(prefix="study-repeat-") as folder:
        again = Results(folder)
        again.prepare()
        work = Work(
            study=recorded["study"],
            kind=recorded["kind"],
            results=folder,
            code_version=code_version(),
            threads=int(recorded["threads"]),
            gpu=not str(recorded["device"]).startswith("cpu"),
            **places._asdict(),
            micro_batch=None if pd.isna(recorded["micro_batch"]) else int(recorded["micro_batch"]),
            checkpoint_every=math.inf,
            networks=results.url,
        )
        _train(cell, work)
        (row,) = again.cells().to_dict("records")
        evaluations = results.evaluations([cell.id])
        largest, where, close = compare_evaluations(evaluations, again.evaluations())
    equal = close and all(recorded[name] == row[name] for name in ("status", "steps"))
    verdict, of_what = "NOT equal: ", where or "nowhere"
    if equal:
        verdict, of_what = "", "metrics, heat maps, instances"
    text = (
        f"cell {cell.id}: repeated in {duration(row['total_seconds'])}; "
        f"{counted(len(evaluations), 'evaluation')}, {verdict}largest difference {largest:.2g} "
        f"({of_what})"
    )
    if not equal:
        differ = "; ".join(differing_circumstances(recorded, row)) or "no recorded circumstance"
        text += f", allowed {DUPLICATE_TOLERANCE:g}; what differs: {differ}"
        text += _ON_A_GPU if work.gpu else ""
    return text, equal


def compare_evaluations(recorded: pd.DataFrame, again: pd.DataFrame) -> tuple[float, str, bool]:
    """Compares every metric, heat map and predictor of two runs of one cell, by evaluation.

    A bit of an instance is its share of all instances, so that it weighs as in a metric.

    Args:
        recorded: rows of `EVALUATIONS_SCHEMA` of one cell.
        again: likewise, in any order.

    Returns:
        The largest absolute difference (fractions; nats for `loss`), infinite if only one of the
        two has a number, or has it after so many steps and of these instances; its place for
        people, empty if it is 0; and whether all numbers agree within `DUPLICATE_TOLERANCE`,
        absolute and relative, as copies of a cell have to.
    """
    number = [*_TAKEN, "column", "position"]
    both = _numbers(recorded).merge(_numbers(again), "outer", number, suffixes=("_then", "_now"))
    then, now = both["value_then"], both["value_now"]
    close = np.isclose(then, now, DUPLICATE_TOLERANCE, DUPLICATE_TOLERANCE)
    both["difference"] = (then - now).abs().fillna(math.inf).where(then != now, 0.0)
    # If some are not close, only those count: a large loss may differ by more and still be close.
    counting = both if close.all() else both[~close]
    if not counting["difference"].any():
        return 0.0, "", True
    worst = counting.nlargest(1, "difference").iloc[0]
    percent = f"{100 * worst['budget_fraction']:g} % of the budget"
    where = f"{worst['column']}, {worst['split']} split at {percent}"
    if math.isinf(worst["difference"]):
        where += _ONE_ONLY
    return float(worst["difference"]), where, bool(close.all())


def differing_circumstances(recorded: Mapping[Any, Any], again: Mapping[Any, Any]) -> list[str]:
    """Texts such as ``CPU threads 4 then, 1 now``.

    Args:
        recorded: a row of `CELLS_SCHEMA`.
        again: another row of the same cell.
    """
    then, now = _circumstances(recorded), _circumstances(again)
    return [
        f"{name} {then.get(name, 'unknown')} then, {now.get(name, 'unknown')} now"
        for name in then | now
        if then.get(name) != now.get(name)
    ]


def _circumstances(row: Mapping[Any, Any]) -> dict[str, str]:
    """Name for people -> text, which equals itself where it stands for a missing number."""
    texts = {name: str(row[column]) for column, name in _CIRCUMSTANCES.items()}
    return texts | json.loads(row["package_versions"])


def _repeatable(row: Mapping[Any, Any]) -> AnyCell:
    """The recorded cell; refuses one that failed or that a scheduler stopped."""
    if row["status"] == "failed":
        raise RequestError(
            f"cell {row['cell_id']} failed ({row['status_reason']}), so there is nothing to "
            "repeat. The command of its study tries it again."
        )
    if row["status"] == "censored":
        why = row["status_reason"] or "stopped by the scheduler"
        raise RequestError(
            f"cell {row['cell_id']} was {why}: what a scheduler stops depends on the other cells, "
            "so it cannot be repeated alone."
        )
    return cell_of(row, kind_of(row).cell)


def _train(cell: AnyCell, work: Work) -> None:
    """Runs the cell, and shows how far it is where that takes long."""
    with working(f"training cell {cell.id}", 100, "%") as part:

        def report(event: Mapping[str, Any]) -> None:
            if event["event"] == "evaluation":
                part.step(100 * event["budget_fraction"] - part.done)

        statuses = run_job(Job(((cell,),)), work, report)
    if "failed" in statuses.values():
        raise RequestError(f"cell {cell.id} needs more memory than there is now.")


def _numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Every number that is there, one a row: where it was taken, its column and place in a list.

    Bits are shares of their instances.
    """
    shares = {
        name: [
            np.unpackbits(np.frombuffer(bits or b"", np.uint8)) / count
            for bits, count in zip(rows[name], rows["num_evaluated"], strict=True)
        ]
        for name in _BITS
    }
    named = rows.assign(**shares).rename(columns=_LISTS)
    columns = [*METRICS, *FURTHER, *_LISTS.values()]
    numbers = named.melt(_TAKEN, columns, "column").explode("value")
    numbers["position"] = numbers.groupby(level=0).cumcount()
    return numbers.astype({"value": float}).dropna(subset="value")
