"""How a command runs the cells of a study: on Ray, or a share of them in its own process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from study import parts
from study.cell import AnyCell
from study.cell.version import code_version
from study.cell.work import CONFIRM, Job, Work
from study.launch.failures import Failure
from study.launch.here import Pace, run_here
from study.launch.run_job import record_failure
from study.launch.watching import Watch
from study.launch.workplace import Workplace
from study.plan.divide import like
from study.plan.plan import Plan
from study.request import Request
from study.tracking.tracker import Tracker

Launch = Callable[[Plan], bool]
"""Runs the open cells of a plan. Answers whether all have ended: a failure may stop the study, or
time be up."""


@dataclass(frozen=True)
class Trained:
    """The outcome of training the cells of a study.

    Attributes:
        plans: of this command, with the cells that became known while it ran.
        failures: final ones.
        tracker: logs the cells that ended.
    """

    plans: Sequence[Plan]
    failures: Sequence[Failure]
    tracker: Tracker

    @property
    def cells(self) -> list[AnyCell]:
        return [cell for plan in self.plans for cell in plan.cells]

    @property
    def skipped(self) -> list[str]:
        """What could not run, and why, for people."""
        return [text for plan in self.plans for text in plan.skipped]

    @property
    def bug(self) -> Failure | None:
        """The bug that stopped the study, if any."""
        return next((failure for failure in self.failures if failure.kind == "bug"), None)

    @property
    def failed(self) -> set[str]:
        """Ids of the failed cells."""
        return {cell_id for failure in self.failures for cell_id in failure.cell_ids}


class Launcher(ABC):
    """Runs the cells of a study.

    Args:
        request: what was asked for.
        place: where they run.

    Attributes:
        request, place: as given.
    """

    def __init__(self, request: Request, place: Workplace) -> None:
        self.request, self.place = request, place
        self._first: dict[str, Plan] = {}

    def divided(self, plans: Sequence[Plan]) -> list[Plan]:
        """What this command runs of the plans of a study, with its resources and its time.

        Later plans of a kind are divided and timed like the first.

        Raises:
            RequestError: resources are asked for that are not there.
        """
        return [self._divided(plan) for plan in self.taken(plans)]

    def _divided(self, plan: Plan) -> Plan:
        if first := self._first.get(plan.kind):
            return like(plan, first)
        found = self.divide(plan)
        if found.rows["alone"].any():  # else nothing is known of such cells
            self._first[plan.kind] = found
        return found

    def run_here(self, plan: Plan, watch: Watch, pace: Pace) -> list[Job]:
        """Runs the open cells of a plan in this process, see `study.launch.here.run_here`."""
        jobs = [Job((pack,)) for job in plan.jobs for pack in job.packs]
        return run_here(jobs, self.work(plan), watch, pace)

    def work(self, plan: Plan) -> Work:
        """The work that all trials of a plan share."""
        return work_of(self.request, plan, self.place.results.url)

    @abstractmethod
    def taken(self, plans: Sequence[Plan]) -> Sequence[Plan]:
        """What this command runs of the plans of a study."""

    @abstractmethod
    def divide(self, plan: Plan) -> Plan:
        """A plan with its resources and its time."""

    @abstractmethod
    def describe(self, plans: Sequence[Plan]) -> str:
        """What is about to run, for people."""

    @abstractmethod
    def launched(self, plans: Sequence[Plan], watch: Watch) -> AbstractContextManager[Launch]:
        """Gives what runs a stage.

        Args:
            plans: of the study, divided.
            watch: told of what the jobs tell.
        """

    @abstractmethod
    def close(self, trained: Trained) -> int:
        """Says what became of the study; the exit status, see `study.terminal.command`."""


def work_of(request: Request, plan: Plan, results: str) -> Work:
    """The work that all trials of a plan share.

    Args:
        request: what was asked for.
        plan: of one kind of cell.
        results: absolute path or URL of the results directory.
    """
    return Work(
        study=plan.study,
        kind=plan.kind,
        results=results,
        code_version=code_version(),
        confirm=plan.confirm,
        threads=plan.how.threads,
        gpu=plan.how.gpus_per_trial != 0,
        places=request.places,
        parts=parts.loaded(),
        micro_batch=request.micro_batch,
        kernels=plan.how.kernels,
        checkpoint_every=request.checkpoint_every,
        examples=request.examples,
        keep_weights=request.keep_weights,
    )


def record_failures(launcher: Launcher, plans: Sequence[Plan], watch: Watch) -> None:
    """Records which confirming cells were given up, so that no verdict waits for their seeds."""
    final = [each for each in watch.failures if each.kind in ("out of memory", "worker lost")]
    given_up = {cell_id: failure for failure in final for cell_id in failure.cell_ids}
    for plan in plans:
        work = launcher.work(plan)
        for cell in plan.cells:
            if cell.id in given_up and work.stage(cell) == CONFIRM:
                failure = given_up[cell.id]
                record_failure(cell, f"{failure.kind}: {failure.reason}", work)
