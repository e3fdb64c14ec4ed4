"""Trains a recorded cell once more and compares the numbers; the results are only read."""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from study import parts, tasks
from study.cell import AnyCell
from study.cell.version import code_version
from study.cell.work import Job, Work
from study.errors import RequestError
from study.kernels import parsed
from study.kinds import kind_of
from study.launch.run_job import run_job
from study.launch.workplace import results_in
from study.results import ENDED, FURTHER, METRICS, OTHERS, Results
from study.results.one_cell import cell_of, row_of
from study.results.records import DUPLICATE_TOLERANCE
from study.tasks.sources.places import Places
from study.terminal import counted
from study.terminal.command import DONE, FAILED
from study.terminal.working import duration, working

_BITS = ("instance_right", "instance_known", "instance_saif")
"""Columns of `EVALUATIONS_SCHEMA` that hold a bit of each instance."""

_TAKEN = ["budget_fraction", "split", "step", "compute_flops", "num_evaluated", "instances"]
"""Where an evaluation was taken: numbers are of one only where all of it is equal."""

_CIRCUMSTANCES = [
    "status", "steps", "device", "threads", "micro_batch", "kernels", "code_version",
]  # fmt: skip


def again(asked: str, url: str, study: str, places: Places) -> int:
    """Trains a recorded cell from its start, alone, and says the largest difference.

    It uses the recorded threads and inputs a pass, and the recorded kind of device if there is
    one. Packed and forked cells have the numbers of a straight run, so they are trained as one.

    Args:
        asked: its id, or the beginning of it.
        url: of the results directory where it is recorded.
        study: of which it is.
        places: of its data.

    Returns:
        The exit status: `FAILED` unless both ended alike and every number agrees within
        `DUPLICATE_TOLERANCE`.

    Raises:
        RequestError: no such cell or several, the cell cannot be trained again, or the data
            differs from what it was trained on.
    """
    results = results_in(url)
    recorded = row_of(results, asked)
    cell = _repeatable(recorded, study)
    tasks.require_use(places, [cell.task])
    with tempfile.TemporaryDirectory(prefix="study-again-") as folder:
        anew = Results(folder)
        anew.prepare()
        work = Work(
            study=recorded["study"],
            kind=recorded["kind"],
            results=folder,
            code_version=code_version(),
            threads=int(recorded["threads"]),
            gpu=not str(recorded["device"]).startswith("cpu"),
            places=places,
            parts=parts.loaded(),
            kernels=() if pd.isna(recorded["kernels"]) else parsed(recorded["kernels"]),
            micro_batch=None if pd.isna(recorded["micro_batch"]) else int(recorded["micro_batch"]),
            checkpoint_every=math.inf,
            networks=results.url,
        )
        with working(f"training cell {cell.id}"):
            statuses = run_job(Job(((cell,),)), work)
        if "failed" in statuses.values():
            raise RequestError(f"cell {cell.id} needs more memory than there is now.")
        (row,) = anew.cells().to_dict("records")
        then, now = results.evaluations([cell.id]), anew.evaluations()
        then["instances"] = then["instances"].replace(_renamed(then, results, now, anew))
    largest, where = largest_difference(then, now)
    equal = not where and all(recorded[name] == row[name] for name in ("status", "steps"))
    said = (
        f"cell {cell.id}: trained again in {duration(row['total_seconds'])}; "
        f"{counted(len(then), 'evaluation')}, {'' if equal else 'NOT equal: '}"
        f"largest difference {largest:.2g} ({where or 'metrics, heat maps, instances'})"
    )
    if not equal:
        differ = "; ".join(_differing(recorded, row)) or "no recorded circumstance"
        said += f", allowed {DUPLICATE_TOLERANCE:g}; what differs: {differ}"
    print(said)
    return DONE if equal else FAILED


def _renamed(
    then: pd.DataFrame, results: Results, now: pd.DataFrame, anew: Results
) -> dict[str, str]:
    """The new name of instances that an earlier version recorded without their classes."""
    names = (each["instances"].dropna().unique() for each in (then, now))
    return {
        old: new
        for old, new in itertools.product(*names)
        if (one := results.instances(old)) is not None
        and (other := anew.instances(new)) is not None
        and np.array_equal(one.base_images, other.base_images)
    }


def largest_difference(then: pd.DataFrame, now: pd.DataFrame) -> tuple[float, str]:
    """The largest absolute difference of two runs of a cell in any metric, heat map or instance.

    A bit of an instance is its share of all instances, so that it weighs as in a metric.

    Args:
        then, now: rows of `EVALUATIONS_SCHEMA` of one cell, in any order.

    Returns:
        The difference (fractions; nats for `loss`), infinite where one of the two has no such
        number; and its place for people, empty if all numbers agree within
        `DUPLICATE_TOLERANCE`, absolute and relative, as copies of a cell have to.
    """
    number = [*_TAKEN, "column", "position"]
    both = _numbers(then).merge(_numbers(now), "outer", number, suffixes=("_then", "_now"))
    before, after = both["value_then"], both["value_now"]
    close = np.isclose(before, after, DUPLICATE_TOLERANCE, DUPLICATE_TOLERANCE)
    both["apart"] = (before - after).abs().fillna(math.inf)
    if close.all():
        return max(both["apart"], default=0.0), ""
    worst = both[~close].nlargest(1, "apart").iloc[0]  # a large loss differs by more, and is close
    percent = f"{100 * worst['budget_fraction']:g} % of the budget"
    where = f"{worst['column']}, {worst['split']} split at {percent}"
    lacks = ", which only one of them has" if math.isinf(worst["apart"]) else ""
    return float(worst["apart"]), f"{where}{lacks}"


def _numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Every number that is there, one per row: where it was taken, its column and its place."""
    rows = rows.copy()
    for name in _BITS:
        rows[name] = [
            np.unpackbits(np.frombuffer(bits or b"", np.uint8)) / count
            for bits, count in zip(rows[name], rows["num_evaluated"], strict=True)
        ]
    columns = [*METRICS, *FURTHER, *OTHERS, "heatmap", *_BITS]
    numbers = rows.melt(_TAKEN, columns, "column").explode("value")
    numbers["position"] = numbers.groupby(level=0).cumcount()
    return numbers.astype({"value": float}).dropna(subset="value")


def _differing(then: Mapping[Any, Any], now: Mapping[Any, Any]) -> Iterator[str]:
    """Texts such as ``threads 4 then, 1 now``."""
    before, after = (
        {name: str(row[name]) for name in _CIRCUMSTANCES} | json.loads(row["package_versions"])
        for row in (then, now)
    )
    for name in before | after:
        if before.get(name) != after.get(name):
            yield f"{name} {before.get(name, 'unknown')} then, {after.get(name, 'unknown')} now"


def _repeatable(row: Mapping[Any, Any], study: str) -> AnyCell:
    """The recorded cell; refuses one of another study, or that did not run to its end."""
    if row["status"] not in ENDED:
        why = row["status_reason"] or "was stopped by the scheduler"
        raise RequestError(
            f"cell {row['cell_id']} {why}, so it has no numbers to compare. The command of its "
            "study runs it to its end."
        )
    kind = kind_of(row)
    if row["study"] != study:
        raise RequestError(
            f"cell {row['cell_id']} is of the study {row['study']}: python -m "
            f"study.run {row['study']} --again {row['cell_id']}."
        )
    return cell_of(row, kind.cell)
