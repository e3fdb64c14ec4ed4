"""Trains a shard of a study in this process, beside other shards, again and again."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import replace

from study import hardware, tasks
from study.cell import AnyCell
from study.cell.work import Job
from study.concluding.choice import Choice
from study.drive import work_of
from study.errors import RequestError
from study.hardware import TF32_NEEDS_GPU
from study.kinds import KINDS
from study.launch.failures import Failure
from study.launch.here import Pace, run_here
from study.launch.watching import Watch
from study.launch.workplace import Workplace, beside_others, looked_at
from study.plan.course import Course
from study.plan.describe import describe
from study.plan.divide import cores_for
from study.plan.estimate import cell_seconds, choose_packing
from study.plan.overhead import Overhead
from study.plan.plan import Plan
from study.plan.planning import planned
from study.request import Request, Shard
from study.shards.share import Share
from study.terminal import counted
from study.terminal.command import DONE, FAILED, terminating
from study.terminal.progress import Progress
from study.terminal.working import duration, working


def run_shard(request: Request, shard: Shard, began: float) -> int:
    """Trains what is known of a share, or prints the plan of it; the exit status.

    Args:
        request: what was asked for.
        shard: which share.
        began: when the command did, in seconds of `time.monotonic`.

    Raises:
        RequestError: a command that is no shard runs with the results directory, or the request
            cannot be carried out here.
        KeyboardInterrupt: Ctrl-C or SIGTERM; recorded cells stay.
    """
    with working("planning"):
        grid = planned(request)
    cores = cores_for(request.threads)
    threads = request.threads or cores
    may_use_gpu = KINDS[grid.kind].trains and request.gpus_per_trial != 0
    gpu = hardware.set_up(threads, may_use_gpu).type == "cuda"
    if not gpu and any(cell.precision == "tf32" for cell in grid.cells):
        raise RequestError(TF32_NEEDS_GPU)
    grid = replace(
        grid,
        threads=threads,
        concurrent=1,
        gpus_per_trial=None if gpu else 0,
        overhead=Overhead(start=0.0, report=0.0),
        no_share_reason="a shard trains every cell from its start",
    )
    share = Share(shard, grid, request.confirm)
    if request.then == "plan":
        known, waiting = _known(request, grid, looked_at(request.results), share)
        print(f"shard {shard}")
        if known.cells or known.to_come:
            print(describe(known, request.about, request.price_per_hour))
        print(_still_to_come(known, waiting), end="")
        return DONE
    with terminating():
        place = beside_others(request.results)
        return _train(request, grid, place, share, began + 60 * request.minutes)


def _train(request: Request, grid: Plan, place: Workplace, share: Share, end: float) -> int:
    """Trains what is known of a share, and what that makes known."""
    known, waiting = _known(request, grid, place, share)
    cells, done = counted(len(known.cells), "cell"), len(known.finished)
    print(
        f"shard {share.shard} of {known.study}: {cells}, {done} done already, "
        f"{len(known.to_run)} to run",
        flush=True,
    )
    progress = Progress(1, score=tasks.modality(grid.cells[0].task).score)
    watch = Watch(progress, lambda cell_id, status: None)
    left: list[Job] = []
    with progress.shown():
        while known.to_run and not (watch.failures or left):
            before = known.finished - watch.statuses.keys()
            progress.expect(known.to_run, known.seconds, len(before))
            work = replace(work_of(request, known), gpu=known.gpus_per_trial != 0)
            pace = Pace(functools.partial(estimate, known), end)
            jobs = [Job((pack,)) for job in known.jobs for pack in job.packs]
            left = run_here(jobs, work, watch, pace)
            place.survey = place.results.survey()
            known, waiting = _known(request, grid, place, share)
        progress.show(last=True)
    if left:
        print(f"{_why(left, watch.failures, pace)}: the same command goes on")
    _tell(watch.failures)
    for skip in known.skipped:
        print(f"skipped: {skip.what}: {skip.reason}")
    print(f"results: {place.results.url}")
    if to_come := _still_to_come(known, waiting):
        print(to_come, end="")
    elif not (watch.failures or left):
        print("this share is done; once all are, the same command without --shard reports")
    return FAILED if watch.failures else DONE


def _known(
    request: Request, grid: Plan, place: Workplace, share: Share
) -> tuple[Plan, Sequence[AnyCell]]:
    """The plan of what a shard can train now, and cells of its share that wait for networks."""
    plans = Course(request, grid, place, Choice(request, place)).plans()
    first = next((each for each in plans if each.to_run), plans[-1])
    waiting = share.of(plans[-1]).to_run if first is not plans[-1] else []
    mine = share.of(first)
    with working("timing cells"):
        mine = replace(mine, packing=choose_packing(mine, request.pack, share=False))
        costs = cell_seconds(mine, [*mine.to_run, *mine.examples])
    return replace(mine, costs=costs), waiting


def estimate(plan: Plan, job: Job) -> float:
    """Seconds of a pack; a smaller one than was measured takes as long, or as its cells alone."""
    measured = plan.packing.measured_of(job.cells[0])
    shares = sum(plan.seconds[cell_id] for cell_id in job.ids)
    return shares * min(measured.speedup, measured.members / len(job.cells))


def _why(left: Sequence[Job], failures: Sequence[Failure], pace: Pace) -> str:
    """Why cells are left."""
    cells = [cell for job in left for cell in job.cells]
    if failures and failures[-1].ends_process:
        wait = counted(len(cells), "cell waits", "cells wait")
        return f"{wait} for another process, as this one cannot use its GPU any more"
    if failures:
        return f"{counted(len(cells), 'cell is', 'cells are')} left"
    shortest = duration(min(pace.seconds(Job(((cell,),))) for cell in cells))
    return (
        f"{counted(len(cells), 'cell')} would not have ended in time (the shortest takes about "
        f"{shortest})"
    )


def _tell(failures: Sequence[Failure]) -> None:
    """Says what failed."""
    for failure in failures:
        ids = ", ".join(failure.cell_ids)
        print(f"cell {ids} failed: {failure.kind}: {failure.reason}", file=sys.stderr)
        if failure.kind == "bug":
            print(f"\n{failure.text}", file=sys.stderr)
    if failures:
        print("the same command tries the failed cells again", file=sys.stderr)


def _still_to_come(plan: Plan, waiting: Sequence[AnyCell]) -> str:
    """Lines on the cells of a share that cannot train yet; empty: there are none."""
    lines = []
    if plan.num_to_come:
        confirm = counted(plan.num_to_come, "cell confirms", "cells confirm")
        lines.append(f"to come: {confirm} what is not chosen yet")
    if waiting:
        take = counted(len(waiting), "cell takes", "cells take")
        lines.append(f"to come: {take} apart networks that train first")
    return "".join(f"{line}. Once all shards have ended, run them again\n" for line in lines)
