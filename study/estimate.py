"""How long cells take on this machine: short cells of each kind, trained on made-up data."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from study import compute, execution, packs, tasks
from study.cell import Budget, Cell, Schedule
from study.compute import ModelFlops
from study.packs import MOST_MEMBERS, Packing
from study.plan import Plan
from study.tasks.base_images import BaseImages
from study.tasks.mosaics import MosaicTask
from study.train import train_pack

TIMED_FLOPS = {"cpu": 10**10, "cuda": 10**13}
"""Training FLOPs that are timed, by device: some tenths of a second."""

FEWEST_STEPS, MOST_STEPS = 3, 100

MADE_UP_IMAGES = 20
"""Images of a class, in each split of the made-up data."""

WORTHWHILE = 1.1
"""How many times faster packed cells must be than cells alone."""


def cell_seconds(plan: Plan, cells: Sequence[Cell]) -> dict[str, float]:
    """Estimated seconds of each cell, evaluations included, at the plan's threads: id -> s.

    A packed cell counts with its share of the time of its pack, a cell that forks from another
    one with what it trains itself.

    The first call of a process pays for the timing: seconds, whatever the size of the grid.
    """
    known: dict[tuple[Any, ...], tuple[float, float]] = {}
    forks = {cell.id for job in plan.jobs if job.waits_for for cell in job.cells}
    with _timing(plan) as device:
        return {
            cell.id: _cell_seconds(cell, plan.flops[cell.id], device, known, cell.id in forks)
            / plan.packing.speedup
            for cell in cells
        }


def choose_packing(requested: str, plan: Plan, remote: bool = False) -> Packing:
    """How to pack the cells of a plan.

    Args:
        requested: a name of `study.packs.AXES`, or `auto`: packs where this machine's GPU is
            measured to train them faster than cell by cell.
        plan: whose cells to pack.
        remote: whether other machines will train them.
    """
    if requested != "auto":
        return Packing(requested)
    if not torch.cuda.is_available() or plan.gpus_per_trial == 0:
        reason = (
            "no GPU here to time packs on" if remote else "on CPUs packed cells only take turns"
        )
        return Packing(reason=reason)
    largest = max(packs.form(plan.to_run, Packing("seed,lr")), key=len, default=[])
    if len(largest) < 2:
        return Packing(reason="no two cells to run differ in seed and learning rates only")
    sizes = {min(len(largest), MOST_MEMBERS // part) for part in (1, 2, 4)} - {1}
    for members in sorted(sizes, reverse=True):
        try:
            with _timing(plan) as device:
                speedup = _speedup(largest[:members], plan.flops[largest[0].id], device)
        except torch.OutOfMemoryError:
            continue
        if speedup >= WORTHWHILE:
            reason = f"measured {speedup:.1f} times as fast as its cells alone"
            return Packing("seed,lr", reason, members, speedup)
    return Packing(reason="no pack was measured to be faster than its cells alone")


@contextlib.contextmanager
def _timing(plan: Plan) -> Iterator[torch.device]:
    """This process as a trial's is, for a while; the driver waits afterwards, workers train."""
    before = torch.get_num_threads()
    try:
        yield execution.set_up(plan.threads, gpu=plan.gpus_per_trial != 0)
    finally:
        torch.set_num_threads(before)
        execution.give_back_memory()


def _cell_seconds(
    cell: Cell,
    flops: ModelFlops,
    device: torch.device,
    known: dict[tuple[Any, ...], tuple[float, float]],
    forks: bool,
) -> float:
    stops = compute.timeline(cell, flops)
    total = 0.0
    evaluated = min(cell.train_metrics_size, cell.n) + cell.validation_size + cell.test_size
    for index, steps in enumerate(compute.steps_by_phase(cell, stops)):
        paradigm = cell.schedule.phases[index].paradigm
        held = cell.alpha is not None
        network = (cell.task, cell.num_classes, held, cell.architecture, cell.width)
        key = (*network, cell.precision, cell.m, cell.batch_size, paradigm)
        if key not in known:
            known[key] = _mosaic_seconds([cell], paradigm, flops, device)
        train_seconds, evaluate_seconds = known[key]
        if forks and index == 0:
            continue
        evaluations = sum(1 for stop in stops if stop.phase == index and stop.evaluate_at)
        total += steps * cell.batch_size * train_seconds
        total += evaluations * evaluated * evaluate_seconds
    return total


def _speedup(cells: Sequence[Cell], flops: ModelFlops, device: torch.device) -> float:
    """Cell-steps per second of a pack as a multiple of those of its first cell alone."""
    paradigm = cells[0].schedule.phases[0].paradigm
    alone, _ = _mosaic_seconds(cells[:1], paradigm, flops, device)
    packed, _ = _mosaic_seconds(cells, paradigm, flops, device)
    return len(cells) * alone / packed


def _mosaic_seconds(
    cells: Sequence[Cell], paradigm: str, flops: ModelFlops, device: torch.device
) -> tuple[float, float]:
    """Seconds of a pack to train on one mosaic each, and of one member to evaluate one.

    A batch is as large as one pass through the networks; larger batches are scaled from that.
    """
    cell = cells[0]
    task = _made_up_task(cell.task, cell.num_classes)
    bytes_each = 4 * cell.m * int(np.prod(task.input_shape))
    count = execution.micro_batch(cell.batch_size, bytes_each, device)
    step_flops = count * compute.training_flops(paradigm, flops, cell.m)
    steps = min(max(TIMED_FLOPS[device.type] // step_flops, FEWEST_STEPS), MOST_STEPS)
    short = [
        dataclasses.replace(
            cell,
            schedule=Schedule.single(paradigm, 1e-6),
            budget=Budget(steps * count, "mosaics"),
            evaluation_points=(1.0,),
            n=steps * count,  # one epoch: what an epoch's end costs belongs to few steps
            batch_size=count,
            train_metrics_size=count,
            validation_size=count,
            test_size=count,
        )
        for cell in cells
    ]
    outcome = train_pack(short, task, device)[0]
    return outcome.train_seconds / steps / count, outcome.evaluate_seconds / 3 / count


@functools.lru_cache(maxsize=4)
def _made_up_task(name: str, num_classes: int | None) -> MosaicTask:
    """The task with noise for images: steps take as long on them."""
    info = tasks.info(name, num_classes)
    channels, height, width = info.input_shape
    classes = (*info.foreground, "background")
    rng = np.random.default_rng(0)
    count = MADE_UP_IMAGES * len(classes)
    images, more = rng.integers(256, size=(2, count, height, width, channels), dtype=np.uint8)
    labels = np.arange(count) % len(classes)
    base = BaseImages.create(
        images, labels, more, labels, class_names=classes, max_value=255, source="made-up data"
    )
    return MosaicTask(name, base, info.foreground)
