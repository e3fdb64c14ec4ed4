"""The two stages of a study: all options tune on a few seeds, the chosen ones on fresh seeds.

A *group* is one paradigm of a comparison. Its options are tried on the seeds of the axis `seed`,
one of them is chosen, and that one runs on the seeds of the axis `confirm`, where alone it is
judged. A group with one option needs no tuning.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from study.cell import Cell
from study.cell.axis import as_typed, fresh_seeds
from study.cell.cell import Group
from study.cell.grouped import grouped as grouped
from study.cell.work import CONFIRM
from study.errors import RequestError
from study.launch.workplace import Workplace
from study.plan.choice import chosen_cells
from study.plan.plan import Plan, ToCome


def staged(
    plan: Plan,
    place: Workplace,
    confirm: tuple[int, ...] = (),
    select: str = "accuracy",
    failed: Collection[str] = (),
) -> Plan:
    """The plan beside what the results directory holds: what need not run, what is chosen.

    Args:
        plan: of all options on the tuning seeds, or of a search.
        place: where the results are.
        confirm: seeds of the second stage; empty: there is none.
        select: the validation metric that chooses.
        failed: ids of cells that are not to be tried again.

    Raises:
        RequestError: options would be chosen and judged on one seed.
    """
    compared = {cell.comparison_id for cell in plan.shown}
    recorded = place.survey.cells
    recorded = recorded[recorded["comparison_id"].isin(compared)]
    finished = frozenset({*place.finished, *failed})
    if not confirm:
        _require_not_confirming(plan.shown, recorded)
        return plan.resumed(finished)
    _require_not_tuning(confirm, recorded)
    # Of what a search tries only its end tells which options there are.
    given = {} if plan.search else _of_one_option(plan.cells, recorded)
    tuning = [cell for cell in plan.cells if cell.group not in given]
    _require_not_confirming([*tuning, *plan.examples], recorded)
    tuned = {
        group: ids
        for group, cells in grouped(tuning).items()
        if not plan.searches and (ids := {cell.id for cell in cells}) <= finished
    }
    known = {**given, **(chosen_cells(place, select, tuned) if tuned else {})}
    chosen = {group: known[group] for group in grouped(plan.cells) if group in known}
    second = confirming(replace(plan, confirm=confirm), chosen)
    to_come, flops = list(plan.to_come), {**plan.flops, **second.flops}
    for group, cells in grouped([*tuning, *plan.examples]).items():
        if group not in tuned:
            options = {cell.hash_without("seed"): cell for cell in cells}.values()
            examples = tuple(replace(cell, seed=confirm[0]) for cell in options)
            to_come.append(ToCome(examples, len(confirm), group))
            both = zip(examples, options, strict=True)
            flops |= {example.id: plan.flops[cell.id] for example, cell in both}
    return replace(
        second,
        cells=(*tuning, *second.cells),
        flops=flops,
        to_come=tuple(to_come),
    ).resumed(finished)


def confirming(plan: Plan, options: Mapping[Group, Cell]) -> Plan:
    """The plan of the cells that confirm options, seed by seed.

    Args:
        plan: of the study.
        options: group -> a cell of its option.
    """
    maker = plan.maker
    cells = tuple(replace(cell, seed=seed) for seed in plan.confirm for cell in options.values())
    flops = {cell.id: maker.flops(cell) for cell in cells}
    return replace(plan, cells=cells, flops=flops)


def unchosen(cells: Collection[Any], confirm: Collection[int]) -> list[Any]:
    """A cell of each group of which none confirms, though its study has a second stage.

    Args:
        cells: of a command that has ended, of both stages.
        confirm: seeds of the second stage; empty: there is none.
    """
    if not confirm:
        return []
    confirmed = {cell.group for cell in cells if cell.seed in confirm}
    return [first for group, (first, *_) in grouped(cells).items() if group not in confirmed]


def _of_one_option(cells: Iterable[Cell], recorded: pd.DataFrame) -> dict[Group, Cell]:
    """The groups of which cells and records together have one option -> a cell of it."""
    options: defaultdict[Group, set[str]] = defaultdict(set)
    for comparison_id, paradigm, schedule in zip(
        recorded["comparison_id"], recorded["paradigm"], recorded["schedule"], strict=True
    ):
        options[comparison_id, paradigm].add(schedule)
    groups = grouped(cells)
    for group, of_group in groups.items():
        options[group] |= {cell.schedule.text for cell in of_group}
    return {group: cells[0] for group, cells in groups.items() if len(options[group]) == 1}


def _require_not_tuning(confirm: Collection[int], recorded: pd.DataFrame) -> None:
    tuned = set(recorded.loc[recorded["stage"].ne(CONFIRM), "seed"])
    if both := tuned & set(confirm):
        fresh = as_typed(fresh_seeds({*tuned, *confirm}, len(confirm)))
        raise RequestError(
            f"confirm={as_typed(confirm)}: the results directory holds tuning cells on seeds "
            f"{as_typed(both)}, and a choice must not be judged on the seeds that made it. Give "
            f"fresh ones, e.g. --set confirm={fresh}."
        )


def _require_not_confirming(cells: Collection[Cell], recorded: pd.DataFrame) -> None:
    confirmed = set(recorded.loc[recorded["stage"].eq(CONFIRM), "seed"])
    seeds = {cell.seed for cell in cells}
    if both := seeds & confirmed:
        free = (seed for seed in itertools.count() if seed not in confirmed)
        others = as_typed(itertools.islice(free, len(seeds)))
        raise RequestError(
            f"seed={as_typed(seeds)}: the results directory holds confirming cells on seeds "
            f"{as_typed(both)}, and a choice must not be made on the seeds that judge it. Tune on "
            f"others, e.g. --set seed={others}."
        )
