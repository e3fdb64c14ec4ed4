"""Runs and evaluates a short cell of each sort; records nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from study.cell.work import Job
from study.drive.launcher import work_of
from study.errors import RequestError
from study.kinds import KINDS
from study.launch.run_job import run_job
from study.launch.workplace import results_in
from study.plan.divide import cores_for
from study.plan.networks_first import TRAINING
from study.plan.plan import Plan
from study.request import Request
from study.terminal.command import DONE


def dry_run(request: Request, plan: Plan) -> int:
    """Runs a short cell of each sort in this process; the exit status.

    Args:
        request: what was asked for.
        plan: of the grid, or of a search.

    Raises:
        Exception: whatever is wrong with a cell.
    """
    threads = request.threads or cores_for(None)
    how = replace(plan.how, threads=threads, gpus_per_trial=request.gpus_per_trial)
    plan, every = replace(plan, how=how), [*plan.runnable["cell"]]
    networks = KINDS[plan.kind].needs(every)
    for kind, cells in ((TRAINING, networks), (plan.kind, every)):
        of_kind = replace(plan, kind=kind)
        work = replace(work_of(request, of_kind, results_in(request.results).url), dry_run=True)
        for cell in _sorts(cells):
            short = KINDS[kind].short(cell)
            events: list[dict[str, Any]] = []
            status = run_job(Job(((short,),)), work, events.append)[short.id]
            if status == "failed":
                raise RequestError(f"dry run: {cell.text}: {events[-1]['text'].splitlines()[-1]}")
            print(f"dry run: {cell.text}: {status}")
    return DONE


def _sorts(cells: Sequence[Any]) -> list[Any]:
    """The first cell of each sort."""
    sorts = {(cell.comparison_id, cell.label): cell for cell in reversed(cells)}
    return [*reversed(sorts.values())]
