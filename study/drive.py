"""Opens the place where a study runs, and trains the missing cells while MLflow logs them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from study import parts, tasks
from study.cell import AnyCell, Cell
from study.cell.version import code_version, source_digest
from study.cell.work import Work
from study.kinds import KINDS
from study.launch.cluster import default_address, join, require_lasting
from study.launch.failures import Failure
from study.launch.tune import launch
from study.launch.workplace import Workplace, locked_if_there, results_in
from study.plan.describe import num_settings
from study.plan.networks import with_networks
from study.plan.plan import Plan, Skip
from study.plan.stages import Choose, unchosen
from study.plan.to_come import CellsToCome
from study.request import Request
from study.results import Results, ResultsError
from study.search.halving import Judge
from study.search.search import Search
from study.storage.urls import absolute
from study.terminal.progress import Progress
from study.terminal.working import working
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
        locked = request.trains and locked_if_there(results, stack)
        survey = results.survey()
        cluster = None
        if address is not None and request.then != "dry run":
            cluster = stack.enter_context(join(address))
            cluster.require()
        yield Workplace(results, survey, cluster, bool(request.scheduler), stack, locked)


def work_of(request: Request, plan: Plan) -> Work:
    """The work that all trials of a study share."""
    return Work(
        study=plan.study,
        kind=plan.kind,
        results=absolute(request.results),
        code_version=code_version(),
        confirm=plan.confirm,
        share=plan.share,
        threads=plan.threads,
        **request.places._asdict(),
        parts=parts.loaded(),
        micro_batch=request.micro_batch,
        checkpoint_every=request.checkpoint_every,
    )


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
    search: Search | None
    start_seconds: float | None
    ended_at: float | None

    @property
    def bug(self) -> Failure | None:
        """The bug that stopped the study, if any."""
        return next((failure for failure in self.failures if failure.kind == "bug"), None)

    @property
    def failed(self) -> set[str]:
        """Ids of the failed cells."""
        return {cell_id for failure in self.failures for cell_id in failure.cell_ids}


def train(request: Request, plans: Sequence[Plan], place: Workplace, choose: Choose) -> Trained:
    """Runs the missing cells of a study while MLflow logs them.

    Args:
        request: what was asked for.
        plans: one after the other; the cells of the last may take apart networks of the first.
        place: where they run.
        choose: chooses the options that are confirmed.

    Raises:
        RequestError: too few resources, or the results directory cannot be written any more.
        KeyboardInterrupt: Ctrl-C or SIGTERM; recorded cells stay.
    """
    with working("opening MLflow"):
        tracker = open_tracker(place.results, plans[-1].study, request.tracking)
    done: list[Trained] = []
    for plan in plans:
        if done and plans[0].to_run:  # else the plan knows already which networks there are
            survey = place.results.survey()
            plan = with_networks(plan, survey.statuses, place.results.storage)
        done.append(_train(request, plan, place, choose, tracker))
        if done[-1].bug:
            break
    return Trained(
        cells=[cell for each in done for cell in each.cells],
        failures=[failure for each in done for failure in each.failures],
        unchosen=[cell for each in done for cell in each.unchosen],
        skipped=[skip for each in done for skip in each.skipped],
        tracker=tracker,
        search=done[-1].search,
        start_seconds=next((s for each in done if (s := each.start_seconds)), None),
        ended_at=next((s for each in reversed(done) if (s := each.ended_at)), None),
    )


def _train(
    request: Request, plan: Plan, place: Workplace, choose: Choose, tracker: Tracker
) -> Trained:
    """Runs the missing cells of one plan."""
    if not (plan.cells or plan.to_come):  # no network that it needs trained to its end
        return Trained([], [], plan.skipped, [], tracker, None, None, None)
    started = time.monotonic()
    results, statuses = place.results, place.survey.statuses
    kind = KINDS[plan.kind]
    kind.sweep(results.storage, plan.cells, place.finished)
    progress = _progress(plan)
    search = _search(request, plan, place, progress) if request.search else None
    to_come = CellsToCome(plan, place.finished, choose, progress, search)
    tracker.log_cells({cell_id: statuses[cell_id] for cell_id in sorted(plan.finished)})

    def on_cell(cell_id: str) -> str:
        status = _recorded(results, cell_id)
        tracker.log_cells({cell_id: status})
        place.merge([cell_id], progress.note)
        return status

    failures: list[Failure] = []
    if plan.to_run or plan.to_come:
        origin = results.origin()
        if place.cluster is not None:
            place.cluster.require(results.url, origin)
        source = source_digest() if place.cluster else None
        judge = _judge(request, place) if request.scheduler else None
        with progress.shown():
            progress.note(f"starting Ray's workers on {plan.where}")  # most of the time before
            failures = launch(
                plan.jobs,
                dataclasses.replace(work_of(request, plan), origin=origin, source=source),
                plan.resources,
                progress,
                on_cell,
                place.cluster,
                request.max_retries,
                to_come,
                judge,
            )
            progress.show(last=True)
    cells = [*plan.cells, *(search.cells if search else []), *to_come.cells]
    trained = Trained(
        cells=cells,
        failures=failures,
        unchosen=unchosen(cells, plan.confirm),
        skipped=plan.skipped,
        tracker=tracker,
        search=search,
        start_seconds=progress.began - started if progress.began else None,
        ended_at=progress.ended_at,
    )
    if trained.bug:
        return trained
    ended = {cell.id for cell in trained.cells} - trained.failed
    # What became known since may have been recorded before.
    tracker.log_cells({i: s for i, s in statuses.items() if i in ended - plan.finished})
    results.sweep()  # a worker may have been killed as it wrote
    kind.sweep(results.storage, trained.cells, ended)
    return trained


def _recorded(results: Results, cell_id: str) -> str:
    """The status of a cell that a trial has just recorded."""
    status = None
    try:  # another command may have merged the cell's file already
        status = results.status(cell_id) or results.survey().statuses.get(cell_id)
    except ResultsError:
        if results.storage.exists("cells"):
            raise
    if status is None:
        raise ResultsError(
            f"{results.url} has lost cell {cell_id}, which was recorded there. Bring the "
            "directory back: the same command goes on where this one ended."
        )
    return status


def _judge(request: Request, place: Workplace) -> Judge:
    judge = Judge(metric=request.judged_by)
    if place.survey.statuses:
        judge.prime(place.results.cells().merge(place.results.evaluations(), on="cell_id"))
    return judge


def _progress(plan: Plan) -> Progress:
    to_come = plan.num_to_come
    return Progress(
        plan.to_run,
        plan.seconds,
        plan.concurrent,
        len(plan.finished),
        to_come=to_come,
        seconds_each=plan.seconds_to_come / to_come if to_come else 0.0,
        around=(plan.overhead.start, plan.overhead.report * num_settings(plan.shown)),
        score=tasks.modality(plan.shown[0].task).score,
    )


def _search(request: Request, plan: Plan, place: Workplace, progress: Progress) -> Search:
    """A search as the source of cells; their estimated times are those of the plan's examples."""
    of_label = {cell.label: plan.seconds[cell.id] for cell in plan.shown}

    def announce(cells: Sequence[AnyCell], done: int, gone: int) -> None:
        progress.add(cells, {cell.id: of_label[cell.label] for cell in cells}, done, gone)

    return Search(
        name=plan.study,
        results=place.results,
        axes=request.axes,
        make_cell=KINDS[plan.kind].maker(lambda task, opts: plan.facts[task, opts]).runnable,
        objective=request.metrics,
        num_samples=request.num_samples or 0,
        finished=place.finished,
        announce=announce,
    )
