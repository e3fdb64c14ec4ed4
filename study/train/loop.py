"""The training loop: from cells and their task to evaluations at fixed fractions of the budget."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from study.cell import Cell
from study.tasks.base import Task
from study.train import packs
from study.train.checkpoints import Checkpoints
from study.train.member import Member, OnEvaluation, Outcome, now


def train(
    cell: Cell,
    task: Task,
    device: torch.device | str = "cpu",
    on_evaluation: OnEvaluation | None = None,
    micro_batch: int | None = None,
    checkpoints: Checkpoints | None = None,
) -> Outcome:
    """Trains one cell to the end of its budget; see `train_pack`."""
    return train_pack([cell], task, device, on_evaluation, micro_batch, checkpoints)[0]


def train_pack(
    cells: Sequence[Cell],
    task: Task,
    device: torch.device | str = "cpu",
    on_evaluation: OnEvaluation | None = None,
    micro_batch: int | None = None,
    checkpoints: Checkpoints | None = None,
) -> list[Outcome]:
    """Trains cells side by side, step by step, each to the end of its budget.

    The members of a pack share the device and nothing else: each has its own weights, order and
    random stream, and on a GPU its own CUDA stream and graph, so that their kernels overlap. A
    packed cell has the numbers of its separate run, bitwise on a CPU, and a member that diverges
    leaves the others as they are.

    Two calls with equal cells give bitwise equal numbers on one CPU at equal threads, also where
    one of them was interrupted and goes on from checkpoints.

    Args:
        cells: of one pack: they differ in seed and learning rates only.
        task: of the cells.
        device: to train on.
        on_evaluation: told of each evaluation; may stop a cell.
        micro_batch: inputs a forward and backward pass, >= 1; None: what fits the device's cache
            or memory best.
        checkpoints: where to go on from and what to keep; None: begin anew, keep nothing.

    Returns:
        One outcome a cell, in their order.

    Raises:
        ValueError: the cells cannot train as one pack.
        ResultsError: a checkpoint cannot be written.
    """
    packs.require_one(cells)
    device = torch.device(device)
    members = [Member(cell, task, device, micro_batch) for cell in cells]
    if checkpoints:
        for member in members:
            checkpoints.resume(member)
    for index, stop in enumerate(members[0].stops):
        # A member that went on from a later checkpoint than the others is ahead of them.
        running = [m for m in members if not m.ended and m.stops_done == index]
        for member in running:
            member.enter_phase(stop.phase)
        _step_to(stop.steps_done, running, device, checkpoints)
        for member in running:
            member.stop(on_evaluation)
    return [member.outcome for member in members]


def _step_to(
    target: int, members: Sequence[Member], device: torch.device, checkpoints: Checkpoints | None
) -> None:
    """Takes the members to that many steps, and keeps their states where it is time to."""
    started = now(device)
    while behind := [member for member in members if member.steps < target]:
        for member in behind:
            member.step()
        if checkpoints and checkpoints.due(behind):
            _spend(members, now(device) - started)
            checkpoints.save(behind)
            started = now(device)
    _spend(members, now(device) - started)


def _spend(members: Sequence[Member], seconds: float) -> None:
    for member in members:
        member.spend(seconds)
