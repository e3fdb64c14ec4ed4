"""The networks that a plan's cells take apart, which train first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from study.errors import RequestError
from study.kinds import KINDS
from study.launch.workplace import Workplace
from study.models import kept
from study.plan.plan import Plan, Skip

TRAINING = "training"
"""The kind of the cells that train them."""


def with_networks(plan: Plan, place: Workplace, failed: Collection[str] = ()) -> list[Plan]:
    """The plans of a study, one after the other: that of the networks first, if any are needed.

    Once all networks have ended, cells are skipped whose network did not train to its end, or is
    lost.

    Args:
        plan: of the study's cells.
        place: where the results are.
        failed: ids of cells that are not to be tried again.
    """
    needed = KINDS[plan.kind].needs(plan.cells)
    if not needed:
        return [plan]
    networks = replace(plan, kind=TRAINING, cells=tuple(needed), skipped=(), grid=())
    maker = networks.maker
    flops = {cell.id: maker.flops(cell) for cell in needed}
    networks = replace(networks, flops=flops).resumed({*place.finished, *failed})
    if networks.to_run:
        return [networks, plan]
    lost = {
        network.id: Skip(f"the heads of {network.text}, seed {network.seed}", reason)
        for network in KINDS[plan.kind].needs(plan.to_run)
        if (reason := _why_not(network.id, place))
    }
    gone = {cell.id for cell in plan.to_run if cell.network.id in lost}
    plan = replace(
        plan,
        cells=tuple(cell for cell in plan.cells if cell.id not in gone),
        skipped=(*plan.skipped, *lost.values()),
    )
    return [networks, plan] if plan.cells else [replace(networks, skipped=plan.skipped)]


def _why_not(cell_id: str, place: Workplace) -> str | None:
    """Why a network cannot be taken apart; None if it can."""
    status = place.survey.statuses.get(cell_id, "failed")
    if status != "done":
        return f"its network {status}"
    try:
        kept.load(place.results.storage, cell_id)
    except RequestError as error:
        return str(error).removesuffix(".")
    return None
