"""From a search space and a preset to cells: what would run, what is done, what is skipped."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from search_spaces import By, SearchSpace, Values
from study import compute, models
from study.axes import AXES, SAME
from study.cell import LARGEST_WIDTH, WIDTH_RULE, Cell, Schedule, is_positive, require
from study.compute import ModelFlops
from study.errors import RequestError
from study.packs import Packing, form
from study.tasks import TaskInfo

LARGEST_GRID = 1_000_000
MOST_EVALUATIONS = 10_000
UNKNOWN_DIGEST = "unknown"
"""Stands for the data digest where a plan is made without the data."""


@dataclass(frozen=True)
class Skip:
    """Cells that would be in the grid but cannot run, and why."""

    what: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """What a study would run.

    Attributes:
        study: its name.
        preset: its preset's name.
        cells: the whole grid, in the order in which cells start: seed by seed, so that a study
            that is stopped early has compared all options on fewer seeds.
        finished: ids of the cells that the results directory holds.
        skipped: parts of the grid that cannot run.
        flops: cell id -> forward FLOPs of its model.
        packing: how cells are packed into trials.
        concurrent: trials at a time on this machine.
        threads: CPU threads a trial.
    """

    study: str
    preset: str
    cells: tuple[Cell, ...]
    finished: frozenset[str]
    skipped: tuple[Skip, ...]
    flops: Mapping[str, ModelFlops]
    packing: Packing
    concurrent: int
    threads: int

    @property
    def to_run(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.id not in self.finished]

    @property
    def packs(self) -> list[list[Cell]]:
        """The cells to run, as trials: each list trains together."""
        return form(self.to_run, self.packing, self.concurrent)


def make_plan(
    space: SearchSpace,
    preset: str,
    axes: Mapping[str, Values | By],
    task: TaskInfo,
    data_digest: str,
    finished: Collection[str] = (),
) -> Plan:
    """Lays out the grid of a study.

    Args:
        space: the study.
        preset: its preset's name, for print.
        axes: as `study.axes.resolve` gives them.
        task: of the study.
        data_digest: of the task's data, or `UNKNOWN_DIGEST`.
        finished: ids of cells that need no run.

    Raises:
        RequestError: a value out of range, or a grid with no cell or too many.
    """
    cells: dict[str, Cell] = {}
    flops: dict[str, ModelFlops] = {}
    skipped: dict[Skip, None] = {}
    models_flops: dict[tuple[str, float], ModelFlops] = {}
    _refuse_huge_grid(axes)
    for point in _points(axes):
        try:
            network = (point["architecture"], point["width"])
            if network not in models_flops:
                models_flops[network] = _model_flops(*network, space.task, task)
            cell = _cell(point, space.task, data_digest, models_flops[network])
        except ValueError as error:
            raise RequestError(f"{error}. Change it with --set, see --help.") from error
        reason = _why_not(cell, models_flops[network])
        if reason:
            skipped[Skip(f"{cell.paradigm} at m={cell.m}, {cell.schedule.text}", reason)] = None
        else:
            cells[cell.id], flops[cell.id] = cell, models_flops[network]
    if not cells:
        reasons = "; ".join(dict.fromkeys(skip.reason for skip in skipped))
        raise RequestError(f"nothing to run in this grid: {reasons}. Change it with --set.")
    plan = Plan(
        study=space.name,
        preset=preset,
        cells=tuple(cells.values()),
        finished=frozenset(cells) & frozenset(finished),
        skipped=tuple(skipped),
        flops=flops,
        packing=Packing(),
        concurrent=1,
        threads=1,
    )
    return with_packing(plan, plan.packing)


def with_packing(plan: Plan, packing: Packing) -> Plan:
    """The plan with other packs, and the cores of this machine shared among them."""
    gpus, cores = torch.cuda.device_count(), _cores()
    # By the whole grid, so that a resumed study trains its cells with as many threads as before.
    trials = len(form(plan.cells, packing, gpus or cores))
    concurrent, threads = share_cores(trials, cores, gpus)
    return replace(plan, packing=packing, concurrent=concurrent, threads=threads)


def share_cores(trials: int, cores: int, gpus: int = 0) -> tuple[int, int]:
    """How many trials run at a time and with how many threads each, never more than the cores.

    On GPUs one trial each; else trials side by side on one thread each.
    """
    concurrent = max(1, min(trials, cores, gpus or cores))
    return concurrent, max(1, cores // concurrent)


def _cores() -> int:
    return (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )


def _points(axes: Mapping[str, Values | By]) -> Iterator[dict[str, Any]]:
    """Every point of the grid: axis -> value; axes without a meaning for a paradigm are left out.

    Seeds vary slowest, and paradigm and learning rates fastest.
    """
    conditional = ("paradigm", "lr", "hard_lr", "switch_point")
    outer = [name for name in AXES if name not in conditional]
    outer_values = [_values(axes[name], name, {}) for name in outer]
    for combination in itertools.product(*outer_values):
        point = dict(zip(outer, combination, strict=True))
        for paradigm in _values(axes["paradigm"], "paradigm", point):
            names = conditional[1:] if paradigm == "hybrid" else ("lr",)
            of_paradigm = {**point, "paradigm": paradigm}
            values = [_values(axes[name], name, of_paradigm) for name in names]
            for rest in itertools.product(*values):
                yield {**of_paradigm, **dict(zip(names, rest, strict=True))}


def _refuse_huge_grid(axes: Mapping[str, Values | By]) -> None:
    """Counts the grid from above, before it is laid out."""
    sizes = {
        name: max(map(len, (*axis.values.values(), axis.otherwise)))
        if isinstance(axis, By)
        else len(axis)
        for name, axis in axes.items()
    }
    count = math.prod(sizes.values())
    if count > LARGEST_GRID:
        raise RequestError(
            f"the grid has up to {count:,} cells, more than {LARGEST_GRID:,}. "
            "Narrow it with --set."
        )


def _values(axis: Values | By, name: str, point: Mapping[str, Any]) -> Values:
    values = axis.values.get(point[axis.axis], axis.otherwise) if isinstance(axis, By) else axis
    if not values:
        raise RequestError(f"no value for the axis {name}. Give one with --set {name}=VALUE.")
    return values


def _model_flops(architecture: str, width: float, name: str, task: TaskInfo) -> ModelFlops:
    require(is_positive(width) and width <= LARGEST_WIDTH, "width", width, WIDTH_RULE)
    model = models.build(architecture, name, task.input_shape, task.num_classes, width=width)
    return compute.model_flops(model, task.input_shape)


def _cell(point: Mapping[str, Any], task: str, data_digest: str, flops: ModelFlops) -> Cell:
    if point["paradigm"] == "hybrid":
        hard_lr = point["lr"] if point["hard_lr"] == SAME else point["hard_lr"]
        schedule = Schedule.hybrid(point["lr"], hard_lr, point["switch_point"])
    else:
        schedule = Schedule.single(point["paradigm"], point["lr"])
    count = point["evaluations"]
    require(1 <= count <= MOST_EVALUATIONS, "evaluations", count, f"in 1..{MOST_EVALUATIONS:,}")
    named = (
        "m", "n", "architecture", "width", "batch_size", "precision", "momentum", "split", "seed",
    )  # fmt: skip
    sizes = ("train_metrics_size", "validation_size", "test_size")
    return Cell(
        task=task,
        data_digest=data_digest,
        schedule=schedule,
        budget=compute.soft_epochs(point["epochs"], flops, point["m"], point["n"]),
        evaluation_points=tuple(i / count for i in range(count + 1)),
        **{name: point[name] for name in (*named, *sizes)},
    )


def _why_not(cell: Cell, flops: ModelFlops) -> str | None:
    """Why a cell cannot run, None if it can."""
    steps = compute.steps_by_phase(cell, compute.timeline(cell, flops))
    for phase, count in zip(cell.schedule.phases, steps, strict=True):
        if count == 0:
            return (
                f"the budget has no step for its {phase.paradigm} phase (batch {cell.batch_size})"
            )
    return None
