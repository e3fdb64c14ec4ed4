"""The queue of jobs: their order, and what happens to failed ones. Knows nothing of Ray."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from study.cell.work import Work
from study.launch.failures import Failure

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0
"""Seconds before a lost trial is tried again; doubled each time, up to the longest."""


@dataclass(frozen=True)
class Job:
    """What one trial trains.

    Attributes:
        cells: trained as a pack.
        fork_steps: steps after which its single cell keeps its state for others.
        waits_for: (cell id, steps): the fork point from which its single cell starts.
        alone: whether nothing else may train at the same time.
        retries: how often its worker was lost.
        not_before: earliest start, in seconds of the clock of `Jobs`.
    """

    cells: tuple[Any, ...]
    fork_steps: tuple[int, ...] = ()
    waits_for: tuple[str, int] | None = None
    alone: bool = False
    retries: int = 0
    not_before: float = -math.inf

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(cell.id for cell in self.cells)

    def of(self, work: Work) -> Work:
        """This job's part of the study's work."""
        return replace(work, cells=self.cells, fork_steps=self.fork_steps)


@dataclass(frozen=True)
class Resources:
    """What the trials of a study take of a machine or a cluster.

    Attributes:
        concurrent: trials at a time.
        gpus_per_trial: GPUs that a trial asks for, a fraction to share one; None: one if there
            are any.
        max_concurrent: most trials at a time; None: as many as find room.
    """

    concurrent: int
    gpus_per_trial: float | None = None
    max_concurrent: int | None = None


class Source(Protocol):
    """Where further cells come from while a study runs."""

    def more(self) -> Sequence[Job]:
        """Further jobs; empty if there are none for now, or none ever if `exhausted`."""
        ...

    def ended(self, cell_id: str, status: str) -> None:
        """Takes the end of a cell: the recorded status, or `failed` for good."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether no further job will come."""
        ...


class Jobs:
    """The jobs of a study: hands out what may start and takes back what failed.

    Args:
        jobs: in the order in which they should start.
        max_retries: how often a job whose worker was lost is tried again.
        source: of further jobs.
        on_jobs: told of all jobs, those of the source when they are known.
        clock: in seconds.
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        max_retries: int = 3,
        source: Source | None = None,
        on_jobs: Callable[[Sequence[Job]], object] = lambda jobs: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ready: deque[Job] = deque()
        # cell id -> steps -> what waits for that fork point
        self._blocked: defaultdict[str, defaultdict[int, list[Job]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._paused: list[Job] = []
        self._alone: list[Job] = []
        self._running: list[Job] = []
        self._max_retries = max_retries
        self._source = source
        self._on_jobs = on_jobs
        self._clock = clock
        self._stopped = False
        self.failures: list[Failure] = []
        """Of cells that were given up, and the one that stopped the study."""
        self._add(list(jobs))

    @property
    def over(self) -> bool:
        """Whether nothing will start any more."""
        if self._stopped:
            return True
        more = self._source is not None and not self._source.exhausted
        waiting = self._ready or self._blocked or self._paused or self._alone
        return not (waiting or self._running or more)

    @property
    def stopped(self) -> bool:
        """Whether a failure ended the study, so that running trials have to stop."""
        return self._stopped

    def take(self) -> Job | None:
        """The next job to start; None if none may start now."""
        if self._stopped or any(job.alone for job in self._running):
            return None
        now = self._clock()
        for job in self._paused:
            if job.not_before <= now:
                (self._alone if job.alone else self._ready).insert(0, job)
        self._paused = [job for job in self._paused if job.not_before > now]
        if not self._ready and self._source is not None:
            self._add(self._source.more())
        if self._ready:
            job = self._ready.popleft()
        elif self._alone and not self._running:
            job = self._alone.pop()
        else:
            return None
        self._running.append(job)
        return job

    def forked(self, cell_id: str, steps: int) -> None:
        """Lets the jobs start that wait for a fork point, now that it is written."""
        self._release(cell_id, steps)

    def ended(self, job: Job) -> None:
        """Notes that a job's cells are recorded."""
        self._running.remove(job)
        self._release_all(job)

    def stop(self, failure: Failure) -> None:
        """Ends the study: nothing starts any more."""
        self._stopped = True
        self.failures.append(failure)

    def failed(self, job: Job, failure: Failure) -> str | None:
        """Takes back a job that failed: it is tried again or given up, by its kind of failure.

        Returns:
            How it is tried again, for people; None if its cells are given up.
        """
        self._running.remove(job)
        failure = replace(failure, cell_ids=job.ids)
        if failure.kind in ("bug", "request"):
            self.stop(failure)
            return None
        if failure.kind == "worker lost" and job.retries < self._max_retries:
            pause = min(FIRST_PAUSE * 2**job.retries, LONGEST_PAUSE)
            not_before = self._clock() + pause
            self._paused.append(replace(job, retries=job.retries + 1, not_before=not_before))
            return f"tried again in {pause:g} s (retry {job.retries + 1} of {self._max_retries})"
        if failure.kind == "out of memory" and len(job.cells) > 1:
            half = math.ceil(len(job.cells) / 2)
            parts = (job.cells[:half], job.cells[half:])
            self._ready.extendleft(replace(job, cells=part) for part in parts)
            return f"tried again in packs of {half}"
        if failure.kind == "out of memory" and not job.alone:
            self._alone.append(replace(job, alone=True))
            return "tried again when nothing else trains"
        self.failures.append(failure)
        self._release_all(job)
        return None

    def _add(self, jobs: Sequence[Job]) -> None:
        self._on_jobs(jobs)
        for job in jobs:
            if job.waits_for:
                cell_id, steps = job.waits_for
                self._blocked[cell_id][steps].append(job)
            else:
                self._ready.append(job)

    def _release_all(self, job: Job) -> None:
        """Releases all that waits for a finished job; without a fork point it starts afresh."""
        for cell_id in job.ids:
            for steps in list(self._blocked.get(cell_id, ())):
                self._release(cell_id, steps)

    def _release(self, cell_id: str, steps: int) -> None:
        """Puts waiting jobs first, since a fork point is kept until all its jobs are done."""
        waiting: dict[int, list[Job]] = self._blocked.get(cell_id, {})
        released = waiting.pop(steps, [])
        if not waiting:
            self._blocked.pop(cell_id, None)
        self._ready.extendleft(replace(job, waits_for=None) for job in reversed(released))
