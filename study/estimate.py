"""How long cells take on this machine: a few steps of each kind, timed on made-up data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from study import compute, execution, models, paradigms, tasks
from study.cell import Cell
from study.compute import ModelFlops
from study.evaluate import evaluate
from study.optimiser import SGD
from study.plan import Plan
from study.step import train_step
from study.tasks.mosaics import Mosaics

REPEATS = 3


def cell_seconds(plan: Plan, cells: Sequence[Cell]) -> dict[str, float]:
    """Estimated seconds of each cell, evaluations included, at the plan's threads: id -> s.

    The first call of a process pays for the timing: seconds, whatever the size of the grid.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    threads_before = torch.get_num_threads()
    torch.set_num_threads(plan.threads)
    seconds: dict[tuple[Any, ...], float] = {}
    try:
        return {
            cell.id: _cell_seconds(cell, plan.flops[cell.id], device, seconds) for cell in cells
        }
    finally:
        torch.set_num_threads(threads_before)


def _cell_seconds(
    cell: Cell, flops: ModelFlops, device: torch.device, known: dict[tuple[Any, ...], float]
) -> float:
    stops = compute.timeline(cell, flops)
    total = 0.0
    evaluated = min(cell.train_metrics_size, cell.n) + cell.validation_size + cell.test_size
    for index, steps in enumerate(compute.steps_by_phase(cell, stops)):
        paradigm = cell.schedule.phases[index].paradigm
        network = (cell.task, cell.architecture, cell.width, cell.precision)
        key = (*network, cell.m, cell.batch_size, paradigm)
        if key not in known:
            known[key], known[*key, "evaluation"] = _time_mosaic(cell, paradigm, device)
        evaluations = sum(1 for stop in stops if stop.phase == index and stop.evaluate_at)
        total += steps * cell.batch_size * known[key]
        total += evaluations * evaluated * known[*key, "evaluation"]
    return total


def _time_mosaic(cell: Cell, name: str, device: torch.device) -> tuple[float, float]:
    """Seconds to train on one mosaic and to evaluate one, timed on one pass and scaled."""
    info = tasks.info(cell.task)
    channels, height, width = info.input_shape
    bytes_each = 4 * cell.m * channels * height * width
    count = execution.micro_batch(cell.batch_size, bytes_each, device)
    generator = torch.Generator().manual_seed(0)
    pixels = (count * cell.m, height, width, channels)
    mosaics = Mosaics(
        images=torch.randint(256, pixels, generator=generator, dtype=torch.uint8).to(device),
        index=torch.arange(count * cell.m).view(count, cell.m).to(device),
        labels=torch.randint(info.num_classes, (count,), generator=generator).to(device),
        foreground_index=torch.zeros(count, dtype=torch.int64, device=device),
        max_value=255,
    )
    model = models.build(
        cell.architecture,
        cell.task,
        info.input_shape,
        info.num_classes,
        width=cell.width,
        precision=cell.precision,
    ).to(device)
    paradigm = paradigms.get(name)
    optimiser = SGD(model.parameters(), lr=1e-6, momentum=0.9)
    sampling = torch.Generator(device).manual_seed(0)
    rows = torch.arange(count, device=device)

    def step() -> None:
        train_step(rows, model, paradigm, optimiser, mosaics, sampling, count).item()

    def evaluation() -> None:
        evaluate(model, paradigms.get(paradigm.exact), mosaics)

    return _fastest(step) / count, _fastest(evaluation) / count


def _fastest(function: Any) -> float:
    """Seconds of the fastest of a few calls after a warm-up."""
    function()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)
