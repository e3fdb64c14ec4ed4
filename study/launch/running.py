"""The running trials: their events and their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from study.errors import RequestError
from study.launch.failures import Failure, failure_of
from study.launch.fork_points import ForkPoints
from study.launch.job_queue import Job, Jobs, Source
from study.terminal.progress import Progress

OnCell = Callable[[str], str]
"""Called on the driver with the id of each recorded cell; returns its status."""


class Running:
    """Passes the events and ends of running trials on to jobs, progress and source.

    Args:
        jobs: the study's queue.
        progress: told of every start, evaluation and end.
        on_cell: as for `launch`.
        forks: fork points, told of every recorded cell.
        source: of further jobs, told of the ends of all cells.

    Attributes:
        job: Tune's id of a trial -> its job.
    """

    def __init__(
        self,
        jobs: Jobs,
        progress: Progress,
        on_cell: OnCell,
        forks: ForkPoints,
        source: Source | None = None,
    ) -> None:
        self.jobs = jobs
        self.job: dict[str, Job] = {}
        self._progress = progress
        self._on_cell = on_cell
        self._forks = forks
        self._source = source
        self._reported: dict[str, Failure] = {}

    def start(self, trial_id: str) -> Job | None:
        """Takes the job of a new trial; None if there is none now."""
        try:
            job = self.jobs.take()
        except RequestError as error:  # raised by the source
            self.jobs.stop(failure_of(error))
            return None
        if job is not None:
            self.job[trial_id] = job
        return job

    def started(self, trial_id: str) -> None:
        """Notes that a worker has begun a trial."""
        for cell_id in self.job[trial_id].ids:
            self._progress.started(cell_id)

    def told(self, trial_id: str, event: Mapping[str, Any]) -> None:
        """Takes an event (`study.cell.events.Report`), or a failure that the trial reports."""
        match event.get("event"):
            case "evaluation":
                self._progress.evaluated(event)
            case "fork":
                self.jobs.forked(event["cell_id"], event["steps"])
            case "note":
                self._progress.note(event["text"])
            case "failure":
                self._reported[trial_id] = Failure(event["kind"], event["text"])

    def completed(self, trial_id: str) -> None:
        """Notes that a trial returned: its cells are recorded unless it reported a failure."""
        job = self.job.pop(trial_id)
        failure = self._reported.pop(trial_id, None)
        if failure is None:
            try:
                for cell_id in job.ids:
                    self._end(cell_id, self._on_cell(cell_id))
                    self._forks.ended(cell_id)
                self.jobs.ended(job)
                return
            except RequestError as error:  # the results directory cannot be written
                failure = failure_of(error)
        self._fail(job, failure)

    def lost(self, trial_id: str, failure: Failure) -> None:
        """Notes that a trial's worker is gone; a failure that it reported before says why."""
        self._fail(self.job.pop(trial_id), self._reported.pop(trial_id, failure))

    def _fail(self, job: Job, failure: Failure) -> None:
        again = self.jobs.failed(job, failure)
        for cell_id in job.ids:
            if again is None:
                self._end(cell_id, "failed")
            else:
                self._progress.waiting(cell_id)
        if not self.jobs.stopped:  # the failure that stops a study is shown at the end
            what = f"{failure.kind} ({failure.reason}); {again or 'given up'}"
            self._progress.note(f"cell {', '.join(job.ids)}: {what}")

    def _end(self, cell_id: str, status: str) -> None:
        self._progress.ended(cell_id, status)
        if self._source is not None:
            self._source.ended(cell_id, status)
