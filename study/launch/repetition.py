"""Trains a recorded cell once more and compares the numbers.

The results directory is only read.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import re
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from study import tasks
from study.cell import AnyCell
from study.cell.version import code_version
from study.cell.work import Job, Work
from study.errors import RequestError
from study.kind import Kind
from study.kinds import kind_of
from study.launch.run_job import run_job
from study.results import FURTHER, METRICS, Results
from study.results.records import DUPLICATE_TOLERANCE
from study.tasks.sources.places import NO_PLACES, Places
from study.terminal import counted
from study.terminal.progress import Progress
from study.terminal.working import draws, duration

CIRCUMSTANCES = {
    "device": "device",
    "threads": "CPU threads",
    "micro_batch": "mosaics, posts or captions a pass",
    "code_version": "code version",
    "package_versions": "package versions",
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

_POINT = ["budget_fraction", "split"]
_EXACT = ["step", "mosaics_seen", "compute_flops", "num_evaluated", "instances"]
_ON_A_GPU = (
    "a GPU adds numbers in an order that varies, so two runs of a cell agree to rounding only, "
    "which training magnifies: compare the difference with the spread over seeds"
)
_NAMED = 5  # most ids in a message


@dataclass(frozen=True)
class Repetition:
    """A recorded cell beside its repetition.

    Attributes:
        cell_id: of the cell.
        seconds: that the repetition took.
        evaluations: compared rows, one a point of the budget and split.
        ended: how both ended if that differs, else empty.
        largest: the largest difference of a metric or of a value of a list; 0 if all are equal,
            infinite if only one of two is a number or an evaluation is missing.
        where: metric, split and budget fraction of the largest difference; empty if it is 0.
        equal: whether both ended alike and every number agrees within `DUPLICATE_TOLERANCE`.
        circumstances: a text for each circumstance that differs.
        gpu: whether one of the two trained on a GPU.
    """

    cell_id: str
    seconds: float
    evaluations: int
    ended: str
    largest: float
    where: str
    equal: bool
    circumstances: tuple[str, ...]
    gpu: bool = False

    @property
    def text(self) -> str:
        """One line for people."""
        text = f"cell {self.cell_id}: repeated in {duration(self.seconds)}; "
        text += f"{counted(self.evaluations, 'evaluation')}, "
        if self.equal:
            return f"{text}largest difference {self.largest:.2g} (metrics, heat maps, instances)"
        if self.ended:
            text += f"{self.ended}, "
        text += f"NOT equal: largest difference {self.largest:.2g}"
        text += f" ({self.where})" if self.where else ""
        text += f", allowed {DUPLICATE_TOLERANCE:g}; "
        differ = "; ".join(self.circumstances)
        text += f"what differs: {differ}" if differ else "no recorded circumstance differs"
        return f"{text}; {_ON_A_GPU}" if self.gpu else text


def repeat(results: Results, cell_id: str, places: Places = NO_PLACES) -> Repetition:
    """Trains a recorded cell from its start, alone, and compares every evaluation.

    It uses the recorded threads and inputs a pass, and the recorded kind of device if there is
    one. Packed and forked cells have the numbers of a straight run, so they are repeated as one.

    Args:
        results: where the cell is recorded.
        cell_id: its id, or the beginning of it.
        places: of the task's files.

    Raises:
        RequestError: no such cell or several, the cell cannot be repeated, or the data differs
            from what it was trained on.
    """
    recorded, evaluations = _recorded(results, cell_id)
    kind = kind_of(recorded)
    cell = _cell(kind, recorded)
    tasks.require_use(places, [cell.task])
    _require_same_data(kind, cell, places)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="study-repeat-") as folder, _progress(cell) as report:
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
        if "failed" in run_job(Job(((cell,),)), work, report).values():
            raise RequestError(f"cell {cell.id} needs more memory than there is now.")
        seconds = time.perf_counter() - started
        (row,) = again.cells([cell.id]).to_dict("records")
        anew = again.evaluations([cell.id])
    largest, where, close = compare_evaluations(evaluations, anew)
    ended = _ended(recorded, row)
    return Repetition(
        cell_id=cell.id,
        seconds=seconds,
        evaluations=len(evaluations),
        ended=ended,
        largest=largest,
        where=where,
        equal=close and not ended,
        circumstances=tuple(differing_circumstances(recorded, row)),
        gpu=any(not str(each["device"]).startswith("cpu") for each in (recorded, row)),
    )


def compare_evaluations(recorded: pd.DataFrame, again: pd.DataFrame) -> tuple[float, str, bool]:
    """Compares every metric, heat map and predictor of two runs of one cell, by evaluation.

    A bit of an instance is its share of all instances, so that it weighs as in a metric.

    Args:
        recorded: rows of `EVALUATIONS_SCHEMA` of one cell.
        again: likewise, in any order.

    Returns:
        The largest absolute difference (fractions; nats for `loss`), infinite if an evaluation is
        missing or was taken after other steps, or if only one of two numbers is NaN or missing;
        its place for people, empty if it is 0; and whether all numbers agree within
        `DUPLICATE_TOLERANCE`, absolute and relative, as copies of a cell have to.
    """
    one, other = (_unpacked(rows).set_index(_POINT).sort_index() for rows in (recorded, again))
    alone = one.index.symmetric_difference(other.index)
    if len(alone):
        return math.inf, f"{_place(alone[0])} was evaluated by one of them only", False
    exact, again_exact = one[_EXACT], other[_EXACT]
    alike = exact.eq(again_exact) | (exact.isna() & again_exact.isna())
    unlike = ~alike.all(axis=1).to_numpy(bool)
    if unlike.any():
        return math.inf, f"steps or instances, {_place(one.index[int(unlike.argmax())])}", False
    if one.empty:  # the cell diverged before its first evaluation
        return 0.0, "", True
    columns = [*METRICS, *FURTHER, *_LISTS]
    both = pd.concat([one, other])
    widths = [max(np.size(each) for each in both[name]) for name in columns]
    a, b = (
        np.hstack(
            [_numbers(frame, name, width) for name, width in zip(columns, widths, strict=True)]
        )
        for frame in (one, other)
    )
    close = np.isclose(a, b, DUPLICATE_TOLERANCE, DUPLICATE_TOLERANCE, equal_nan=True)
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):  # infinity - infinity
        difference = np.where(equal, 0.0, np.abs(a - b))
    difference[np.isnan(difference)] = math.inf
    # If some are not close, only those count: a large loss may differ by more and still be close.
    shown = difference if close.all() else np.where(close, -1.0, difference)
    row, column = np.unravel_index(int(shown.argmax()), shown.shape)
    largest = float(shown[row, column])
    name = str(np.repeat(columns, widths)[column])
    where = f"{_LISTS.get(name, name)}, {_place(one.index[int(row)])}" if largest else ""
    return largest, where, bool(close.all())


def differing_circumstances(
    recorded: Mapping[Any, Any], again: Mapping[Any, Any]
) -> Iterator[str]:
    """Texts such as ``CPU threads 4 then, 1 now``.

    Args:
        recorded: a row of `CELLS_SCHEMA`.
        again: another row of the same cell.
    """
    for column, name in CIRCUMSTANCES.items():
        if column == "package_versions":
            then, now = json.loads(recorded[column]), json.loads(again[column])
            for package in sorted({*then, *now}):
                old, new = then.get(package, "unknown"), now.get(package, "unknown")
                if old != new:
                    yield f"{package} {old} then, {new} now"
        elif recorded[column] != again[column]:
            yield f"{name} {recorded[column]} then, {again[column]} now"


def _recorded(results: Results, asked: str) -> tuple[dict[Any, Any], pd.DataFrame]:
    """The row and the evaluations of the one cell whose id begins with `asked`."""
    results.require()
    cell_id = _find(results, asked.strip().lower())
    cells, evaluations = results.cells([cell_id]), results.evaluations([cell_id])
    if cells.empty:
        raise RequestError(f"cell {cell_id} has just gone from {results.url}. Try again.")
    (row,) = cells.to_dict("records")
    if row["status"] == "censored":
        raise RequestError(
            f"cell {cell_id} was {row['status_reason'] or 'stopped by the scheduler'}: what a "
            "scheduler stops depends on the other cells, so it cannot be repeated alone."
        )
    return row, evaluations


def _find(results: Results, asked: str) -> str:
    if not re.fullmatch("[0-9a-f]{1,16}", asked):
        raise RequestError(
            f"a cell id is up to 16 hexadecimal digits, got {asked!r}. A report and cells/ in the "
            "results directory show them."
        )
    survey = results.survey()
    ids = survey.statuses
    found = sorted(cell_id for cell_id in ids if cell_id.startswith(asked))
    if not found:
        damaged = ", ".join(damage.name for damage in survey.damaged)
        hint = f"It may be in a damaged file ({damaged}): run its study again. " if damaged else ""
        raise RequestError(f"{results.url} has no cell {asked}. {hint}{_nearest(asked, ids)}")
    if len(found) > 1:
        raise RequestError(
            f"{asked} begins the ids of {len(found)} cells ({_listed(found)}). Give more digits."
        )
    return found[0]


def _nearest(asked: str, ids: Collection[str]) -> str:
    if not ids:
        return "It holds no finished cell."
    beginnings = {cell_id[: len(asked)]: cell_id for cell_id in sorted(ids, reverse=True)}
    near = difflib.get_close_matches(asked, beginnings, n=3, cutoff=0.6)
    if near:
        return f"Nearest: {', '.join(beginnings[each] for each in near)}."
    return f"It holds {_listed(sorted(ids))}."


def _listed(ids: Sequence[str]) -> str:
    more = len(ids) - _NAMED
    return ", ".join(ids[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _cell(kind: Kind, recorded: Mapping[Any, Any]) -> AnyCell:
    """The recorded cell; refuses one to which this version gives another id."""
    cell_id = recorded["cell_id"]
    try:
        cell = kind.cell.from_dict(json.loads(recorded["cell"]))
    except (KeyError, TypeError, ValueError) as error:
        raise RequestError(
            f"cell {cell_id} cannot be read ({error}). Give what it needs, or repeat it with code "
            f"version {recorded['code_version']}."
        ) from error
    if cell.id != cell_id:
        raise RequestError(
            f"cell {cell_id} was trained by another trainer: here the same settings make cell "
            f"{cell.id}. Repeat it with code version {recorded['code_version']}."
        )
    return cell


def _require_same_data(kind: Kind, cell: AnyCell, places: Places) -> None:
    maker = kind.maker(lambda task, options: tasks.load(task, places, options).facts)
    digest = maker.facts(cell).digest
    if digest != cell.data_digest:
        raise RequestError(
            f"cell {cell.id} was trained on {cell.task} data with digest {cell.data_digest}, "
            f"here it has digest {digest}. Name the folder of the data it was trained on with "
            "--data-dir DIR."
        )


@contextlib.contextmanager
def _progress(cell: AnyCell) -> Iterator[Any]:
    """Gives a `Report` that shows bars on a terminal, cleared at the end; else None."""
    if not draws(sys.stderr):
        yield None
        return
    # The time left follows from the cell's own pace, so its estimate may be anything.
    progress = Progress(1)
    progress.expect([cell], {cell.id: 1.0})

    def report(event: Mapping[str, Any]) -> None:
        if event["event"] == "evaluation":
            progress.evaluated(event["budget_fraction"], event["cells"])

    with progress.shown(kept=False):
        yield report


def _ended(recorded: Mapping[Any, Any], again: Mapping[Any, Any]) -> str:
    then, now = (
        f"{row['status']} after {counted(row['steps'], 'step')}" for row in (recorded, again)
    )
    return "" if then == now else f"recorded as {then}, now {now}"


def _numbers(rows: pd.DataFrame, name: str, width: int) -> np.ndarray:
    """A column of numbers, or of lists of numbers: (rows, width) float64, NaN if missing."""
    numbers = np.full((len(rows), width), np.nan)
    for row, values in zip(numbers, rows[name], strict=True):
        row[: np.size(values)] = values
    return numbers


def _unpacked(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with bits as shares of their instances."""
    count = rows["num_evaluated"]
    shares = {
        name: [
            np.unpackbits(np.frombuffer(bits, np.uint8)) / all_of if bits else math.nan
            for bits, all_of in zip(rows[name], count, strict=True)
        ]
        for name in _BITS
    }
    return rows.assign(**shares)


def _place(point: Any) -> str:
    fraction, split = point
    return f"{split} split at {100 * fraction:g} % of the budget"
