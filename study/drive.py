"""Opens the place where a study runs, and trains the missing cells, stage by stage."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from study import parts, tasks
from study.cell import AnyCell, Cell
from study.cell.version import code_version, source_digest
from study.cell.work import CONFIRM, Job, Work
from study.errors import RequestError
from study.kinds import KINDS
from study.launch.cluster import NoRay, default_address, join, ray_session, require_lasting
from study.launch.failures import Failure
from study.launch.here import Pace, run_here
from study.launch.run_job import record_failure, run_job
from study.launch.watching import RECORD_SECONDS, Watch
from study.launch.workplace import Workplace, results_in
from study.plan.course import Course
from study.plan.describe import num_settings
from study.plan.divide import Costs
from study.plan.plan import Plan, Skip
from study.plan.stages import unchosen
from study.request import Request
from study.results import ResultsError
from study.search.search import Search
from study.storage.urls import absolute
from study.terminal import counted
from study.terminal.command import importing, terminating
from study.terminal.progress import Progress
from study.terminal.working import duration, working
from study.tracking.tracker import Tracker, open_tracker
from study.tracking.uris import tracking_uri


@contextlib.contextmanager
def opened(request: Request) -> Iterator[Workplace]:
    """Opens the place where a study runs; makes nothing there before `Workplace.prepare`.

    Raises:
        RequestError: the directory cannot be read, Ray would delete it, or the cluster cannot be
            joined.
    """
    results = results_in(request.results)
    if results.storage.local:
        require_lasting(results.url)
    elif not tracking_uri(request.tracking):
        require_lasting(os.getcwd())  # MLflow's database lies there
    address = default_address() if request.address is None else request.address
    with contextlib.ExitStack() as stack:
        if request.trains and results.storage.exists("cells"):
            stack.enter_context(results.lock())  # before the survey, so that what that finds stays
        survey = results.survey()
        cluster = None
        if address is not None and request.then != "dry run":
            cluster = stack.enter_context(join(address))
            cluster.require()
        yield Workplace(results, survey, cluster, bool(request.scheduler), stack)


def work_of(request: Request, plan: Plan) -> Work:
    """The work that all trials of a study share."""
    return Work(
        study=plan.study,
        kind=plan.kind,
        results=absolute(request.results),
        code_version=code_version(),
        confirm=plan.confirm,
        threads=plan.threads,
        **request.places._asdict(),
        parts=parts.loaded(),
        micro_batch=request.micro_batch,
        checkpoint_every=request.checkpoint_every,
        examples=request.examples,
        keep_weights=request.keep_weights,
    )


def dry_run(request: Request, plans: Sequence[Plan]) -> None:
    """Runs and evaluates a short cell of each sort; records nothing.

    Raises:
        Exception: whatever is wrong with a cell.
    """
    for plan in plans:
        # The first of each sort.
        sorts = {(cell.comparison_id, cell.label): cell for cell in reversed(plan.shown)}
        work = replace(work_of(request, plan), dry_run=True)
        for cell in reversed(sorts.values()):
            short = KINDS[plan.kind].short(cell)
            events: list[dict[str, Any]] = []
            status = run_job(Job(((short,),)), work, events.append)[short.id]
            if status == "failed":
                raise RequestError(f"dry run: {cell.text}: {events[-1]['text'].splitlines()[-1]}")
            print(f"dry run: {cell.text}: {status}")


@dataclass(frozen=True)
class Trained:
    """The outcome of training the cells of a study.

    Attributes:
        cells: of this command, with those that became known while it ran.
        failures: final ones.
        skipped: what could not run, and why.
        unchosen: a cell of each group that was not confirmed, since no option could be chosen.
        tracker: logs the cells that ended.
        search: suggested the cells; None: the grid.
        start_seconds: from the plan to the first evaluation; None: nothing trained.
        ended_at: time when the last cell ended, in seconds of `time.monotonic`; None: nothing
            trained.
    """

    cells: Sequence[AnyCell]
    failures: Sequence[Failure]
    skipped: Sequence[Skip]
    unchosen: Sequence[Cell]
    tracker: Tracker
    search: Search | None = None
    start_seconds: float | None = None
    ended_at: float | None = None

    @property
    def bug(self) -> Failure | None:
        """The bug that stopped the study, if any."""
        return next((failure for failure in self.failures if failure.kind == "bug"), None)

    @property
    def failed(self) -> set[str]:
        """Ids of the failed cells."""
        return {cell_id for failure in self.failures for cell_id in failure.cell_ids}


def train(request: Request, course: Course, plans: Sequence[Plan], place: Workplace) -> Trained:
    """Runs the missing cells of a study, stage after stage, while MLflow logs them.

    Args:
        request: what was asked for.
        course: of the study.
        plans: what it has to run, divided.
        place: where they run.

    Raises:
        RequestError: too few resources, or the results directory cannot be written any more.
        KeyboardInterrupt: Ctrl-C or SIGTERM; recorded cells stay.
    """
    with working("opening MLflow"):
        tracker = open_tracker(place.results, plans[-1].study, request.tracking)
    started = time.monotonic()
    progress = _progress(plans)

    watch = Watch(
        progress,
        on_ended=lambda cell_id, status: tracker.log_cells({cell_id: status}),
        # Not before, as a trial that is tried again finds its cells by files of their own.
        on_completed=lambda ids: place.merge(ids, progress.note),
    )
    _log(tracker, plans, place)
    launched = _launched(request, course, plans, place, watch)
    plans = run_stages(course, plans, place, watch, launched)
    for failure in watch.failures:
        if failure.kind == "request":
            raise RequestError(failure.text)
    record_failures(request, plans, watch)
    cells = [cell for plan in plans for cell in plan.cells]
    _log(tracker, plans, place)
    if not watch.stopped:
        place.results.sweep()  # a worker may have been killed as it wrote
        for kind in {plan.kind for plan in plans}:
            KINDS[kind].sweep(place.results.storage, place.finished)
        if course.search:
            course.search.sweep()
    return Trained(
        cells=cells,
        failures=watch.failures,
        skipped=[skip for plan in plans for skip in plan.skipped],
        unchosen=unchosen(cells, plans[-1].confirm),
        tracker=tracker,
        search=course.search,
        start_seconds=progress.began - started if progress.began else None,
        ended_at=progress.ended_at,
    )


Launch = Callable[[Plan], bool]
"""Runs the open cells of a plan. Answers whether all have ended: a failure may stop the study, or
time be up."""


def run_stages(
    course: Course,
    plans: Sequence[Plan],
    place: Workplace,
    watch: Watch,
    launched: AbstractContextManager[Launch],
) -> Sequence[Plan]:
    """Runs the missing cells of a study, stage after stage.

    Args:
        course: of the study.
        plans: as it gave them.
        place: where they run; surveyed after each stage.
        watch: told of what the jobs tell.
        launched: gives what runs a stage; entered if anything has to run.

    Returns:
        The plans beside what the results directory holds at the end.

    Raises:
        ResultsError: the directory has lost cells, or cannot be read.
    """
    progress = watch.progress
    _expect(plans, watch)
    if not any(plan.open for plan in plans):
        return plans
    with progress.shown(), launched as launch:
        while stage := next((plan for plan in plans if plan.open), None):
            progress.note(_stage_line(stage, progress))
            if not launch(stage):
                break
            _look(place, watch, stage)
            failed = [cell_id for cell_id, end in watch.statuses.items() if end == "failed"]
            if course.ends_with(stage):
                plans = [*plans[:-1], stage.resumed({*place.finished, *failed})]
            else:
                plans = course.plans(failed)
            _expect(plans, watch)
        progress.show(last=True)
    return plans


@contextlib.contextmanager
def _launched(
    request: Request, course: Course, plans: Sequence[Plan], place: Workplace, watch: Watch
) -> Iterator[Launch]:
    """Gives what runs stages: on Ray, or in this process if no Ray starts.

    Raises:
        NoRay: and a search or a scheduler needs it.
    """
    with contextlib.ExitStack() as stack:
        try:
            launch = stack.enter_context(_on_ray(request, course, plans, place, watch))
        except NoRay as error:
            if course.search or request.scheduler:
                need = "--search and --scheduler need it: run the command again when it can start."
                raise NoRay(f"{error}. {need}") from None
            watch.progress.note(f"{error}; cells train in this process, one after the other")
            stack.enter_context(terminating())

            def launch(plan: Plan) -> bool:
                return _run_here(plan, work_of(request, plan), watch)

        yield launch


def _run_here(plan: Plan, work: Work, watch: Watch) -> bool:
    """Runs a stage without Ray; answers whether all its cells have ended."""
    jobs = [Job((pack,)) for job in plan.jobs for pack in job.packs]
    work = replace(work, gpu=plan.gpus_per_trial != 0)
    left = run_here(jobs, work, watch, Pace(lambda job: 0.0))
    return not (left or watch.stopped)


@contextlib.contextmanager
def _on_ray(
    request: Request, course: Course, plans: Sequence[Plan], place: Workplace, watch: Watch
) -> Iterator[Launch]:
    """Gives what runs stages on the cluster, or else on a Ray of this machine."""
    watch.progress.note(f"starting Ray's workers on {plans[-1].where}")  # most of the time
    results, cluster = place.results, place.cluster
    origin = results.origin()
    if cluster is not None:
        cluster.require(results.url, origin)
    source = source_digest() if cluster else None
    cores = max(plan.concurrent * plan.threads for plan in plans)
    own = ray_session(cores, watch.progress.note)
    session = contextlib.nullcontext(cluster.ray) if cluster else own
    with session as ray:
        with importing():
            from study.launch.tune import run_trials
            from study.search.under_tune import Halving, Suggestions

        def launch(plan: Plan) -> bool:
            gpus = plan.gpus_per_trial
            if gpus is None:
                gpus = 1 if ray.cluster_resources().get("GPU") else 0
            work = replace(work_of(request, plan), origin=origin, source=source, gpu=gpus > 0)
            jobs: Any = plan.jobs
            most = plan.max_concurrent
            if search := course.begun_search():
                costs = Costs(plan)
                jobs = Suggestions(search, watch, lambda cell: costs.of(cell).alone)
                most = most or plan.concurrent  # else one worker would start after the other
            scheduler = None
            if request.scheduler:
                scheduler = Halving(request.judged_by, recorded(place))
            run_trials(
                jobs,
                work,
                watch,
                gpus_per_trial=gpus,
                max_concurrent=most,
                max_retries=request.max_retries,
                scheduler=scheduler,
            )
            return not watch.stopped

        yield launch


def record_failures(request: Request, plans: Sequence[Plan], watch: Watch) -> None:
    """Records which confirming cells were given up, so that no verdict waits for their seeds."""
    final = [each for each in watch.failures if each.kind in ("out of memory", "worker lost")]
    given_up = {cell_id: failure for failure in final for cell_id in failure.cell_ids}
    for plan in plans:
        work = work_of(request, plan)
        for cell in plan.cells:
            if cell.id in given_up and work.stage(cell) == CONFIRM:
                failure = given_up[cell.id]
                record_failure(cell, f"{failure.kind}: {failure.reason}", work)


def recorded(place: Workplace) -> pd.DataFrame | None:
    """What is recorded: cells with their evaluations; None: nothing."""
    if not place.survey.statuses:
        return None
    facts = ["task", "num_classes", "status"]
    cells = place.results.cells(
        columns=["cell_id", "comparison_id", "paradigm", "schedule", "stage", *facts]
    )
    rows = place.results.evaluations(
        columns=["cell_id", "split", "budget_fraction", "accuracy", "saif"]
    )
    return cells.merge(rows, how="left", on="cell_id")


def _log(tracker: Tracker, plans: Sequence[Plan], place: Workplace) -> None:
    """Logs what the directory holds of these plans, whoever trained it."""
    held = place.finished
    tracker.log_cells({c.id: held[c.id] for plan in plans for c in plan.cells if c.id in held})


def _look(place: Workplace, watch: Watch, stage: Plan) -> None:
    """Looks at what the directory holds now; refuses to go on if it has lost cells."""
    failed = {cell_id for cell_id, end in watch.statuses.items() if end == "failed"}
    deadline = time.monotonic() + RECORD_SECONDS
    # A worker may still be recording what a scheduler stopped, and some file systems that nodes
    # share list a folder as it was up to a minute ago.
    for again in itertools.count():
        place.survey = place.results.survey()
        held = place.survey.statuses
        missing = watch.statuses.keys() - held.keys() - failed
        if not missing or place.survey.damaged or time.monotonic() > deadline:
            break
        if again == 1:
            cells = counted(len(missing), "cell")
            watch.progress.note(f"waiting up to {RECORD_SECONDS} s until the disk lists {cells}")
        time.sleep(0.5)
    gone = sorted(cell_id for cell_id in missing if watch.statuses[cell_id] != "censored")
    of_stage = {cell.id for cell in stage.to_run}
    if of_stage and not of_stage & (held.keys() | failed):
        gone.append(min(of_stage))
    if gone:
        place.results.records(gone)  # refuses a damaged file that may hold them
        raise ResultsError(
            f"{place.results.url} has lost cell {gone[0]}, which was recorded there. Bring the "
            "directory back: the same command goes on where this one ended."
        )


def _progress(plans: Sequence[Plan]) -> Progress:
    last = plans[-1]
    overhead = last.overhead
    return Progress(
        max(plan.concurrent for plan in plans),
        (overhead.start, overhead.report * num_settings(last.shown)),
        tasks.modality(last.shown[0].task).score,
    )


def _expect(plans: Sequence[Plan], watch: Watch) -> None:
    watch.progress.expect(
        [cell for plan in plans for cell in plan.to_run],
        {cell_id: s for plan in plans for cell_id, s in plan.seconds.items()},
        finished=sum(len(plan.finished - watch.statuses.keys()) for plan in plans),
        to_come=sum(plan.num_to_come for plan in plans),
        seconds_to_come=sum(plan.seconds_to_come for plan in plans),
    )


def _stage_line(plan: Plan, progress: Progress) -> str:
    """Which stage begins, what was chosen for it, and how long the rest takes."""
    options = {c.group: c.schedule.text for c in plan.to_run if c.seed in plan.confirm}
    cells = counted(len(plan.to_run) or plan.to_come[0].count, "cell")
    what = f"tuning: {cells}" if plan.confirm or plan.watched else f"{plan.kind}: {cells}"
    if options and len(options) == len({c.group for c in plan.to_run}):
        what = f"confirming {', '.join(dict.fromkeys(options.values()))}: {cells}"
    left = progress.seconds_left()
    return what if left is None else f"{what}, {duration(left)} left"
