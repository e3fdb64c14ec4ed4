"""The dry run: a short cell of each sort, so that mistakes show before the study."""

from __future__ import annotations

import dataclasses
from typing import Any

from study.cell import AnyCell
from study.cell.work import Work
from study.kinds import KINDS
from study.launch.trial import train_cells
from study.plan.plan import Plan


def dry_run(plan: Plan, work: Work) -> None:
    """Runs and evaluates a short cell of each sort; records nothing."""
    sorts: dict[tuple[Any, ...], AnyCell] = {}
    for cell in plan.shown:
        sorts.setdefault((cell.comparison_id, cell.label), cell)
    for cell in sorts.values():
        short = KINDS[plan.kind].short(cell)
        statuses = train_cells(dataclasses.replace(work, cells=(short,), dry_run=True))
        print(f"dry run: {cell.text}: {statuses[short.id]}")
