"""Plans cells that a list names, and lists the cells that a plan leaves to run."""

from __future__ import annotations

import functools
from dataclasses import replace

from study import tasks
from study.cell import AnyCell, Options
from study.errors import RequestError, unknown
from study.hardware import TF32_NEEDS_GPU
from study.kinds import KINDS
from study.launch.cell_list import CellList
from study.plan.estimate import choose_packing
from study.plan.plan import Plan
from study.request import Request
from study.tasks.base import UNKNOWN_DIGEST, Facts
from study.tasks.sources.places import NO_PLACES, Places
from study.train.steps.packs import Packing


def left_to_run(request: Request, plan: Plan) -> CellList:
    """The cells that a plan leaves to run.

    Raises:
        RequestError: their data is not at hand, without which a cell has no id.
    """
    if any(cell.data_digest == UNKNOWN_DIGEST for cell in plan.to_run):
        raise RequestError(
            f"the data of {plan.study} is not at hand, and cells are named by its digest. Say "
            "where it lies with --data-dir DIR."
        )
    return CellList(plan.study, plan.kind, tuple(plan.to_run), plan.confirm)


def plan_listed(
    listed: CellList,
    threads: int,
    gpu: bool,
    places: Places = NO_PLACES,
    micro_batch: int | None = None,
) -> Plan:
    """Plans to train the cells of a list, one pack at a time.

    Args:
        listed: the cells.
        threads: CPU threads.
        gpu: whether to use a GPU.
        places: of the tasks' files.
        micro_batch: inputs a pass; None: by device.

    Raises:
        RequestError: an unknown kind or task, other data than the cells', or one cannot run.
    """
    names = {cell.task for cell in listed.cells}
    tasks.require_use(places, sorted(names))

    @functools.cache
    def facts_of(task: str, options: Options) -> Facts:
        if task not in tasks.TASKS:
            raise unknown("task", task, tasks.TASKS)
        return tasks.load(task, places, options).facts

    maker = KINDS[listed.kind].maker(facts_of)
    for cell in listed.cells:
        if cell.precision == "tf32" and not gpu:
            raise RequestError(f"cell {cell.id}: {TF32_NEEDS_GPU}")
        _require_same_data(cell, maker.facts(cell))
        if reason := maker.why_not(cell):
            raise RequestError(f"cell {cell.id} cannot run: {reason}. Take it out of the list.")
    return Plan(
        study=listed.study,
        kind=listed.kind,
        preset="",
        cells=listed.cells,
        finished=frozenset(),
        skipped=(),
        flops={cell.id: maker.flops(cell) for cell in listed.cells},
        facts={(cell.task, cell.options): maker.facts(cell) for cell in listed.cells},
        packing=Packing(),
        concurrent=1,
        threads=threads,
        gpus_per_trial=None if gpu else 0,
        micro_batch=micro_batch,
        confirm=listed.confirm,
    )


def packed(plan: Plan, members: int | None) -> Plan:
    """The plan of a list with packs.

    Args:
        plan: of the list.
        members: most cells of a pack; None: as many as are measured to be fastest.
    """
    if members is None or not KINDS[plan.kind].trains:
        packing = choose_packing(plan, "auto", share=False)
    else:
        packing = Packing("none" if members == 1 else "seed,lr", most=members)
    return replace(plan, packing=packing)


def _require_same_data(cell: AnyCell, facts: Facts) -> None:
    if facts.digest != cell.data_digest:
        raise RequestError(
            f"cell {cell.id} was planned on data with digest {cell.data_digest}, but here "
            f"{cell.task} has digest {facts.digest}. Name the same data with --data-dir DIR, or "
            "write the list anew."
        )
