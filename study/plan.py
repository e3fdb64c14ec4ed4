"""From a search space and a preset to cells: what would run, what is done, what is skipped."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from search_spaces import By, SearchSpace, Values
from study import compute, models, tasks
from study.axes import ALL, AXES, OF_HYBRIDS, SAME, values_at
from study.cell import Budget, Cell, Options, Schedule
from study.cell.cell import LARGEST_WIDTH, WIDTH_RULE
from study.cell.checks import is_positive, require
from study.compute import ModelFlops
from study.errors import RequestError
from study.jobs import Job
from study.packs import Packing, form
from study.sharing import shared_jobs
from study.tasks.base import UNKNOWN_DIGEST, Facts

LARGEST_GRID = 1_000_000
MOST_EVALUATIONS = 10_000
FactsOf = Callable[[str, Options], Facts]
"""(task, what its data depend on) -> what is known of its data."""

THIS_MACHINE = "this machine"

Room = Callable[[int], int]
"""CPU threads a trial -> how many trials find room on a cluster at a time."""

CLUSTER_THREADS = 1
"""CPU threads of a trial on a cluster, whose nodes come and go: numbers must not follow them."""

HELD_PARADIGMS = ("soft", "hard", "lvml")
"""Paradigms whose loss section 3 defines for an attention that is held."""


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
        facts: (task, options) of every cell -> what is known of its data.
        packing: how cells are packed into trials.
        concurrent: trials at a time.
        threads: CPU threads a trial.
        share: whether cells with a common prefix train it once; never together with packs.
        no_share_reason: why not, for people.
        gpus_per_trial: GPUs that a trial asks for, a fraction to share one; None: one where there
            are any.
        max_concurrent: trials at a time at most, on any machine.
        search: what a search would try, for people; the cells are then examples of its cells.
        searched_cells: how many cells a search trains.
        where: the cells train, for people.
    """

    study: str
    preset: str
    cells: tuple[Cell, ...]
    finished: frozenset[str]
    skipped: tuple[Skip, ...]
    flops: Mapping[str, ModelFlops]
    facts: Mapping[tuple[str, Options], Facts]
    packing: Packing
    concurrent: int
    threads: int
    share: bool = False
    no_share_reason: str = "as asked"
    gpus_per_trial: float | None = None
    max_concurrent: int | None = None
    search: str = ""
    searched_cells: int = 0
    where: str = THIS_MACHINE

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
    facts_of: FactsOf,
    finished: Collection[str] = (),
) -> Plan:
    """Lays out the grid of a study.

    Args:
        space: the study.
        preset: its preset's name, for print.
        axes: as `study.axes.resolve` gives them; or points, axis -> value, instead of a grid.
        facts_of: tells what is known of a task's data, or what is supposed of them.
        finished: ids of cells that need no run.

    Raises:
        RequestError: a value out of range, or a grid with no cell or too many.
    """
    cells: dict[str, Cell] = {}
    flops: dict[str, ModelFlops] = {}
    skipped: dict[Skip, None] = {}
    maker = CellMaker(facts_of)
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
        facts={(cell.task, cell.options): maker.facts(cell) for cell in cells.values()},
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
    room: Room | None = None,
    threads: int | None = None,
) -> Plan:
    """The plan with packs or shared prefixes, and this machine divided among its trials.

    Forks and packs are not combined: where cells are packed, none shares a prefix.

    Args:
        plan: whose cells to divide.
        packing: how to pack them.
        share: whether cells share prefixes.
        no_share_reason: why not, for people.
        room: on a cluster instead of this machine.
        threads: CPU threads a trial; None: the cores divided among the trials, on a cluster 1.

    Raises:
        RequestError: this machine lacks the GPUs or cores that a trial asks for.
    """
    # By the whole grid, so that a resumed study trains its cells with as many threads as before.
    if room is not None:
        threads = threads or CLUSTER_THREADS
        slots = room(threads)
        concurrent = min(slots, plan.searched_cells or len(form(plan.cells, packing, slots)))
    else:
        gpus, cores = torch.cuda.device_count(), _cores()
        if (plan.gpus_per_trial or 0) > gpus:
            raise RequestError(
                f"--gpus-per-trial {plan.gpus_per_trial:g}, but this machine has {gpus} GPUs. "
                "Leave it out to use what is there."
            )
        if (threads or 0) > cores:
            raise RequestError(f"--threads {threads}, but this machine has {cores} cores.")
        slots = gpu_slots(gpus, plan.gpus_per_trial)
        trials = plan.searched_cells or len(form(plan.cells, packing, slots or cores))
        concurrent, share_of_cores = share_cores(trials, cores, slots)
        if threads:
            concurrent = min(concurrent, cores // threads)
        threads = threads or share_of_cores
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

    Seeds vary slowest, and paradigm and learning rates fastest. The values of an axis may depend
    on axes before it in this order.
    """
    _refuse_huge_grid(axes)
    fastest = ("paradigm", "lr", *OF_HYBRIDS)
    order = [*(name for name in AXES if name not in fastest), *fastest]

    def extend(point: dict[str, Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
        if not names:
            yield point
            return
        name, *rest = names
        if name in OF_HYBRIDS and point["paradigm"] != "hybrid":
            yield from extend(point, rest)
            return
        for value in values_at(axes[name], name, point):
            yield from extend({**point, name: value}, rest)

    yield from extend({}, order)


def _refuse_huge_grid(axes: Mapping[str, Values | By]) -> None:
    """Counts the grid from above, before it is laid out."""

    def most(axis: Values | By) -> int:
        if isinstance(axis, By):
            return max(map(most, (*axis.values.values(), axis.otherwise)))
        return len(axis)

    count = math.prod(map(most, axes.values()))
    if count > LARGEST_GRID:
        raise RequestError(
            f"the grid has up to {count:,} cells, more than {LARGEST_GRID:,}. "
            "Narrow it with --set."
        )


class CellMaker:
    """Makes cells from points: axis -> value.

    Args:
        facts_of: as `make_plan` takes it.
    """

    def __init__(self, facts_of: FactsOf) -> None:
        self._facts_of = functools.cache(facts_of)
        self._flops: dict[tuple[Any, ...], ModelFlops] = {}

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
        """Forward FLOPs of what it calls of its model."""
        network = (cell.task, cell.options, cell.architecture, cell.width, cell.m)
        return compute.cell_flops(cell, self._network_flops(*network))

    def facts(self, cell: Cell) -> Facts:
        """What is known of its data."""
        return self._facts_of(cell.task, cell.options)

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
        sizes = self.facts(cell).sizes
        if sizes and cell.split != "disjoint":
            return f"{cell.task} has splits of its own: its split is disjoint"
        if sizes and cell.alpha is not None:
            return f"attention is held on mosaics, not on {cell.task}: posts may lack a foreground"
        if cell.alpha is not None:
            if cell.paradigm not in HELD_PARADIGMS:
                names = ", ".join(HELD_PARADIGMS)
                return f"a held attention (section 3) is defined for {names}"
            if cell.budget.unit != "mosaics":
                return "a held attention is compared by epochs: its budget_unit is mosaics"
        steps = compute.steps_by_phase(cell, compute.timeline(cell, self.flops(cell)))
        for phase, count in zip(cell.schedule.phases, steps, strict=True):
            if count == 0:
                return (
                    f"the budget has no step for its {phase.paradigm} phase "
                    f"(batch {cell.batch_size})"
                )
        return None

    def _cell(self, point: Mapping[str, Any]) -> Cell:
        task = point["task"]
        options = Options(**{name: point[name] for name in Options._fields})
        tasks.info(task, options)  # refuses options that it cannot have
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
            "m", "architecture", "width", "batch_size", "precision", "momentum", "split", "seed",
            "task", "alpha", "inference",
        )  # fmt: skip
        facts = self._facts_of(task, options)
        cell = Cell(
            data_digest=facts.digest,
            schedule=schedule,
            budget=Budget(1),
            evaluation_points=tuple(i / count for i in range(count + 1)),
            **{name: point[name] for name in named},
            **_sizes(point, facts),
            **options._asdict(),
        )
        if point["budget_unit"] == "mosaics":
            budget = compute.epochs(point["epochs"], cell.n)
        else:
            budget = compute.soft_epochs(point["epochs"], self.flops(cell), cell.m, cell.n)
        return replace(cell, budget=budget)

    def _network_flops(
        self, task: str, options: Options, architecture: str, width: float, m: int
    ) -> ModelFlops:
        facts = self._facts_of(task, options)
        # Where all inputs have m segments, the costs of one do not depend on m.
        key = (task, options, architecture, width, m if facts.lengths else None)
        if key not in self._flops:
            require(is_positive(width) and width <= LARGEST_WIDTH, "width", width, WIDTH_RULE)
            known = tasks.info(task, options)
            model = models.build(
                architecture, task, known.input_shape, known.num_classes, width=width
            )
            self._flops[key] = compute.model_flops(model, known.input_shape, facts.lengths, m)
        return self._flops[key]


def _sizes(point: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """How many inputs a cell takes of each split; of data sets of whole inputs maybe all.

    Raises:
        ValueError: more than there are, or all of mosaics, which are drawn without end.
    """
    split_of = {
        "n": "train",
        "train_metrics_size": "train",
        "validation_size": "validation",
        "test_size": "test",
    }
    sizes = {}
    for name, split in split_of.items():
        size = point[name]
        if not facts.sizes:
            require(size != ALL, name, size, "a number for mosaics, which are drawn at will")
        elif size == ALL:
            size = facts.sizes[split]
        elif name != "train_metrics_size" and facts.digest != UNKNOWN_DIGEST:
            most = facts.sizes[split]
            rule = f"at most {most:,}, the posts of the {split} split, or {ALL}"
            require(size <= most, name, size, rule)
        sizes[name] = size
    return sizes
