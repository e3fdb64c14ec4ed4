"""Cells as jobs: what belongs together is one trial of Ray Tune, all else a trial each."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from study.cell.grouped import grouped
from study.cell.work import Job
from study.train.steps.packs import Packing, form

MOST_TRIALS = 1_000
"""Tune keeps all trials of a stage, and each costs the driver 35 ms; so shorter ones train in
batches, which are no more."""


class Seconds(NamedTuple):
    """Estimated seconds of a cell.

    Attributes:
        alone: of all its phases; its share of a pack.
        forked: of the phases after its first one.
    """

    alone: float
    forked: float


def jobs_of(
    cells: Sequence[Any],
    seconds: Mapping[str, Seconds],
    packing: Packing,
    workers: int,
    share: bool = False,
) -> list[Job]:
    """The jobs of cells, about in their order.

    Args:
        cells: to run.
        seconds: of each, by its id.
        packing: how they are packed.
        workers: jobs that run at a time.
        share: whether cells with a common first phase train it once; none are packed then.
    """
    if share:
        jobs = _balanced(families(cells), seconds, workers)
    else:
        place = {cell.id: number for number, cell in enumerate(cells)}
        packs = sorted(form(cells, packing, workers), key=lambda pack: place[pack[0].id])
        jobs = [Job((tuple(pack),)) for pack in packs]
    return _batched(jobs, seconds) if len(jobs) > MOST_TRIALS else jobs


def option_jobs(cells: Iterable[Any]) -> list[Job]:
    """One job an option: its seeds side by side, since their mean is looked at."""
    options = grouped(cells, lambda cell: cell.option)
    return [Job((tuple(seeds),), watched=True) for seeds in options.values()]


def families(cells: Iterable[Any]) -> list[list[Any]]:
    """Cells that share their first phase, in the order in which each may start from the last.

    Hybrids with several switch points, and the soft cell of the same seed and learning rate.
    """
    return [
        sorted(family, key=lambda cell: cell.schedule.phases[0].until, reverse=True)
        for family in grouped(cells, lambda cell: cell.first_phase).values()
    ]


def forks(job: Job) -> Iterator[Any]:
    """The cells of a job that start from the first phase of another one."""
    known = set()
    for cell in job.cells if job.share and len(job.packs) > 1 else ():
        if cell.first_phase in known:
            yield cell
        known.add(cell.first_phase)


def _balanced(
    found: Sequence[Sequence[Any]], seconds: Mapping[str, Seconds], workers: int
) -> list[Job]:
    """A job a family, but a job a cell in as many of the last ones as makes the end earliest.

    A family is long, so that one that starts last could leave all other workers idle.
    """
    whole = [Job(tuple((cell,) for cell in family), share=True) for family in found]
    alone = [[Job(((cell,),)) for cell in family] for family in found]
    took = [_seconds(job, seconds) for job in whole]
    took_alone = [[seconds[cell.id].alone for cell in family] for family in found]
    most = min(2 * workers, len(found))
    counts = [0, *(2**power for power in range(most.bit_length()))]

    def ends(count: int) -> float:
        kept = len(found) - count
        return _makespan([*took[:kept], *itertools.chain(*took_alone[kept:])], workers)

    kept = len(found) - min(counts, key=ends)
    return [*whole[:kept], *itertools.chain(*alone[kept:])]


def _makespan(seconds: Iterable[float], workers: int) -> float:
    """When jobs end that workers take one after the other."""
    free = [0.0] * workers
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


def _batched(jobs: Sequence[Job], seconds: Mapping[str, Seconds]) -> list[Job]:
    """Jobs joined that would begin, one after the other, in one `MOST_TRIALS`-th of the whole."""
    begins = list(itertools.accumulate((_seconds(job, seconds) for job in jobs), initial=0.0))
    part = begins.pop() / MOST_TRIALS
    batches = grouped(zip(jobs, begins, strict=True), lambda each: each[1] // part)
    return [_joined([job for job, _ in batch]) for batch in batches.values()]


def _joined(jobs: Sequence[Job]) -> Job:
    packs = tuple(pack for job in jobs for pack in job.packs)
    return Job(packs, share=any(job.share for job in jobs))


def _seconds(job: Job, seconds: Mapping[str, Seconds]) -> float:
    forked = {cell.id for cell in forks(job)}
    return sum(
        seconds[cell.id].forked if cell.id in forked else seconds[cell.id].alone
        for cell in job.cells
    )
