"""The networks that a plan's cells take apart, which train first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from study.errors import RequestError
from study.kinds import KINDS
from study.models import kept
from study.plan.plan import Plan, Skip
from study.request import Request
from study.results import Survey
from study.storage.storage import Storage

TRAINING = "training"
"""The kind of the cells that train them."""


def with_networks_first(
    request: Request, plan: Plan, survey: Survey, finished: Collection[str], storage: Storage
) -> list[Plan]:
    """The plans of a study, one after the other: that of the networks first, if any are needed.

    Args:
        request: what was asked for.
        plan: of the study's cells.
        survey: of the results directory.
        finished: ids of cells that need no run.
        storage: the results directory.
    """
    needed = KINDS[plan.kind].needs(plan.cells)
    if not needed:
        return [plan]
    maker = KINDS[TRAINING].maker(lambda task, options: plan.facts[task, options])
    networks = replace(
        plan,
        kind=TRAINING,
        cells=tuple(needed),
        skipped=(),
        grid=(),
        flops={cell.id: maker.flops(cell) for cell in needed},
        gpus_per_trial=request.gpus_per_trial,
    ).resumed(finished)
    if networks.to_run:
        return [networks, plan]
    plan = with_networks(plan, survey.statuses, storage)
    return [networks, plan] if plan.cells else [replace(networks, skipped=plan.skipped)]


def with_networks(plan: Plan, statuses: Mapping[str, str], storage: Storage) -> Plan:
    """The plan without the cells to run whose network did not train to its end, or is lost.

    Args:
        plan: of cells that take networks apart, none of which is left to train.
        statuses: id of a recorded cell -> how it ended.
        storage: the results directory.
    """
    reasons = {}
    for network in KINDS[plan.kind].needs(plan.to_run):
        if reason := _why_not(network.id, statuses, storage):
            reasons[network.id] = f"{network.text}, seed {network.seed}", reason
    lost = {cell.id for cell in plan.to_run if cell.network.id in reasons}
    return replace(
        plan,
        cells=tuple(cell for cell in plan.cells if cell.id not in lost),
        skipped=(
            *plan.skipped,
            *(Skip(f"the heads of {what}", reason) for what, reason in reasons.values()),
        ),
    )


def _why_not(cell_id: str, statuses: Mapping[str, str], storage: Storage) -> str | None:
    """Why a network cannot be taken apart; None if it can."""
    status = statuses.get(cell_id, "failed")
    if status != "done":
        return f"its network {status}"
    try:
        kept.load(storage, cell_id)
    except RequestError as error:
        return str(error).removesuffix(".")
    return None
