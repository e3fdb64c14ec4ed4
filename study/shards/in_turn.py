"""Trains cells pack by pack in this process, as far as there is time."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence

from study import tasks
from study.cell import AnyCell
from study.cell.events import Report
from study.cell.work import Work
from study.errors import RequestError
from study.hardware import give_back_memory
from study.launch.failures import Failure, failure_of
from study.launch.trial import train_cells
from study.plan.plan import Plan
from study.terminal import counted
from study.terminal.progress import Progress
from study.terminal.working import duration
from study.train.steps.packs import form

Pack = Sequence[AnyCell]

MARGIN = 1.1
"""What a pack may take over its estimate."""


def train_in_turn(plan: Plan, work: Work, end: float) -> tuple[list[Failure], list[AnyCell]]:
    """Trains what is left to run, and says what is left then.

    A pack that would not end in time is left out, or trains with fewer cells. One that ran out of
    memory is tried again in halves. What else fails is left out, and the rest goes on, unless this
    process cannot use its GPU any more.

    Args:
        plan: with packs and estimated seconds.
        work: what all cells have in common.
        end: when all has to end, in seconds of `time.monotonic`; infinite: there is no hurry.

    Returns:
        Why cells failed, and the cells that are left.

    Raises:
        RequestError: the data is not the plan's, or the results directory cannot be written.
        KeyboardInterrupt: Ctrl-C or SIGTERM; recorded cells stay.
    """
    pace = Pace(plan, end)
    waiting = _packs(plan)
    score = tasks.modality(plan.cells[0].task).score
    progress = Progress(plan.to_run, plan.seconds, 1, len(plan.finished), score=score)
    failures: list[Failure] = []
    with progress.shown():
        while pack := _next(waiting, pace):
            began = time.monotonic()
            ended = _train(pack, work, progress)
            if not isinstance(ended, Failure):
                pace.learn(pack, time.monotonic() - began)
                for cell_id, status in ended.items():
                    progress.ended(cell_id, status)
            elif ended.kind == "out of memory" and len(pack) > 1:
                half = math.ceil(len(pack) / 2)
                waiting[:0] = [pack[:half], pack[half:]]
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
    left = [cell for pack in waiting for cell in pack]
    if left:
        print(f"{_why(left, failures, pace)}: the same command goes on")
    return failures, left


class Pace:
    """Says how many cells of a pack would end in time.

    Args:
        plan: with packs and estimated seconds.
        end: when all has to end, by the clock.
        clock: in seconds.
    """

    def __init__(
        self, plan: Plan, end: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._plan = plan
        self._end = end
        self._clock = clock
        self._took = self._expected = 0.0

    def learn(self, pack: Pack, seconds: float) -> None:
        """Where packs took longer than estimated, on the whole, others are expected to do so."""
        self._took += seconds
        self._expected += self._estimate(pack)

    def seconds(self, pack: Pack) -> float:
        """What a pack takes at most."""
        slowness = max(1.0, self._took / self._expected) if self._expected else 1.0
        return MARGIN * slowness * self._estimate(pack)

    def in_time(self, pack: Pack) -> int:
        """How many cells of a pack, the first ones, would end in time as one pack."""
        left = self._end - self._clock()
        sizes = range(len(pack), 0, -1)
        return next((size for size in sizes if self.seconds(pack[:size]) <= left), 0)

    def _estimate(self, pack: Pack) -> float:
        """A smaller pack than the measured one takes as long, or as its cells one by one."""
        measured = self._plan.packing.measured_of(pack[0])
        shares = sum(self._plan.seconds[cell.id] for cell in pack)
        return shares * min(measured.speedup, measured.members / len(pack))


def _why(left: Pack, failures: Sequence[Failure], pace: Pace) -> str:
    """Why cells are left."""
    if failures and failures[-1].ends_process:
        wait = counted(len(left), "cell waits", "cells wait")
        return f"{wait} for another process, as this one cannot use its GPU any more"
    shortest = duration(min(pace.seconds([cell]) for cell in left))
    cells = counted(len(left), "cell")
    return f"{cells} would not have ended in time (the shortest takes about {shortest})"


def _packs(plan: Plan) -> list[Pack]:
    """The cells to run in packs, in the order of the packs' first cells in the plan."""
    place = {cell.id: number for number, cell in enumerate(plan.cells)}
    return sorted(form(plan.to_run, plan.packing), key=lambda pack: place[pack[0].id])


def _next(waiting: list[Pack], pace: Pace) -> Pack:
    """Takes the first pack, or the first cells of one, that would end in time; empty: none."""
    for number, pack in enumerate(waiting):
        if count := pace.in_time(pack):
            rest = pack[count:]
            waiting[number : number + 1] = [rest] if rest else []
            return pack[:count]
    return ()


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
