"""Estimates how long cells take: their FLOPs, at the rate at which a few steps are timed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from study import hardware
from study.cell import Budget, Cell, Schedule
from study.errors import RequestError
from study.kernels import OWN, Kernels, has_triton
from study.kinds import KINDS
from study.launch.failures import failure_of
from study.models.flops import ModelFlops
from study.plan.jobs import Seconds, families
from study.plan.plan import Plan
from study.tasks.sources.places import NO_PLACES, Places
from study.terminal.working import working
from study.train.budget import cost
from study.train.budget.timeline import steps_by_phase, timeline
from study.train.run_training import task_of
from study.train.steps import packs
from study.train.steps.loop import train_pack
from study.train.steps.pack_member import Outcome, now
from study.train.steps.packs import MOST_MEMBERS, Measured, Packing, Shape

TIMED_FLOPS = {"cpu": 10**10, "cuda": 10**13}
"""Training FLOPs of a timed cell, by device: some tenths of a second."""

LEAST_SECONDS = {"cpu": 0.0, "cuda": 0.2}
"""Of a timed cell, by device: steps of a small network take a GPU no time beside the first launch
of their graph, which would decide on packs and kernels."""

FEWEST_STEPS, MOST_STEPS = 3, 100
"""Steps of a timed cell; more where they take less than `LEAST_SECONDS`."""

WORTHWHILE = 1.1
"""Least speedup at which cells are packed, over cells alone that share prefixes if they may."""

WORTH_A_KERNEL = 1.03
"""Least speedup at which a kernel of ours is used."""


def cell_seconds(plan: Plan, places: Places) -> pd.DataFrame:
    """Estimated seconds of all that is left or to come, at the plan's threads.

    Of each shape of cell one is timed, on its data, for some tenths of a second.

    Args:
        plan: of cells that are packed as it says.
        places: of the data.

    Returns:
        `alone` and `forked` of these rows, as `study.plan.plan.rows_of` says; evaluations
        included.
    """
    kind, how = KINDS[plan.kind], plan.how
    rows = plan.runnable[~plan.runnable["done"]]
    first = rows.drop_duplicates("option")
    options = [*zip(first["option"], first["cell"], first["flops"], strict=True)]
    found: dict[Hashable, Seconds] = {}
    if not kind.trains:
        with threadpool_limits(how.threads):
            for option, cell, flops in options:
                seconds = flops / kind.flops_a_second(cell)
                found[option] = Seconds(seconds, seconds)
    else:
        rates: dict[Shape, float] = {}
        with (
            _timing(plan, places) as timing,
            working("timing cells", unit="timed", measured=lambda: len(rates)),
        ):
            for option, cell, flops in options:
                shape = packs.shape(cell)
                if shape not in rates:
                    rates[shape] = timing.rate([cell])
                rate = rates[shape] * how.packing.measured_of(cell).speedup
                found[option] = _seconds(cell, flops, rate)
    every = [found[option] for option in rows["option"]]
    return pd.DataFrame(every, rows.index, ["alone", "forked"], dtype=float)


def lacks_bfloat16(plan: Plan) -> bool:
    """Whether the device on which cells train only emulates bfloat16."""
    with _timing(plan, NO_PLACES) as timing:
        return not hardware.has_bfloat16(timing.device)


def choose_kernels(plan: Plan, places: Places, requested: Kernels | None) -> tuple[Kernels, str]:
    """Chooses the kernels of all cells of a plan, whose numbers differ by rounding; and says why.

    Args:
        plan: of the cells.
        places: of the data.
        requested: by the user; None: those that are faster here in the cell that costs most.

    Returns:
        The kernels, and the reason for people: none of cells that train on CPUs.

    Raises:
        RequestError: kernels were asked for of cells that train on CPUs, or Triton is missing.
    """
    if not KINDS[plan.kind].trains or not hardware.has_gpu() or plan.how.gpus_per_trial == 0:
        if requested:
            raise RequestError(
                "--kernels are of a GPU, and none is used here: leave the option out."
            )
        return (), ""
    if requested is not None:
        if "pooling" in requested and not has_triton():
            raise RequestError("--kernels pooling needs Triton: install it, or leave it out.")
        return requested, "as asked"
    rows = plan.runnable[~plan.runnable["done"]]
    if rows.empty:
        return (), ""
    cells = [*zip(rows["cell"], rows["flops"], strict=True)]
    costliest, _ = max(cells, key=lambda each: timeline(*each)[-1].compute_flops)
    return _fastest(plan, places, costliest)


def _fastest(plan: Plan, places: Places, cell: Cell) -> tuple[Kernels, str]:
    """The kernels with which a cell trains fastest, chosen one after the other, and why."""
    kernels: Kernels = ()
    total, failed = 1.0, ""
    with _timing(plan, places) as timing:

        def rate(some: Kernels) -> float:
            how = replace(plan.how, kernels=some)
            return replace(timing, plan=replace(plan, how=how)).rate([cell])

        for name in OWN:
            further = (*kernels, name)
            try:  # in turns, as a GPU's clock changes
                speedup = min(rate(further) / rate(kernels) for _ in range(2))
            except Exception as error:  # whatever a compiler raises: PyTorch's kernels do
                failed += f"; {name} failed: {type(error).__name__}"
                _require_intact(timing.device, name)
            else:
                if speedup > WORTH_A_KERNEL:
                    kernels, total = further, total * speedup
    return kernels, f"measured at least {total:.2f} times as fast as PyTorch's{failed}"


def _require_intact(device: torch.device, name: str) -> None:
    """Refuses to go on in a process in which CUDA has failed."""
    try:
        now(device)
    except RuntimeError as error:
        raise RequestError(
            f"the kernel {name} breaks CUDA here ({str(error).splitlines()[0]}): run the command "
            "with --kernels pytorch."
        ) from error


def choose_packing(plan: Plan, places: Places, requested: str, share: bool = True) -> Packing:
    """Chooses how to pack the cells of a plan.

    Args:
        plan: whose cells to pack.
        places: of the data.
        requested: a name of `study.train.steps.packs.AXES`, or `auto`: packs if this machine's GPU
            is measured to train all cells in less time so than one by one.
        share: whether cells that are not packed share prefixes. Packed ones never do, so packs
            have to win more than sharing saves.
    """
    if not KINDS[plan.kind].trains:
        return Packing(reason="only cells that train are packed")
    if requested != "auto":
        return Packing(requested)
    if not hardware.has_gpu() or plan.how.gpus_per_trial == 0:
        return Packing(reason="on CPUs packed cells only take turns")
    candidates, cells = Packing("seed,lr"), plan.to_run
    if all(len(pack) < 2 for pack in packs.form(cells, candidates)):
        return Packing(reason="no two cells to run differ in seed and learning rates only")
    with _timing(plan, places) as timing:
        rates, measured = _measured(cells, timing)
    took = {
        cell.id: _seconds(cell, plan.flops[cell.id], rates[packs.shape(cell)]) for cell in cells
    }
    groups = families(cells) if share else [[cell] for cell in cells]
    alone = sum(took[first.id].alone for first, *_ in groups)
    alone += sum(took[cell.id].forked for _, *forks in groups for cell in forks)
    packed = sum(took[cell.id].alone / measured[packs.shape(cell)].speedup for cell in cells)
    forks = len(cells) > len(groups)
    than = "cells alone that share prefixes" if forks else "its cells alone"
    if alone < WORTHWHILE * packed:
        return Packing(reason=f"measured {alone / packed:.2f} times as fast in packs as {than}")
    reason = f"measured {alone / packed:.1f} times as fast as {than}"
    return replace(candidates, reason=reason, measured=measured)


def _measured(
    cells: Sequence[Cell], timing: _Timing
) -> tuple[Mapping[Shape, float], Mapping[Shape, Measured]]:
    """Of each shape of cell the rate of one alone, and the fastest pack that fits into the GPU."""
    largest: dict[Shape, list[Cell]] = {}
    for pack in packs.form(cells, Packing("seed,lr")):
        shape = packs.shape(pack[0])
        largest[shape] = max(largest.get(shape, []), pack, key=len)
    rates, measured = {}, {}
    for shape, pack in largest.items():
        rates[shape] = timing.rate(pack[:1])
        sizes = sorted({min(len(pack), MOST_MEMBERS // part) for part in (1, 2, 4)} - {1})
        tried = [Measured(size, timing.rate_of_pack(pack[:size]) / rates[shape]) for size in sizes]
        measured[shape] = max([Measured(1, 1.0), *tried], key=lambda each: each.speedup)
    return rates, measured


def _seconds(cell: Cell, flops: ModelFlops, rate: float) -> Seconds:
    """Seconds of a cell at a rate of FLOPs a second; an evaluated input is a forward pass."""
    stops, phases = timeline(cell, flops), []
    evaluated = min(cell.train_metrics_size, cell.n) + cell.validation_size + cell.test_size
    for index, steps in enumerate(steps_by_phase(cell, stops)):
        times = sum(1 for stop in stops if stop.phase == index and stop.evaluate_at)
        inputs = steps * cell.batch_size + times * evaluated / cost.TRAINING_PASSES
        paradigm = cell.schedule.phases[index].paradigm
        phases.append(inputs * float(cost.training_flops(paradigm, flops, cell.m)) / rate)
    return Seconds(sum(phases), sum(phases[1:]))


@contextlib.contextmanager
def _timing(plan: Plan, places: Places) -> Iterator[_Timing]:
    """Sets this process up like a trial's while it times cells; frees its memory at the end.

    Raises:
        RequestError: a single cell does not fit into memory.
    """
    before = torch.get_num_threads()
    try:
        how = plan.how
        yield _Timing(plan, places, hardware.set_up(how.threads, gpu=how.gpus_per_trial != 0))
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


@dataclass(frozen=True)
class _Timing:
    """Times a few steps of cells.

    Attributes:
        plan: of the cells.
        places: of their data.
        device: on which they train.
    """

    plan: Plan
    places: Places
    device: torch.device

    def rate(self, cells: Sequence[Cell]) -> float:
        """FLOPs a second of a pack, all members together.

        Raises:
            torch.OutOfMemoryError: the pack fills more of the GPU than a trial may take.
        """
        short, outcome = self._trained(cells)
        while (longer := LEAST_SECONDS[self.device.type] / outcome.train_seconds) > 1:
            short, outcome = self._trained(cells, math.ceil(outcome.steps * max(2, longer)))
        ends = [
            timeline(few, self.plan.flops[cell.id])[-1]
            for few, cell in zip(short, cells, strict=True)
        ]
        return sum(end.compute_flops for end in ends) / outcome.train_seconds

    def rate_of_pack(self, cells: Sequence[Cell]) -> float:
        """The same; 0 if the pack does not fit into the GPU."""
        try:
            return self.rate(cells)
        except (RuntimeError, MemoryError) as error:
            if failure_of(error).kind == "out of memory":
                return 0.0
            raise

    def _trained(
        self, cells: Sequence[Cell], steps: int | None = None
    ) -> tuple[list[Cell], Outcome]:
        """Trains a pack for a moment: what it trained, and how the first member ended."""
        task = task_of(cells[0], self.places)
        short = [self._short(cell, steps) for cell in cells]
        how = self.plan.how
        with hardware.memory_limit(self.device, how.gpus_per_trial or 1):
            outcomes = train_pack(
                short, task, self.device, micro_batch=how.micro_batch, kernels=how.kernels
            )
        return short, outcomes[0]

    def _short(self, cell: Cell, steps: int | None = None) -> Cell:
        """The cell with few steps and one small evaluation, at a rate at which none diverges.

        A batch that takes long is cut; on a CPU, tf32 is float32, as it has no other.

        Args:
            cell: to shorten.
            steps: of it; None: by their FLOPs.
        """
        phases = cell.schedule.phases
        each = cost.training_flops(phases[0].paradigm, self.plan.flops[cell.id], cell.m)
        most = TIMED_FLOPS[self.device.type] // each
        batch_size = int(min(cell.batch_size, max(2, most)))
        steps = steps or min(max(int(most // batch_size), FEWEST_STEPS), MOST_STEPS)
        strict = self.device.type == "cpu" and cell.precision == "tf32"
        return replace(
            cell,
            schedule=Schedule(
                tuple(
                    replace(phase, lr=1e-6, until=number / len(phases))
                    for number, phase in enumerate(phases, start=1)
                )
            ),
            precision="float32" if strict else cell.precision,
            batch_size=batch_size,
            n=min(cell.n, steps * batch_size),
            budget=Budget(steps * batch_size, "mosaics"),
            evaluation_points=(1.0,),
            train_metrics_size=1,
            validation_size=1,
            test_size=1,
        )
