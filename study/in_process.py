"""Trains what a plan leaves to run in this process, without Ray."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch

from study import hardware, tasks
from study.cell import AnyCell
from study.cell.work import Work
from study.errors import RequestError
from study.launch.failures import Failure
from study.launch.in_turn import train_in_turn
from study.launch.pace import Pace
from study.limits import usable_cores
from study.plan.plan import Plan
from study.terminal import counted
from study.terminal.progress import Progress
from study.terminal.working import duration
from study.train.steps.packs import form


def set_up(threads: int | None, gpu: bool) -> tuple[int, torch.device]:
    """Sets this process up to train.

    Args:
        threads: CPU threads; None: all cores that it may use.
        gpu: whether to use a GPU if there is one.

    Returns:
        The threads and the device.

    Raises:
        RequestError: there are fewer cores.
    """
    cores = usable_cores()
    if (threads or 0) > cores:
        raise RequestError(
            f"--threads {threads}, but this process may use {counted(cores, 'core')}."
        )
    threads = threads or cores
    return threads, hardware.set_up(threads, gpu)


def packs_of(plan: Plan) -> list[tuple[AnyCell, ...]]:
    """The cells to run in packs, in the order of the packs' first cells in the plan."""
    place = {cell.id: number for number, cell in enumerate(plan.cells)}
    packs = [tuple(pack) for pack in form(plan.to_run, plan.packing)]
    return sorted(packs, key=lambda pack: place[pack[0].id])


def train_here(plan: Plan, work: Work, pace: Pace) -> list[Failure]:
    """Trains what is left to run, pack by pack, and says what is left then.

    Args:
        plan: with packs and estimated seconds.
        work: what all cells have in common.
        pace: knows how long packs take, and how much time there is.

    Returns:
        Why cells failed.

    Raises:
        RequestError: the data is not the plan's, or the results directory cannot be written.
        KeyboardInterrupt: Ctrl-C or SIGTERM; recorded cells stay.
    """
    score = tasks.modality(plan.cells[0].task).score
    progress = Progress(plan.to_run, plan.seconds, 1, len(plan.finished), score=score)
    with progress.shown():
        failures, left = train_in_turn(packs_of(plan), work, progress, pace)
    if left:
        shortest = duration(min(pace.seconds([cell]) for cell in left))
        cells = counted(len(left), "cell")
        why = f"{cells} would not have ended in time (the shortest takes about {shortest})"
        if any(failure.ends_process for failure in failures):
            wait = counted(len(left), "cell waits", "cells wait")
            why = f"{wait} for another process, as this one cannot use its GPU any more"
        print(f"{why}: the same command goes on")
    return failures


def tell(failures: Sequence[Failure]) -> None:
    """Says what failed."""
    for failure in failures:
        ids = ", ".join(failure.cell_ids)
        print(f"cell {ids} failed: {failure.kind}: {failure.reason}", file=sys.stderr)
    bug = next((failure for failure in failures if failure.kind == "bug"), None)
    if bug is not None:
        print(f"\nthe first bug:\n{bug.text}", file=sys.stderr)
    if failures:
        print("the same command tries the failed cells again", file=sys.stderr)
