"""Divides a machine or a cluster among trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from study.cell.grouped import grouped
from study.errors import RequestError
from study.launch.nodes import slots_on
from study.limits import usable_cores
from study.plan.jobs import Seconds
from study.plan.plan import Plan
from study.terminal import counted
from study.train.steps.packs import Packing, form

Room = Callable[[int], int]
"""CPU threads a trial -> how many trials fit on a cluster at a time."""


CLUSTER_THREADS = 1
"""CPU threads of a trial on a cluster. Fixed, so that results do not depend on which nodes are
there."""


def with_packing(
    plan: Plan,
    packing: Packing,
    share: bool = False,
    no_share_reason: str = "as asked",
    room: Room | None = None,
    threads: int | None = None,
) -> Plan:
    """The plan with packs or shared prefixes, and this machine divided among its trials.

    Forks and packs are not combined: packed cells share no prefix.

    Args:
        plan: whose cells to divide.
        packing: how to pack them.
        share: whether cells share prefixes.
        no_share_reason: why not, for people.
        room: of a cluster; None: this machine.
        threads: CPU threads a trial; None: the cores divided among the trials, on a cluster 1.

    Raises:
        RequestError: this machine lacks the GPUs or cores that a trial asks for.
    """
    # Divided by the whole study, so that a resumed one trains with as many threads as before.
    if room is not None:
        threads = threads or CLUSTER_THREADS
        slots = room(threads)
        concurrent = min(slots, _trials(plan, packing, slots))
    else:
        gpus, cores = torch.cuda.device_count(), cores_for(threads)
        if (plan.gpus_per_trial or 0) > gpus:
            raise RequestError(
                f"--gpus-per-trial {plan.gpus_per_trial:g}, but this machine has "
                f"{counted(gpus, 'GPU')}. Leave it out to use what is there."
            )
        each = 1 if plan.gpus_per_trial is None else plan.gpus_per_trial
        slots = slots_on(gpus, each) if each else 0
        trials = _trials(plan, packing, slots or cores)
        concurrent, share_of_cores = share_cores(trials, cores, slots)
        if threads:
            concurrent = min(concurrent, cores // threads)
        threads = threads or share_of_cores
    # Fewer trials at a time get no more threads, so that this option does not change results.
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


def _trials(plan: Plan, packing: Packing, workers: int) -> int:
    """How many trials the cells of a plan are at most."""
    if plan.watched:  # the seeds of an option are one
        seeds = len({cell.seed for each in plan.suggested for cell in each.examples}) or 1
        suggested = sum(each.count for each in plan.suggested)
        options = len({cell.hash_without("seed") for cell in plan.tuning})
        options += math.ceil(suggested / seeds)
        return options + len(plan.confirming) + plan.num_to_come - suggested
    return len(form(plan.cells, packing, workers)) + plan.num_to_come


def cores_for(threads: int | None) -> int:
    """The cores that this process may use.

    Raises:
        RequestError: they are fewer than the threads that were asked for.
    """
    cores = usable_cores()
    if (threads or 0) > cores:
        raise RequestError(
            f"--threads {threads}, but this process may use {counted(cores, 'core')}."
        )
    return cores


def share_cores(trials: int, cores: int, slots: int) -> tuple[int, int]:
    """How many trials run at a time, and with how many threads each.

    As many trials as fit on the GPUs (`slots`; 0: they use none), else one a core; the other cores
    become threads.
    """
    concurrent = max(1, min(trials, cores, slots or cores))
    return concurrent, max(1, cores // concurrent)


class Costs:
    """Estimated seconds of the cells of a study, also of those that were not known at first.

    Args:
        divided: a plan of all that was known, timed.
    """

    def __init__(self, divided: Plan) -> None:
        self._known = divided.costs
        self._confirm = divided.confirm
        known = [cell for cell in (*divided.cells, *divided.examples) if cell.id in divided.costs]
        self._mean = {
            label: _mean([divided.costs[cell.id] for cell in cells])
            for label, cells in grouped(known, lambda cell: cell.label).items()
        }
        self._overall = _mean([*divided.costs.values()] or [Seconds(1.0, 0.0)])

    def of(self, cell: Any) -> Seconds:
        """As estimated for its option, or for cells that differ in options alone."""
        if cell.id in self._known:
            return self._known[cell.id]
        option = replace(cell, seed=self._confirm[0]).id if self._confirm else cell.id
        return self._known.get(option) or self._mean.get(cell.label) or self._overall


def _mean(costs: Sequence[Seconds]) -> Seconds:
    return Seconds(*(sum(column) / len(costs) for column in zip(*costs, strict=True)))


def like(plan: Plan, divided: Plan) -> Plan:
    """A later plan of a study, divided and timed as an earlier one of the same kind."""
    costs = Costs(divided)
    return replace(
        plan,
        packing=divided.packing,
        concurrent=divided.concurrent,
        threads=divided.threads,
        share=divided.share,
        gpus_per_trial=divided.gpus_per_trial,
        where=divided.where,
        costs={cell.id: costs.of(cell) for cell in (*plan.to_run, *plan.examples)},
    )
