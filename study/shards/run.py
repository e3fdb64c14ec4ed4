"""Trains a shard of a study in this process, beside other shards, again and again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from study import hardware
from study.cell import AnyCell
from study.concluding.choice import Choice
from study.drive import work_of
from study.errors import RequestError
from study.hardware import TF32_NEEDS_GPU
from study.kinds import KINDS
from study.launch.failures import Failure
from study.launch.workplace import Workplace, beside_others, looked_at
from study.plan.describe import describe
from study.plan.divide import cores_for
from study.plan.estimate import cell_seconds, choose_packing
from study.plan.networks import with_networks_first
from study.plan.overhead import Overhead
from study.plan.plan import Plan
from study.plan.planning import planned
from study.plan.stages import staged
from study.request import Request, Shard
from study.shards.in_turn import train_in_turn
from study.shards.share import Share
from study.terminal import counted
from study.terminal.command import DONE, FAILED, terminating
from study.terminal.working import working


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
    failures: list[Failure] = []
    left: list[AnyCell] = []
    while known.to_run and not (failures or left):
        work = replace(work_of(request, known), gpu=known.gpus_per_trial != 0)
        failures, left = train_in_turn(known, work, end)
        place.survey = place.results.survey()
        known, waiting = _known(request, grid, place, share)
    _tell(failures)
    for skip in known.skipped:
        print(f"skipped: {skip.what}: {skip.reason}")
    print(f"results: {place.results.url}")
    if to_come := _still_to_come(known, waiting):
        print(to_come, end="")
    elif not (failures or left):
        print("this share is done; once all are, the same command without --shard reports")
    return FAILED if failures else DONE


def _known(
    request: Request, grid: Plan, place: Workplace, share: Share
) -> tuple[Plan, Sequence[AnyCell]]:
    """The plan of what a shard can train now, and cells of its share that wait for networks."""
    choose = Choice(request, place)
    plan = staged(grid, request.confirm, place.survey.cells, place.finished, choose)
    storage = place.results.storage
    plans = with_networks_first(request, plan, place.survey, place.finished, storage)
    first = next((each for each in plans if each.to_run), plans[-1])
    waiting = share.of(plans[-1]).to_run if first is not plans[-1] else []
    mine = share.of(first)
    with working("timing cells"):
        mine = replace(mine, packing=choose_packing(mine, request.pack, share=False))
        seconds = cell_seconds(mine, [*mine.to_run, *mine.examples])
    return replace(mine, seconds=seconds), waiting


def _tell(failures: Sequence[Failure]) -> None:
    """Says what failed."""
    for failure in failures:
        ids = ", ".join(failure.cell_ids)
        print(f"cell {ids} failed: {failure.kind}: {failure.reason}", file=sys.stderr)
    bug = next((failure for failure in failures if failure.kind == "bug"), None)
    if bug is not None:
        print(f"\nthe first bug:\n{bug.text}", file=sys.stderr)
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
