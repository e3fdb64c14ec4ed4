"""The dry run: a few steps of each kind of cell, so that mistakes show before the study."""

from __future__ import annotations

import dataclasses
from typing import Any

from study.cell import Budget, Cell, Schedule
from study.cell.work import Work
from study.launch.trial import train_cells
from study.plan.plan import Plan


def dry_run(plan: Plan, work: Work) -> None:
    """Trains a cell of each kind for two steps a phase and evaluates it; records nothing."""
    kinds: dict[tuple[Any, ...], Cell] = {}
    for cell in plan.cells:
        kinds.setdefault((cell.comparison_id, cell.paradigm), cell)
    for (_, paradigm), cell in kinds.items():
        count = len(cell.schedule.phases)
        phases = (
            dataclasses.replace(phase, until=(i + 1) / count)
            for i, phase in enumerate(cell.schedule.phases)
        )
        short = dataclasses.replace(
            cell,
            schedule=Schedule(tuple(phases)),
            budget=Budget(2 * count * cell.batch_size, "mosaics"),
            evaluation_points=(0.0, 1.0),
        )
        statuses = train_cells(dataclasses.replace(work, cells=(short,), dry_run=True))
        print(f"dry run: {paradigm} at m={cell.m}, {cell.schedule.text}: {statuses[short.id]}")
