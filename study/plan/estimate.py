"""Estimates how long cells take on this machine by training short ones on made-up data."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from study import hardware, tasks
from study.cell import Budget, Cell, Schedule
from study.plan.plan import Plan
from study.tasks.base import Facts, Task
from study.train import cost, packs
from study.train.loop import train_pack
from study.train.packs import MOST_MEMBERS, Packing
from study.train.timeline import steps_by_phase, timeline

TIMED_FLOPS = {"cpu": 10**10, "cuda": 10**13}
"""Training FLOPs of a timed cell, by device: some tenths of a second."""

FEWEST_STEPS, MOST_STEPS = 3, 100

WORTHWHILE = 1.1
"""Least speedup at which cells are packed, over cells alone."""


def cell_seconds(plan: Plan, cells: Sequence[Cell]) -> dict[str, float]:
    """Estimated seconds of each cell at the plan's threads, evaluations included, by cell id.

    A packed cell counts its share of the pack's time, a forked cell only what it trains itself.
    The timing takes seconds, however large the grid.
    """
    known: dict[tuple[Any, ...], tuple[float, float]] = {}
    forks = {cell.id for job in plan.jobs if job.waits_for for cell in job.cells}
    with _timing(plan) as device:
        return {
            cell.id: _cell_seconds(cell, plan, device, known, cell.id in forks)
            / plan.packing.speedup
            for cell in cells
        }


def choose_packing(plan: Plan, requested: str) -> Packing:
    """Chooses how to pack the cells of a plan.

    Args:
        plan: whose cells to pack.
        requested: a name of `study.train.packs.AXES`, or `auto`: packs if this machine's GPU is
            measured to train them faster than single cells.
    """
    if requested != "auto":
        return Packing(requested)
    if not torch.cuda.is_available() or plan.gpus_per_trial == 0:
        return Packing(reason="on CPUs packed cells only take turns")
    largest = max(packs.form(plan.to_run, Packing("seed,lr")), key=len, default=[])
    if len(largest) < 2:
        return Packing(reason="no two cells to run differ in seed and learning rates only")
    sizes = {min(len(largest), MOST_MEMBERS // part) for part in (1, 2, 4)} - {1}
    for members in sorted(sizes, reverse=True):
        try:
            with _timing(plan) as device:
                speedup = _speedup(largest[:members], plan, device)
        except torch.OutOfMemoryError:
            continue
        if speedup >= WORTHWHILE:
            reason = f"measured {speedup:.1f} times as fast as its cells alone"
            return Packing("seed,lr", reason, members, speedup)
    return Packing(reason="no pack was measured to be faster than its cells alone")


@contextlib.contextmanager
def _timing(plan: Plan) -> Iterator[torch.device]:
    """Sets this process up like a trial's while it times cells; frees its memory at the end."""
    before = torch.get_num_threads()
    try:
        yield hardware.set_up(plan.threads, gpu=plan.gpus_per_trial != 0)
    finally:
        torch.set_num_threads(before)
        hardware.give_back_memory()


def _cell_seconds(
    cell: Cell,
    plan: Plan,
    device: torch.device,
    known: dict[tuple[Any, ...], tuple[float, float]],
    forks: bool,
) -> float:
    stops = timeline(cell, plan.flops[cell.id])
    total = 0.0
    evaluated = min(cell.train_metrics_size, cell.n) + cell.validation_size + cell.test_size
    for index, steps in enumerate(steps_by_phase(cell, stops)):
        paradigm = cell.schedule.phases[index].paradigm
        held = cell.alpha is not None
        network = (cell.task, cell.options, held, cell.architecture, cell.width)
        key = (*network, cell.precision, cell.m, cell.batch_size, paradigm)
        if key not in known:
            known[key] = _input_seconds([cell], paradigm, plan, device)
        train_seconds, evaluate_seconds = known[key]
        if forks and index == 0:
            continue
        evaluations = sum(1 for stop in stops if stop.phase == index and stop.evaluate_at)
        total += steps * cell.batch_size * train_seconds
        total += evaluations * evaluated * evaluate_seconds
    return total


def _speedup(cells: Sequence[Cell], plan: Plan, device: torch.device) -> float:
    """Cell-steps per second of a pack, relative to its first cell alone."""
    paradigm = cells[0].schedule.phases[0].paradigm
    alone, _ = _input_seconds(cells[:1], paradigm, plan, device)
    packed, _ = _input_seconds(cells, paradigm, plan, device)
    return len(cells) * alone / packed


def _input_seconds(
    cells: Sequence[Cell], paradigm: str, plan: Plan, device: torch.device
) -> tuple[float, float]:
    """Seconds in which a pack trains on one input each, and one member evaluates one input.

    A timed batch of mosaics fills one pass through the networks, and larger ones are scaled from
    it. A timed batch of posts is the cell's own, since every step updates all word vectors.
    """
    cell = cells[0]
    facts = plan.facts[cell.task, cell.options]
    flops = plan.flops[cell.id]
    count = cell.batch_size
    if not facts.lengths:
        bytes_each = 4 * cell.m * math.prod(facts.input_shape)
        count = hardware.micro_batch(cell.batch_size, bytes_each, device)
    step_flops = count * cost.training_flops(paradigm, flops, cell.m)
    steps = min(max(int(TIMED_FLOPS[device.type] // step_flops), FEWEST_STEPS), MOST_STEPS)
    task = _made_up(cell, facts, steps * count)
    short = [
        dataclasses.replace(
            cell,
            schedule=Schedule.single(paradigm, 1e-6),
            budget=Budget(steps * count, "mosaics"),
            evaluation_points=(1.0,),
            n=steps * count,  # one epoch, as its end would weigh too much in so few steps
            batch_size=count,
            train_metrics_size=count,
            validation_size=count,
            test_size=count,
        )
        for cell in cells
    ]
    outcome = train_pack(short, task, device)[0]
    return outcome.train_seconds / steps / count, outcome.evaluate_seconds / 3 / count


def _made_up(cell: Cell, facts: Facts, count: int) -> Task:
    """The task with noise for data, on which steps take as long."""
    return tasks.info(cell.task, cell.options).made_up(facts, count)
