"""Runs jobs in this process, one after the other, as far as there is time."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence

from study.cell.work import Job, Work
from study.hardware import give_back_memory
from study.launch.failures import failure_of
from study.launch.run_job import run_job
from study.launch.watching import Watch

MARGIN = 1.1
"""What a job may take over its estimate."""


class Pace:
    """Says how many cells of a job's only pack would end in time.

    Args:
        estimate: seconds of a job.
        end: when all has to end, by the clock; infinite: there is no hurry.
        clock: in seconds.
    """

    def __init__(
        self,
        estimate: Callable[[Job], float],
        end: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._estimate = estimate
        self._end = end
        self._clock = clock
        self._took = self._expected = 0.0

    def learn(self, job: Job, seconds: float) -> None:
        """Where jobs took longer than estimated, on the whole, others are expected to do so."""
        self._took += seconds
        self._expected += self._estimate(job)

    def seconds(self, job: Job) -> float:
        """What a job takes at most."""
        slowness = max(1.0, self._took / self._expected) if self._expected else 1.0
        return MARGIN * slowness * self._estimate(job)

    def take(self, waiting: list[Job]) -> Job | None:
        """Takes the first job, or the first cells of one, that would end in time."""
        left = self._end - self._clock()
        for number, job in enumerate(waiting):
            (pack,) = job.packs
            for size in range(len(pack), 0, -1):
                part, rest = Job((pack[:size],)), pack[size:]
                if self.seconds(part) <= left:
                    waiting[number : number + 1] = [Job((rest,))] if rest else []
                    return part
        return None


def run_here(jobs: Sequence[Job], work: Work, watch: Watch, pace: Pace) -> list[Job]:
    """Runs jobs until all have ended, time is up, or a failure ends this process's use.

    Args:
        jobs: of one pack each.
        work: what they have in common.
        watch: told of their events.
        pace: says what ends in time.

    Returns:
        The jobs that are left.

    Raises:
        RequestError: the data is not the plan's, or the results directory cannot be written.
        KeyboardInterrupt: Ctrl-C or SIGTERM; recorded cells stay.
    """
    waiting = list(jobs)
    while not watch.stopped and (job := pace.take(waiting)):
        began, failure = time.monotonic(), None
        watch.started(job.ids)
        try:
            run_job(job, work, functools.partial(watch.told, job.ids))
        except Exception as error:
            failure = failure_of(error)
            if failure.kind == "request":
                raise
        if failure is None:
            pace.learn(job, time.monotonic() - began)
            continue
        watch.failed(job.ids, failure)
        if failure.ends_process:
            break
        give_back_memory()  # outside the except clause, which holds on to tensors
    return waiting
