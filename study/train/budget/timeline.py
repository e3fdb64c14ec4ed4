"""When a cell changes phase, evaluates and ends."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from fractions import Fraction

from study.cell import Budget, Cell
from study.models.flops import ModelFlops
from study.train.budget.cost import exact_decimal, training_flops


@dataclass(frozen=True)
class Stop:
    """A pause in training, to evaluate or to change phase.

    Attributes:
        steps_done: optimiser steps from the start of the cell.
        compute_flops: exact training FLOPs of those steps.
        phase: index of the phase that ends or pauses here.
        evaluate_at: the budget fractions to evaluate here; often one, maybe none.
    """

    steps_done: int
    compute_flops: int
    phase: int
    evaluate_at: tuple[float, ...]


def timeline(cell: Cell, flops: ModelFlops) -> list[Stop]:
    """The stops of a cell, each at the last step whose cost is <= the target.

    The last stop ends the cell. If steps are long, several evaluation points may fall on one. A
    phase without a step in the budget has no stop.
    """
    phases = tuple(
        (exact_decimal(phase.until), training_flops(phase.paradigm, flops, cell.m))
        for phase in cell.schedule.phases
    )
    return list(_stops(phases, cell.budget, cell.batch_size, cell.evaluation_points))


@functools.lru_cache(maxsize=10_000)  # the cells of a grid have few, which a plan asks for often
def _stops(
    phases: tuple[tuple[Fraction, int | Fraction], ...],
    budget: Budget,
    batch_size: int,
    evaluation_points: tuple[float, ...],
) -> tuple[Stop, ...]:
    """The stops of cells of these phases: the end of each in the budget, and FLOPs an input."""
    stops: list[Stop] = []
    steps = 0
    compute: int | Fraction = 0
    spent: int | Fraction = 0  # in units of the budget
    begin = Fraction(-1)
    for index, (end, input_flops) in enumerate(phases):
        step_flops = batch_size * input_flops
        step_cost = batch_size if budget.unit == "mosaics" else step_flops
        taken = _steps_to(end, budget, spent, step_cost)
        due: dict[int, list[float]] = {taken: []}
        for point in evaluation_points:
            if begin < exact_decimal(point) <= end:
                done = _steps_to(exact_decimal(point), budget, spent, step_cost)
                due.setdefault(done, []).append(point)
        if stops and 0 in due:  # before this phase's first step: an evaluation of the last phase
            stops[-1] = replace(stops[-1], evaluate_at=(*stops[-1].evaluate_at, *due.pop(0)))
        stops += [
            Stop(steps + done, int(compute + done * step_flops), index, tuple(points))
            for done, points in sorted(due.items())
        ]
        steps, compute = steps + taken, compute + taken * step_flops
        spent, begin = spent + taken * step_cost, end
    return tuple(stops)


def flow_time(cell: Cell, stops: list[Stop], steps: int) -> float:
    """Gradient flow time of so many steps: the sum of lr / (1 - momentum) over them."""
    total = 0.0
    for phase, count in zip(cell.schedule.phases, steps_by_phase(cell, stops), strict=True):
        total += phase.lr * min(count, steps) / (1 - cell.momentum)
        steps -= min(count, steps)
    return total


def steps_by_phase(cell: Cell, stops: list[Stop]) -> list[int]:
    """How many steps each phase of the cell takes."""
    ends = [0] * len(cell.schedule.phases)
    for stop in stops:
        ends[stop.phase] = stop.steps_done
    ends = [*itertools.accumulate(ends, max)]  # a phase without a step may have no stop
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _steps_to(
    fraction: Fraction, budget: Budget, spent: int | Fraction, step_cost: int | Fraction
) -> int:
    """How many steps fit into the rest of a fraction of the budget."""
    return int((fraction * budget.amount - spent) // step_cost)
