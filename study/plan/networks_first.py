"""The networks that a plan's cells take apart, which train first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pandas as pd

from study.errors import RequestError
from study.kinds import KINDS
from study.launch.workplace import Workplace
from study.models import kept
from study.plan.plan import Plan, rows_of

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
    networks = replace(plan, kind=TRAINING, grid=())
    maker = networks.maker
    networks = replace(networks, rows=rows_of(needed, [*map(maker.flops, needed)]))
    networks = networks.resumed({*place.finished, *failed})
    if networks.to_run:
        return [networks, plan]
    lost = {
        network.id: f"the heads of {network.text}, seed {network.seed}: {reason}"
        for network in KINDS[plan.kind].needs(plan.to_run)
        if (reason := _why_not(network.id, place))
    }
    if not lost:
        return [networks, plan]
    left = plan.left["cell"].map(lambda cell: lost.get(cell.network.id))
    skipped = plan.rows["skipped"].fillna(left)
    plan = replace(plan, rows=plan.rows.assign(skipped=skipped))
    if plan.cells:
        return [networks, plan]
    return [replace(networks, rows=pd.concat([networks.rows, plan.rows], ignore_index=True))]


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
