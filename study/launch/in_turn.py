"""Trains packs of cells one after the other in this process, without Ray."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Iterable, Sequence

from study.cell import AnyCell
from study.cell.events import Report
from study.cell.work import Work
from study.errors import RequestError
from study.hardware import give_back_memory
from study.launch.failures import Failure, failure_of
from study.launch.pace import Pace
from study.launch.trial import train_cells
from study.results import Results
from study.terminal.progress import Progress

Pack = Sequence[AnyCell]


def train_in_turn(
    packs: Iterable[Pack], work: Work, progress: Progress, pace: Pace
) -> tuple[list[Failure], list[AnyCell]]:
    """Trains packs in their order; starts none that would not end in time.

    A pack that would not is left out, or trains with fewer cells. One that ran out of memory is
    tried again in halves. What else fails is left out, and the rest goes on, unless this process
    cannot use its GPU any more.

    Args:
        packs: each of cells that may train together.
        work: what all have in common.
        progress: told of every start, evaluation and end.
        pace: knows how long packs take; told of every end.

    Returns:
        Why cells failed, and the cells that would not have ended in time.

    Raises:
        RequestError: the data is not the plan's, or the results directory cannot be written.
    """
    waiting = deque(packs)
    failures: list[Failure] = []
    while pack := _next(waiting, pace):
        ended = _train(pack, work, progress)
        if not isinstance(ended, Failure):
            pace.learn(Results(work.results).cells(list(ended)))
            for cell_id, status in ended.items():
                progress.ended(cell_id, status)
        elif ended.kind == "out of memory" and len(pack) > 1:
            half = math.ceil(len(pack) / 2)
            waiting.extendleft((pack[half:], pack[:half]))
            _note(progress, ended, f"tried again in packs of {half}")
            for cell in pack:
                progress.waiting(cell.id)
        else:
            failures.append(ended)
            _note(progress, ended, "given up")
            for cell in pack:
                progress.ended(cell.id, "failed")
            if ended.ends_process:
                break
    progress.show(last=True)
    return failures, [cell for pack in waiting for cell in pack]


def _next(waiting: deque[Pack], pace: Pace) -> Pack:
    """Takes the first pack that would end in time, else the first part of one; empty: none."""
    part = (0, 0)
    for number, pack in enumerate(waiting):
        count = pace.in_time(pack)
        if count == len(pack):
            return _take(waiting, number, count)
        if count and not part[1]:
            part = (number, count)
    return _take(waiting, *part) if part[1] else ()


def _take(waiting: deque[Pack], number: int, count: int) -> Pack:
    """Takes the first cells of a pack; what is left of it keeps its place."""
    pack = waiting[number]
    del waiting[number]
    if pack[count:]:
        waiting.insert(number, pack[count:])
    return pack[:count]


def _train(pack: Pack, work: Work, progress: Progress) -> dict[str, str] | Failure:
    """The end of each cell, or why the pack failed."""
    for cell in pack:
        progress.started(cell.id)
    try:
        return train_cells(dataclasses.replace(work, cells=tuple(pack)), _report_to(progress))
    except RequestError:
        raise
    except Exception as error:
        failure = failure_of(error)
    if not failure.ends_process:
        give_back_memory()  # outside the except clause, which holds on to tensors
    return dataclasses.replace(failure, cell_ids=tuple(cell.id for cell in pack))


def _report_to(progress: Progress) -> Report:
    def report(event: dict[str, object]) -> None:
        if event["event"] == "evaluation":
            progress.evaluated(event)
        elif event["event"] == "note":
            progress.note(str(event["text"]))

    return report


def _note(progress: Progress, failure: Failure, then: str) -> None:
    cells = ", ".join(failure.cell_ids)
    progress.note(f"cell {cells}: {failure.kind} ({failure.reason}); {then}")
