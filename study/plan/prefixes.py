"""Prefix sharing: cells whose first phases agree train them once and fork.

Hybrids with switch points s1 < s2 < ... and the soft cell of the same seed and learning rate take
the same steps until the first one leaves its first phase. The cell whose first phase is longest,
the *trunk*, trains as usual and keeps its state wherever another cell leaves it; that cell starts
there. Every cell reports what it would report alone, its compute included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from study.cell import Cell
from study.launch.job_queue import Job
from study.models.flops import ModelFlops
from study.train.budget.timeline import timeline


def shared_jobs(cells: Sequence[Cell], flops: Mapping[str, ModelFlops]) -> list[Job]:
    """One job a cell, in the order of the cells, each trunk before its forks.

    Args:
        cells: to train.
        flops: cell id -> forward FLOPs of its model.
    """
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.first_phase_id, []).append(cell)
    jobs: list[Job] = []
    for group in groups.values():
        trunk = max(group, key=lambda cell: cell.schedule.phases[0].until)
        forks = [
            Job((cell,), waits_for=(trunk.id, first_phase(cell, flops[cell.id])[0]))
            for cell in group
            if cell is not trunk
        ]
        steps = {job.waits_for[1] for job in forks if job.waits_for}
        jobs += [Job((trunk,), fork_steps=tuple(sorted(steps))), *forks]
    return jobs


def saved_flops(jobs: Iterable[Job], flops: Mapping[str, ModelFlops]) -> int:
    """Training FLOPs of the first phases that forks need not train."""
    return sum(
        first_phase(cell, flops[cell.id])[1] for job in jobs if job.waits_for for cell in job.cells
    )


def first_phase(cell: Cell, flops: ModelFlops) -> tuple[int, int]:
    """Steps and training FLOPs of a cell's first phase."""
    stops = [stop for stop in timeline(cell, flops) if stop.phase == 0]
    return stops[-1].steps_done, stops[-1].compute_flops
