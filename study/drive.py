"""Divides the machine, trains what is missing while MLflow is told, and reports."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from study import closing, tasks, terminal
from study.cell import Cell, Options
from study.cell.version import code_version, source_digest
from study.cell.work import Work
from study.errors import RequestError
from study.kinds import KINDS
from study.launch.cluster import default_address, join, require_lasting
from study.launch.failures import Failure
from study.launch.nodes import Cluster
from study.launch.tune import launch
from study.plan import overhead
from study.plan.axes import tasks_of
from study.plan.describe import describe, num_settings
from study.plan.divide import with_packing
from study.plan.dry_run import dry_run
from study.plan.estimate import cell_seconds, choose_packing
from study.plan.grid import make_plan
from study.plan.overhead import Overhead
from study.plan.plan import Plan
from study.request import Request
from study.results import Results, ResultsError, Survey
from study.search.halving import Judge
from study.search.search import Search
from study.search.space import Space
from study.search.suggestions import Suggestions
from study.storage.urls import absolute
from study.tasks.base import Facts
from study.tasks.sources.cache import cache_root
from study.terminal.command import DONE, FAILED
from study.terminal.progress import Progress
from study.tracking.tracker import open_tracker
from study.tracking.uris import tracking_uri
from study.train import checkpoints
from study.train.packs import Packing

T = TypeVar("T")


def drive(request: Request) -> int:
    """Plans, trains and reports a study.

    Returns:
        The exit status, see `study.terminal.command`.

    Raises:
        RequestError: it cannot be carried out.
        KeyboardInterrupt: Ctrl-C or SIGTERM; what is recorded stays.
    """
    results = Results(absolute(request.results))
    if results.storage.local:
        require_lasting(results.url)
    elif request.search or tracking_uri(request.tracking) is None:
        require_lasting(os.getcwd())  # there the databases are
    address = default_address() if request.address is None else request.address
    with contextlib.ExitStack() as stack:
        there = results.storage.exists("cells")
        if request.trains and there:  # first, so that no other command changes what is surveyed
            stack.enter_context(results.lock())
        survey = results.survey()
        cluster = None
        if address is not None and request.then != "dry run":
            cluster = stack.enter_context(join(address))
            cluster.require()
        plan = _plan(request, survey)
        if request.trains:
            results.prepare()
            if not there:
                stack.enter_context(results.lock())
                survey = results.survey()  # another command may have been faster
                done = frozenset(_finished(survey, request) & {cell.id for cell in plan.cells})
                plan = dataclasses.replace(plan, finished=done)
        return _carry_out(request, plan, survey, cluster)


def _carry_out(request: Request, plan: Plan, survey: Survey, cluster: Cluster | None) -> int:
    """Prints the plan and does with it what was asked for."""
    plan, seconds = _divided(request, plan, cluster)
    work = Work(
        study=plan.study,
        kind=request.space.kind,
        results=absolute(request.results),
        code_version=code_version(),
        share=plan.share,
        threads=plan.threads,
        data_dir=request.data_dir,
        cache_dir=request.cache_dir,
        micro_batch=request.micro_batch,
        checkpoint_every=request.checkpoint_every,
    )
    about = request.space.presets[plan.preset].about
    known = overhead.recall(cache_root(request.cache_dir), plan.where)
    print(describe(plan, about, seconds, request.price_per_hour, known), flush=True)
    if request.then == "plan":
        for damage in survey.damaged:
            print(f"note: {damage.name} is damaged ({damage.reason}); a run sets it aside")
        return DONE
    if request.then == "dry run":
        dry_run(plan, work)
        return DONE
    return _train(request, plan, work, survey, seconds, known, cluster)


def _plan(request: Request, survey: Survey) -> Plan:
    """The grid; for a search, whose cells are not known yet, examples of them."""
    space, axes = request.space, request.axes
    searched = Space.of(axes) if request.search else None
    points = list(searched.examples()) if searched else axes
    make_plan(space, request.preset, points, _nominal)  # before any download
    names = tasks_of(axes)
    if request.data_dir and not any(map(tasks.takes_data_dir, names)):
        raise RequestError(
            f"--data-dir is of no use to {' and '.join(names)}; leave the option out."
        )

    def facts_of(task: str, options: Options) -> Facts:
        data_dir = request.data_dir if tasks.takes_data_dir(task) else None
        if request.then == "plan" and not tasks.at_hand(task, data_dir, request.cache_dir):
            return _nominal(task, options)
        return tasks.load(task, data_dir, request.cache_dir, options).facts

    num_samples = request.num_samples or 0
    plan = make_plan(space, request.preset, points, facts_of, _finished(survey, request))
    return dataclasses.replace(
        plan,
        gpus_per_trial=request.gpus_per_trial,
        max_concurrent=request.max_concurrent,
        search=searched.describe(num_samples, request.metrics) if searched else "",
        searched_cells=num_samples * len(searched.seeds) if searched else 0,
    )


def _nominal(task: str, options: Options) -> Facts:
    return tasks.info(task, options).nominal


def _divided(
    request: Request, plan: Plan, cluster: Cluster | None
) -> tuple[Plan, dict[str, float]]:
    """The plan with its cells in packs or with shared prefixes, and the machine or the cluster
    divided among them; and the estimated seconds of each cell there, by id.
    """
    room = None
    if cluster is not None:
        asked = plan.gpus_per_trial
        gpus = cluster.default_gpus() if asked is None else asked
        where = f"the cluster at {cluster.address}"
        plan = dataclasses.replace(plan, gpus_per_trial=gpus, where=where)
        room = cluster.room(gpus)
    divide = functools.partial(with_packing, room=room, threads=request.threads)
    plan = divide(plan, plan.packing)
    if request.search or request.scheduler:
        reason = "a search knows its cells one by one" if request.search else "ASHA may stop them"
        plan = divide(plan, Packing(reason=reason), no_share_reason=reason)
    else:
        packing = _where_it_trains(choose_packing, plan, cluster, request.pack)
        plan = divide(plan, packing, share=request.share)
    timed = plan.cells if request.search else plan.to_run  # of a search, examples
    return plan, _where_it_trains(cell_seconds, plan, cluster, timed)


def _where_it_trains(
    function: Callable[..., T], plan: Plan, cluster: Cluster | None, argument: Any
) -> T:
    """Calls a function that may time cells, on a cluster where one is to train."""
    if cluster is None or not (plan.to_run or plan.searched_cells):
        return function(plan, argument)
    gpus = plan.gpus_per_trial or 0
    return cluster.call(function, plan, argument, threads=plan.threads, gpus=gpus)


def _finished(survey: Survey, request: Request) -> set[str]:
    """Ids of the cells that need no run.

    What a scheduler stopped early is no result of a study that stops nothing.
    """
    statuses = survey.statuses.items()
    return {id for id, status in statuses if request.scheduler or status != "censored"}


def _train(
    request: Request,
    plan: Plan,
    work: Work,
    survey: Survey,
    seconds: dict[str, float],
    known: Overhead,
    cluster: Cluster | None,
) -> int:
    """Trains what is missing while MLflow is told, then compares and reports."""
    started = time.monotonic()
    results = Results(work.results)
    if survey.damaged:
        names = ", ".join(results.set_aside(survey.damaged))
        print(f"set aside damaged files ({names}); their cells run again", file=sys.stderr)
    _sweep(results, plan.cells, {*plan.finished, *_finished(survey, request)})
    around = (known.start, known.report * num_settings(plan.cells))
    finished = len(plan.finished)
    progress = Progress(plan.to_run, seconds, plan.concurrent, finished, around=around)
    suggestions = None
    if request.search:
        progress, suggestions = _search(request, plan, results, survey, seconds, around)
        plan = dataclasses.replace(plan, cells=(), finished=frozenset())
    tracker = open_tracker(results, plan.study, request.tracking)
    tracker.log_cells(sorted(plan.finished), survey.statuses)

    def on_cell(cell_id: str) -> str:
        status = None
        try:
            status = results.status(cell_id)
        except ResultsError:
            if results.storage.exists("cells"):
                raise
        if status is None:
            raise ResultsError(
                f"{results.url} has lost cell {cell_id}, which was recorded there. Bring the "
                "directory back: the same command goes on where this one ended."
            )
        tracker.log_cells([cell_id])
        return status

    failures: list[Failure] = []
    if plan.to_run or suggestions:
        judge = None
        if request.scheduler:
            judge = Judge(metric=request.judged_by)
            if survey.statuses:
                judge.prime(results.cells().merge(results.evaluations(), on="cell_id"))
        # Last, since from now on the trials of another command with this directory stop.
        mark = results.mark()
        if cluster is not None:
            cluster.require(results.url, mark)
        failures = launch(
            plan.jobs,
            dataclasses.replace(work, mark=mark, source=source_digest() if cluster else None),
            plan.resources,
            progress,
            on_cell,
            cluster,
            request.max_retries,
            suggestions,
            judge,
        )
        progress.show(last=True)
    for failure in failures:
        if failure.kind == "bug":
            tracker.finish({}, [])
            print(f"\ncell {', '.join(failure.cell_ids)} raised:", file=sys.stderr)
            print(failure.text, file=sys.stderr)
            print(
                "the study stopped; what is done is kept: the same command goes on",
                file=sys.stderr,
            )
            return FAILED
    cells = suggestions.search.cells if suggestions else plan.cells
    failed = {cell_id for failure in failures for cell_id in failure.cell_ids}
    ended = {cell.id for cell in cells} - failed
    if suggestions:  # which may have found cells that an earlier run recorded
        tracker.log_cells(sorted(ended & survey.statuses.keys()), survey.statuses)
    _sweep(results, cells, ended)
    before = _finished(survey, request)
    shown = closing.report(request, plan, cells, failed, survey, before, tracker)
    if progress.began and progress.ended_at and shown and not failures:
        after = (time.monotonic() - progress.ended_at) / shown
        measured = Overhead(progress.began - started, after)
        overhead.remember(cache_root(request.cache_dir), plan.where, measured)
    if suggestions:
        print(terminal.fitted(suggestions.search.summary(request.select)))
    for failure in failures:
        ids = ", ".join(failure.cell_ids)
        print(f"cell {ids} failed: {failure.kind}: {failure.reason}", file=sys.stderr)
    if failed:
        print(
            f"{len(failed)} of {len(cells)} cells failed and are missing above; the same "
            "command tries them again",
            file=sys.stderr,
        )
    return FAILED if failed else DONE


def _sweep(results: Results, cells: Collection[Cell], ended: Collection[str]) -> None:
    """Removes the checkpoints and fork points, left by a kill, that no cell needs."""
    needed = {cell.first_phase_id for cell in cells if cell.id not in ended}
    checkpoints.sweep(results.storage, ended, {cell.first_phase_id for cell in cells} - needed)


def _search(
    request: Request,
    plan: Plan,
    results: Results,
    survey: Survey,
    seconds: Mapping[str, float],
    around: tuple[float, float],
) -> tuple[Progress, Suggestions]:
    """A search as the source of cells, and its progress; the plan's examples give the times."""
    maker = KINDS[request.space.kind].maker(lambda task, options: plan.facts[task, options])
    of_paradigm = {cell.paradigm: seconds[cell.id] for cell in plan.cells}
    mean = sum(seconds.values()) / len(seconds)
    progress = Progress(
        [],
        {},
        plan.concurrent,
        to_come=plan.searched_cells,
        seconds_each=mean,
        around=around,
    )
    search = Search(
        name=plan.study,
        results=results,
        axes=request.axes,
        make_cell=maker.runnable,
        objective=request.metrics,
        num_samples=request.num_samples or 0,
    )
    finished = _finished(survey, request)
    return progress, Suggestions(
        search,
        {id: status for id, status in survey.statuses.items() if id in finished},
        lambda cells, done: progress.add(
            cells, {cell.id: of_paradigm[cell.paradigm] for cell in cells}, done
        ),
    )
