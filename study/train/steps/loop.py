"""The training loop, with evaluations at fixed fractions of the budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from study import hardware
from study.cell import Cell
from study.kernels import Kernels
from study.tasks.task import Task
from study.train.steps import packs
from study.train.steps.checkpoints import Checkpoints
from study.train.steps.pack_member import Member, OnEvaluation, Outcome, now
from study.train.steps.side_by_side import Stepping, stepping_on


def train(
    cell: Cell,
    task: Task,
    device: torch.device | str = "cpu",
    on_evaluation: OnEvaluation | None = None,
    micro_batch: int | None = None,
    checkpoints: Checkpoints | None = None,
    kernels: Kernels = (),
) -> Outcome:
    """Trains one cell to the end of its budget; see `train_pack`."""
    return train_pack([cell], task, device, on_evaluation, micro_batch, checkpoints, kernels)[0]


def train_pack(
    cells: Sequence[Cell],
    task: Task,
    device: torch.device | str = "cpu",
    on_evaluation: OnEvaluation | None = None,
    micro_batch: int | None = None,
    checkpoints: Checkpoints | None = None,
    kernels: Kernels = (),
) -> list[Outcome]:
    """Trains cells side by side, step by step, each to the end of its budget.

    The members of a pack share only the device: each has its own weights, order and random stream.
    On a GPU their steps are one CUDA graph, in which their kernels overlap. A packed cell equals
    its separate run, bitwise on a CPU, and a member that diverges does not affect the others.

    Two calls with equal cells give bitwise equal numbers on one CPU at equal threads, even if one
    was interrupted and goes on from checkpoints.

    Args:
        cells: of one pack: they differ only in seed and learning rates.
        task: of the cells.
        device: to train on.
        on_evaluation: told of each evaluation; may stop the cells.
        micro_batch: inputs a forward and backward pass, >= 1; None: the number that suits the
            device's cache or memory best.
        checkpoints: to resume from and to save; None: begin anew, save nothing.
        kernels: of the steps, for a GPU.

    Returns:
        One outcome a cell, in their order.

    Raises:
        ValueError: the cells cannot train as one pack.
        ResultsError: a checkpoint cannot be written.
    """
    packs.require_one(cells)
    device = torch.device(device)
    with hardware.products(cells[0].precision, device):
        members = [Member(cell, task, device, micro_batch, kernels) for cell in cells]
        if checkpoints:
            for member in members:
                checkpoints.resume(member)
        stepping = stepping_on(device)
        for index, stop in enumerate(members[0].stops):
            # A member that resumed from a later checkpoint is ahead of the others.
            running = [m for m in members if not m.ended and m.stops_done == index]
            for member in running:
                member.enter_phase(stop.phase)
            _step_to(stop.steps_done, running, stepping, checkpoints)
            for member in running:
                member.stop()
            for fraction in stop.evaluate_at if running else ():
                if on_evaluation and on_evaluation(_rows(members, fraction)):
                    for member in running:
                        member.censor(fraction)
    return [member.outcome for member in members]


def _step_to(
    target: int,
    members: Sequence[Member],
    stepping: Stepping,
    checkpoints: Checkpoints | None,
) -> None:
    """Steps the members up to the target, and saves their states when that is due."""
    while behind := [member for member in members if member.steps < target]:
        stepping.prepare(behind)
        started = now(behind[0].device)
        for _ in stepping.steps(behind, min(target - member.steps for member in behind)):
            if checkpoints and checkpoints.due(behind):
                _spend(members, now(behind[0].device) - started - stepping.take_idle_seconds())
                checkpoints.save(behind)
                started = now(behind[0].device)
        _spend(members, now(behind[0].device) - started - stepping.take_idle_seconds())


def _rows(members: Sequence[Member], fraction: float) -> dict[Cell, dict[str, Any]]:
    """The validation rows at a point of the budget of all members that have one."""
    return {
        member.cell: row
        for member in members
        for row in member.outcome.evaluations
        if row["split"] == "validation" and row["budget_fraction"] == fraction
    }


def _spend(members: Sequence[Member], seconds: float) -> None:
    for member in members:
        member.spend(seconds)
