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
from study.errors import RequestError
from study.kinds import KINDS
from study.launch.failures import failure_of
from study.plan.jobs import Seconds, families
from study.plan.plan import Plan
from study.terminal.working import working
from study.train.budget import cost
from study.train.budget.timeline import steps_by_phase, timeline
from study.train.steps import packs
from study.train.steps.loop import train_pack
from study.train.steps.pack_member import Member
from study.train.steps.packs import MOST_MEMBERS, Measured, Packing

TIMED_FLOPS = {"cpu": 10**10, "cuda": 10**13}
"""Training FLOPs of a timed cell, by device: some tenths of a second."""

FEWEST_STEPS, MOST_STEPS = 3, 100
LARGEST_STEP = 10
"""Most training FLOPs of a timed step, in `TIMED_FLOPS`, unless it has one input only."""

WORTHWHILE = 1.1
"""Least speedup at which cells are packed, over cells alone that share prefixes if they may."""


def cell_seconds(plan: Plan, cells: Sequence[Cell]) -> dict[str, Seconds]:
    """Estimated seconds of each cell at the plan's threads, evaluations included, by cell id.

    The timing takes seconds, however large the grid.
    """
    known = KINDS[plan.kind].seconds(cells, plan.threads)
    if known is not None:
        return {cell_id: Seconds(seconds, seconds) for cell_id, seconds in known.items()}
    with (
        _timing(plan) as timings,
        working("timing cells", unit="timed", measured=lambda: len(timings.known)),
    ):
        return {
            cell.id: timings.cell(cell, plan.packing.measured_of(cell).speedup) for cell in cells
        }


def lacks_bfloat16(plan: Plan) -> bool:
    """Whether the device on which cells train only emulates bfloat16."""
    with _timing(plan) as timings:
        return not hardware.has_bfloat16(timings.device)


def choose_packing(plan: Plan, requested: str, share: bool = True) -> Packing:
    """Chooses how to pack the cells of a plan.

    Args:
        plan: whose cells to pack.
        requested: a name of `study.train.steps.packs.AXES`, or `auto`: packs if this machine's GPU
            is measured to train all cells in less time so than one by one.
        share: whether cells that are not packed share prefixes. Packed ones never do, so packs
            have to win more than sharing saves.
    """
    if not KINDS[plan.kind].trains:
        return Packing(reason="only cells that train are packed")
    if requested != "auto":
        return Packing(requested)
    if not hardware.has_gpu() or plan.gpus_per_trial == 0:
        return Packing(reason="on CPUs packed cells only take turns")
    candidates = Packing("seed,lr")
    if all(len(pack) < 2 for pack in packs.form(plan.to_run, candidates)):
        return Packing(reason="no two cells to run differ in seed and learning rates only")
    with _timing(plan) as timings:
        packing = dataclasses.replace(candidates, measured=_measured(plan.to_run, timings))
        groups = families(plan.to_run) if share else [[cell] for cell in plan.to_run]
        alone = sum(timings.cell(first).alone for first, *_ in groups)
        alone += sum(timings.cell(cell).forked for _, *forks in groups for cell in forks)
        packed = sum(
            timings.cell(cell, packing.measured_of(cell).speedup).alone for cell in plan.to_run
        )
    forks = len(plan.to_run) > len(groups)
    than = "cells alone that share prefixes" if forks else "its cells alone"
    if alone < WORTHWHILE * packed:
        reason = f"measured {alone / packed:.2f} times as fast in packs as {than}"
        return Packing(reason=reason, timed=timings.known)
    reason = f"measured {alone / packed:.1f} times as fast as {than}"
    return dataclasses.replace(packing, reason=reason, timed=timings.known)


def _measured(cells: Sequence[Cell], timings: _Timings) -> dict[packs.Shape, Measured]:
    """The fastest pack of each shape of cell that fits into the GPU."""
    largest: dict[packs.Shape, list[Cell]] = {}
    for pack in packs.form(cells, Packing("seed,lr")):
        shape = packs.shape(pack[0])
        largest[shape] = max(largest.get(shape, []), pack, key=len)
    measured = {}
    for shape, pack in largest.items():
        sizes = sorted({min(len(pack), MOST_MEMBERS // part) for part in (1, 2, 4)} - {1})
        tried = [Measured(size, timings.speedup(pack[:size])) for size in sizes]
        measured[shape] = max([Measured(1, 1.0), *tried], key=lambda each: each.speedup)
    return measured


@contextlib.contextmanager
def _timing(plan: Plan) -> Iterator[_Timings]:
    """Sets this process up like a trial's while it times cells; frees its memory at the end.

    Raises:
        RequestError: a single cell does not fit into memory.
    """
    before = torch.get_num_threads()
    try:
        yield _Timings(plan, hardware.set_up(plan.threads, gpu=plan.gpus_per_trial != 0))
    except (RuntimeError, MemoryError) as error:
        if failure_of(error).kind != "out of memory":
            raise
        raise RequestError(
            "a cell of this study, alone, needs more memory than a trial may take. Make its "
            "passes smaller with --micro-batch N, or find what else takes memory (nvidia-smi)."
        ) from error
    finally:
        torch.set_num_threads(before)
        hardware.give_back_memory()


class _Timings:
    """Measured seconds of short trainings, each measured when it is first needed, unless it was.

    Args:
        plan: gives costs and facts of the cells.
        device: on which they train.

    Attributes:
        device: as given.
        known: what was measured, see `study.train.steps.packs.Packing`.
    """

    def __init__(self, plan: Plan, device: torch.device) -> None:
        self._plan = plan
        self.device = device
        self.known = dict(plan.packing.timed)

    def cell(self, cell: Cell, speedup: float = 1.0) -> Seconds:
        """Seconds of a cell; in a pack its share of the pack's."""
        stops = timeline(cell, self._plan.flops[cell.id])
        phases = []
        for index, steps in enumerate(steps_by_phase(cell, stops)):
            train, evaluate = self._of(cell, cell.schedule.phases[index].paradigm)
            evaluations = sum(1 for stop in stops if stop.phase == index and stop.evaluate_at)
            seconds = steps * cell.batch_size * train / speedup
            phases.append(seconds + evaluations * sum(_sizes(cell).values()) * evaluate)
        return Seconds(sum(phases), sum(phases[1:]))

    def speedup(self, cells: Sequence[Cell]) -> float:
        """Cell-steps per second of a pack relative to its first cell's alone; 0: it does not fit.

        Of several phases, the slowest counts.
        """
        try:
            return min(
                len(cells) * self._of(cells[0], paradigm)[0] / self._train(cells, paradigm)
                for paradigm in {phase.paradigm for phase in cells[0].schedule.phases}
            )
        except (RuntimeError, MemoryError) as error:
            if failure_of(error).kind == "out of memory":
                return 0.0
            raise

    def _of(self, cell: Cell, paradigm: str) -> tuple[float, float]:
        """Seconds to train on one input, and to evaluate one."""
        key = packs.shape(cell)._replace(paradigms=(paradigm,))
        if key not in self.known:
            self.known[key] = self._train([cell], paradigm), self._evaluate(cell, paradigm)
        return self.known[key]

    def _train(self, cells: Sequence[Cell], paradigm: str) -> float:
        """Seconds in which a pack trains on one input each.

        A timed batch of mosaics fills one pass through the networks, and larger ones are scaled
        from it. A timed batch of posts and captions is the cell's own, since every step updates
        all word vectors, unless an encoder that trains makes that long.

        Raises:
            torch.OutOfMemoryError: the pack fills more of the GPU than a trial may take.
        """
        cell = cells[0]
        count = self._batch(cell)
        flops = cost.training_flops(paradigm, self._plan.flops[cell.id], cell.m)
        steps = int(TIMED_FLOPS[self.device.type] // (count * flops))
        steps = min(max(steps, FEWEST_STEPS), MOST_STEPS)
        short = [
            dataclasses.replace(
                _short(each, paradigm, steps * count, self.device),
                evaluation_points=(1.0,),
                batch_size=count,
                train_metrics_size=1,
                validation_size=1,
                test_size=1,
            )
            for each in cells
        ]
        with hardware.memory_limit(self.device, self._plan.gpus_per_trial or 1):
            outcome = train_pack(
                short,
                self._task(cell, steps * count),
                self.device,
                micro_batch=self._plan.micro_batch,
            )[0]
        return outcome.train_seconds / steps / count

    def _evaluate(self, cell: Cell, paradigm: str) -> float:
        """Seconds in which one input is evaluated, after a first evaluation.

        A GPU takes as long for few inputs as for many, so there the timed sizes are the cell's.
        """
        most = None if self.device.type == "cuda" else self._batch(cell)
        sizes: dict[str, Any] = {
            name: min(size, most or size) for name, size in _sizes(cell).items()
        }
        short = dataclasses.replace(
            _short(cell, paradigm, max(sizes.values()), self.device),
            evaluation_points=(0.0, 1.0),
            **sizes,
        )
        with hardware.products(short.precision, self.device):
            member = Member(short, self._task(cell, short.n), self.device, None)
            member.enter_phase(0)
            member.stop()
            first = member.outcome.evaluate_seconds
            member.stop()
        return (member.outcome.evaluate_seconds - first) / sum(sizes.values())

    def _batch(self, cell: Cell) -> int:
        """The inputs of a timed step."""
        facts = self._plan.facts[cell.task, cell.options]
        if facts.lengths:
            flops = cost.training_flops("soft", self._plan.flops[cell.id], cell.m)
            most = int(LARGEST_STEP * TIMED_FLOPS[self.device.type] // flops)
            return min(cell.batch_size, max(1, most))
        if cell.takes_whole_batches:
            return cell.batch_size
        bytes_each = 4 * cell.m * math.prod(facts.input_shape)
        fitting = hardware.micro_batch(cell.batch_size, bytes_each, self.device)
        return min(self._plan.micro_batch or fitting, cell.batch_size)

    def _task(self, cell: Cell, count: int) -> Any:
        """The task with noise for data, on which steps take as long."""
        facts = self._plan.facts[cell.task, cell.options]
        return tasks.info(cell.task, cell.options).made_up(facts, count)


def _sizes(cell: Cell) -> dict[str, int]:
    """How many inputs an evaluation takes of each split, by the field of a cell."""
    return {
        "train_metrics_size": min(cell.train_metrics_size, cell.n),
        "validation_size": cell.validation_size,
        "test_size": cell.test_size,
    }


def _short(cell: Cell, paradigm: str, count: int, device: torch.device) -> Cell:
    """A cell of one phase that trains on so many inputs.

    In one epoch, as the end of an epoch would weigh too much in so few steps; and on a CPU in
    float32 instead of tf32, which it lacks.
    """
    strict = device.type == "cpu" and cell.precision == "tf32"
    return dataclasses.replace(
        cell,
        precision="float32" if strict else cell.precision,
        schedule=Schedule.single(paradigm, 1e-6),
        budget=Budget(count, "mosaics"),
        n=count,
        batch_size=min(cell.batch_size, count),
    )
