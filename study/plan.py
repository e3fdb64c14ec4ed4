"""From a search space and a preset to cells: what would run, what is done, what is skipped."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from search_spaces import By, SearchSpace, Values
from study import compute, models
from study.axes import AXES, SAME, values_at
from study.cell import LARGEST_WIDTH, WIDTH_RULE, Cell, Schedule, is_positive, require
from study.compute import ModelFlops
from study.errors import RequestError
from study.jobs import Job
from study.packs import Packing, form
from study.sharing import shared_jobs
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
        share: whether cells with a common prefix train it once; never together with packs.
        no_share_reason: why not, for people.
        gpus_per_trial: GPUs that a trial asks for, a fraction to share one; None: one where there
            are any.
        max_concurrent: trials at a time at most, on any machine.
        search: what a search would try, for people; the cells are then examples of its cells.
        searched_cells: how many cells a search trains.
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
    share: bool = False
    no_share_reason: str = "as asked"
    gpus_per_trial: float | None = None
    max_concurrent: int | None = None
    search: str = ""
    searched_cells: int = 0

    @property
    def to_run(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.id not in self.finished]

    @cached_property
    def jobs(self) -> list[Job]:
        """The cells to run, as trials."""
        if self.share:
            return shared_jobs(self.to_run, self.flops)
        return [Job(tuple(pack)) for pack in form(self.to_run, self.packing, self.concurrent)]


def make_plan(
    space: SearchSpace,
    preset: str,
    axes: Mapping[str, Values | By] | Sequence[Mapping[str, Any]],
    task: TaskInfo,
    data_digest: str,
    finished: Collection[str] = (),
) -> Plan:
    """Lays out the grid of a study.

    Args:
        space: the study.
        preset: its preset's name, for print.
        axes: as `study.axes.resolve` gives them; or points, axis -> value, instead of a grid.
        task: of the study.
        data_digest: of the task's data, or `UNKNOWN_DIGEST`.
        finished: ids of cells that need no run.

    Raises:
        RequestError: a value out of range, or a grid with no cell or too many.
    """
    cells: dict[str, Cell] = {}
    flops: dict[str, ModelFlops] = {}
    skipped: dict[Skip, None] = {}
    maker = CellMaker(space.task, task, data_digest)
    for point in _points(axes) if isinstance(axes, Mapping) else axes:
        cell = maker.cell(point)
        reason = maker.why_not(cell)
        if reason:
            skipped[Skip(f"{cell.paradigm} at m={cell.m}, {cell.schedule.text}", reason)] = None
        else:
            cells[cell.id], flops[cell.id] = cell, maker.flops(cell)
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


def with_packing(
    plan: Plan,
    packing: Packing,
    share: bool = False,
    no_share_reason: str = "as asked",
    remote: bool = False,
) -> Plan:
    """The plan with packs or shared prefixes, and this machine divided among its trials.

    Forks and packs are not combined: where cells are packed, none shares a prefix.

    Args:
        plan: whose cells to divide.
        packing: how to pack them.
        share: whether cells share prefixes.
        no_share_reason: why not, for people.
        remote: whether other machines will train them.

    Raises:
        RequestError: this machine lacks the GPUs that a trial asks for.
    """
    gpus = torch.cuda.device_count()
    if not remote and (plan.gpus_per_trial or 0) > gpus:
        raise RequestError(
            f"--gpus-per-trial {plan.gpus_per_trial:g}, but this machine has {gpus} GPUs. Leave "
            "it out to use what is there."
        )
    cores = _cores()
    slots = gpu_slots(gpus, plan.gpus_per_trial)
    # By the whole grid, so that a resumed study trains its cells with as many threads as before.
    trials = plan.searched_cells or len(form(plan.cells, packing, slots or cores))
    concurrent, threads = share_cores(trials, cores, slots)
    # Fewer at a time have no more threads: numbers follow from the grid, not from this option.
    concurrent = min(concurrent, plan.max_concurrent or concurrent)
    packed = packing.choice != "none"
    return replace(
        plan,
        packing=packing,
        concurrent=concurrent,
        threads=threads,
        share=share and not packed,
        no_share_reason="packed cells do not fork" if packed else no_share_reason,
    )


def gpu_slots(gpus: int, gpus_per_trial: float | None) -> int:
    """How many trials find room on that many GPUs at a time; 0 where they use none."""
    if not gpus_per_trial:
        return gpus if gpus_per_trial is None else 0
    each = gpus_per_trial
    return gpus * int(1 / each + 1e-9) if each <= 1 else int(gpus // each)


def share_cores(trials: int, cores: int, slots: int = 0) -> tuple[int, int]:
    """How many trials run at a time and with how many threads each, never more than the cores.

    On GPUs as many as have room there; else trials side by side on one thread each.
    """
    concurrent = max(1, min(trials, cores, slots or cores))
    return concurrent, max(1, cores // concurrent)


def _cores() -> int:
    return (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )


def _points(axes: Mapping[str, Values | By]) -> Iterator[dict[str, Any]]:
    """Every point of the grid: axis -> value; axes without a meaning for a paradigm are left out.

    Seeds vary slowest, and paradigm and learning rates fastest.
    """
    _refuse_huge_grid(axes)
    conditional = ("paradigm", "lr", "hard_lr", "switch_point")
    outer = [name for name in AXES if name not in conditional]
    outer_values = [values_at(axes[name], name, {}) for name in outer]
    for combination in itertools.product(*outer_values):
        point = dict(zip(outer, combination, strict=True))
        for paradigm in values_at(axes["paradigm"], "paradigm", point):
            names = conditional[1:] if paradigm == "hybrid" else ("lr",)
            of_paradigm = {**point, "paradigm": paradigm}
            values = [values_at(axes[name], name, of_paradigm) for name in names]
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


class CellMaker:
    """Makes cells of one task from points: axis -> value.

    Args:
        name: of the task.
        task: what is known of it.
        data_digest: of its data, or `UNKNOWN_DIGEST`.
    """

    def __init__(self, name: str, task: TaskInfo, data_digest: str) -> None:
        self._name = name
        self._task = task
        self._data_digest = data_digest
        self._flops: dict[tuple[str, float], ModelFlops] = {}

    def cell(self, point: Mapping[str, Any]) -> Cell:
        """The cell of a point; hard_lr and switch_point are read for a hybrid only.

        Raises:
            RequestError: a value is out of range.
        """
        try:
            return self._cell(point)
        except ValueError as error:
            raise RequestError(f"{error}. Change it with --set, see --help.") from error

    def flops(self, cell: Cell) -> ModelFlops:
        """Forward FLOPs of its model."""
        return self._network_flops(cell.architecture, cell.width)

    def runnable(self, point: Mapping[str, Any]) -> Cell:
        """The cell of a point.

        Raises:
            RequestError: a value is out of range, or the cell cannot run.
        """
        cell = self.cell(point)
        if reason := self.why_not(cell):
            raise RequestError(f"{cell.schedule.text}: {reason}. Change it with --set.")
        return cell

    def why_not(self, cell: Cell) -> str | None:
        """Why a cell cannot run, None if it can."""
        steps = compute.steps_by_phase(cell, compute.timeline(cell, self.flops(cell)))
        for phase, count in zip(cell.schedule.phases, steps, strict=True):
            if count == 0:
                return (
                    f"the budget has no step for its {phase.paradigm} phase "
                    f"(batch {cell.batch_size})"
                )
        return None

    def _cell(self, point: Mapping[str, Any]) -> Cell:
        flops = self._network_flops(point["architecture"], point["width"])
        if point["paradigm"] == "hybrid":
            hard_lr = point["lr"] if point["hard_lr"] == SAME else point["hard_lr"]
            schedule = Schedule.hybrid(point["lr"], hard_lr, point["switch_point"])
        else:
            schedule = Schedule.single(point["paradigm"], point["lr"])
        count = point["evaluations"]
        require(
            1 <= count <= MOST_EVALUATIONS, "evaluations", count, f"in 1..{MOST_EVALUATIONS:,}"
        )
        named = (
            "m", "n", "architecture", "width", "batch_size", "precision", "momentum", "split",
            "seed",
        )  # fmt: skip
        sizes = ("train_metrics_size", "validation_size", "test_size")
        return Cell(
            task=self._name,
            data_digest=self._data_digest,
            schedule=schedule,
            budget=compute.soft_epochs(point["epochs"], flops, point["m"], point["n"]),
            evaluation_points=tuple(i / count for i in range(count + 1)),
            **{name: point[name] for name in (*named, *sizes)},
        )

    def _network_flops(self, architecture: str, width: float) -> ModelFlops:
        if (architecture, width) not in self._flops:
            require(is_positive(width) and width <= LARGEST_WIDTH, "width", width, WIDTH_RULE)
            task = self._task
            model = models.build(
                architecture, self._name, task.input_shape, task.num_classes, width=width
            )
            self._flops[architecture, width] = compute.model_flops(model, task.input_shape)
        return self._flops[architecture, width]
