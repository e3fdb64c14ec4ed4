"""Trains a shard of a study in this process, beside other shards, again and again."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from study import hardware, tasks
from study.cell.work import Job
from study.concluding.choice import Choice
from study.drive import record_failures, run_stages, work_of
from study.errors import RequestError
from study.hardware import TF32_NEEDS_GPU
from study.kinds import KINDS
from study.launch.failures import Failure, say
from study.launch.here import Pace, run_here
from study.launch.watching import Watch
from study.launch.workplace import Workplace, beside_others, looked_at
from study.plan.axes import tasks_of
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
        grid = _in_this_process(request, planned(request), shard)
    share = Share(shard, grid, request.confirm)

    def divide(plans: Sequence[Plan]) -> list[Plan]:
        return [_timed(request, share.next(plans))]

    if request.then == "plan":
        place = looked_at(request.results)
        (plan,) = Course(request, grid, place, Choice(request, place), divide).plans()
        print(f"shard {shard}")
        if plan.cells or plan.to_come:
            print(describe(plan, request.about, request.price_per_hour))
        print(_still_to_come(plan, share), end="")
        return DONE
    with terminating():
        place = beside_others(request.results)
        course = Course(request, grid, place, Choice(request, place), divide)
        return _train(request, course, place, share, began + 60 * request.minutes)


def _in_this_process(request: Request, grid: Plan, shard: Shard) -> Plan:
    """The plan for one trial at a time, here; sets this process up for it."""
    cores = cores_for(request.threads)
    asked = request.threads or _openmp_threads()
    threads = min(asked or cores, cores)
    may_use_gpu = KINDS[grid.kind].trains and request.gpus_per_trial != 0
    gpu = hardware.set_up(threads, may_use_gpu).type == "cuda"
    if not gpu and any(cell.precision == "tf32" for cell in grid.cells):
        raise RequestError(TF32_NEEDS_GPU)
    notes = []
    if shard.of > 1 and cores > 1 and not (asked or gpu):
        notes.append(
            f"this shard takes all {cores} cores; if all {shard.of} run on this machine, give "
            f"each --threads {max(1, cores // shard.of)}"
        )
    return replace(
        grid,
        threads=threads,
        concurrent=1,
        gpus_per_trial=None if gpu else 0,
        notes=tuple(notes),
        overhead=Overhead(start=0.0, report=0.0),
        no_share_reason="a shard trains every cell from its start",
    )


def _openmp_threads() -> int | None:
    """The threads that OMP_NUM_THREADS gives to this process; None: it says nothing."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) else None


def _timed(request: Request, plan: Plan) -> Plan:
    with working("timing cells"):
        plan = replace(plan, packing=choose_packing(plan, request.pack, share=False))
        return replace(plan, costs=cell_seconds(plan, [*plan.to_run, *plan.examples]))


def _train(request: Request, course: Course, place: Workplace, share: Share, end: float) -> int:
    """Trains what is known of a share, and what that makes known."""
    (plan,) = course.plans()
    cells, done = counted(len(plan.cells), "cell"), len(plan.finished)
    print(
        f"shard {share.shard} of {plan.study}: {cells}, {done} done already, "
        f"{len(plan.to_run)} to run",
        *(f"note: {note}" for note in plan.notes),
        sep="\n",
        flush=True,
    )
    progress = Progress(1, score=tasks.modality(tasks_of(request.axes)[0]).score)
    watch = Watch(progress)
    left = ""

    def launch(stage: Plan) -> bool:
        nonlocal left
        work = replace(work_of(request, stage), gpu=stage.gpus_per_trial != 0)
        jobs = [Job((pack,)) for job in stage.jobs for pack in job.packs]
        pace = Pace(functools.partial(estimate, stage), end)
        if waiting := run_here(jobs, work, watch, pace):
            left = _why(waiting, watch.failures, pace)
        return not (left or any(failure.ends_process for failure in watch.failures))

    (plan,) = run_stages(course, [plan], place, watch, contextlib.nullcontext(launch))
    record_failures(request, [plan], watch)
    if left:
        print(f"{left}: the same command goes on")
    say(watch.failures)
    if watch.failures:
        print("the same command tries the failed cells again", file=sys.stderr)
    for skip in plan.skipped:
        print(f"skipped: {skip.what}: {skip.reason}")
    print(f"results: {place.results.url}")
    if to_come := _still_to_come(plan, share):
        print(to_come, end="")
    elif not (watch.failures or left):
        print("this share is done; once all are, the same command without --shard reports")
    return FAILED if watch.failures else DONE


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


def _still_to_come(plan: Plan, share: Share) -> str:
    """Lines on the cells of a share that cannot train yet; empty: there are none."""
    lines = []
    if plan.num_to_come:
        confirm = counted(plan.num_to_come, "cell confirms", "cells confirm")
        lines.append(f"to come: {confirm} what is not chosen yet")
    if share.waiting:
        take = counted(len(share.waiting), "cell takes", "cells take")
        lines.append(f"to come: {take} apart networks that train first")
    then = "Once all shards have ended, run them again"
    if share.lacking:
        them = "tuning cell" if plan.num_to_come else "cell"
        lack = counted(share.lacking, f"{them} of other shards is", f"{them}s of other shards are")
        then = f"{lack} not in this directory: once they are, run this again"
    return "".join(f"{line}. {then}\n" for line in lines)
