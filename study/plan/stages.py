"""The two stages of a study: all options tune on a few seeds, the chosen ones on fresh seeds.

A *group* is one paradigm of a comparison. Its options are tried on the seeds of the axis `seed`,
one of them is chosen, and that one runs on the seeds of the axis `confirm`, where alone it is
judged. A group with one option needs no tuning.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from study.cell import Cell
from study.cell.axis import as_typed, fresh_seeds
from study.cell.cell import Group
from study.cell.work import CONFIRM
from study.errors import RequestError
from study.launch.workplace import Workplace
from study.plan.choice import chosen_cells
from study.plan.plan import Plan, rows_of


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
    rows = plan.runnable
    compared = {comparison_id for comparison_id, _ in rows["group"].unique()}
    recorded = place.survey.cells
    recorded = recorded[recorded["comparison_id"].isin(compared)]
    finished = {*place.finished, *failed}
    if not confirm:
        _require_not_confirming(rows, recorded)
        return plan.resumed(finished)
    _require_not_tuning(confirm, recorded)
    # Of what a search tries only its end tells which options there are.
    given = {} if plan.search else _of_one_option(rows, recorded)
    tuning = rows[~rows["group"].isin(given)]
    _require_not_confirming(tuning, recorded)
    tuned: Mapping[Group, set[str]] = {}
    if not plan.searches:
        ids: Any = tuning.groupby("group", sort=False)["id"].agg(set)
        tuned = {group: of_group for group, of_group in ids.items() if of_group <= finished}
    known = {**given, **(chosen_cells(place, select, tuned) if tuned else {})}
    second = _second_stage(rows, confirm, known, without=tuned.keys() - known.keys())
    first = plan.rows[plan.rows["skipped"].notna() | plan.rows.index.isin(tuning.index)]
    every = pd.concat([first, second], ignore_index=True)
    return replace(plan, rows=every, confirm=confirm).resumed(finished)


def _second_stage(
    rows: pd.DataFrame,
    confirm: Sequence[int],
    chosen: Mapping[Group, Cell],
    without: Collection[Group],
) -> pd.DataFrame:
    """The rows of the cells that confirm, seed by seed: known ones, and then those to come.

    Until an option is chosen, its group's first one stands for it.

    Args:
        rows: of all options of a study, or of a search.
        confirm: the seeds.
        chosen: group -> a cell of the option that is chosen, as far as one is.
        without: groups of which none can be chosen.
    """
    groups = rows.drop_duplicates("group")
    groups = groups.assign(
        number=range(0, len(confirm) * len(groups), len(confirm)),
        known=groups["group"].isin(chosen),
        cell=[chosen.get(*both) for both in zip(groups["group"], groups["cell"], strict=True)],
    )
    groups = groups[~groups["group"].isin(without)]
    by_seed = (groups.assign(seed=s, number=groups["number"] + k) for k, s in enumerate(confirm))
    each = pd.concat(by_seed).sort_values("known", ascending=False, kind="stable")
    both = zip(each["cell"], each["seed"].tolist(), strict=True)
    cells = [replace(cell, seed=seed) for cell, seed in both]
    made = rows_of(cells, [*each["flops"]], known=[*each["known"]])
    return made.assign(number=[*each["number"]])


def unchosen(plan: Plan) -> list[Any]:
    """A cell of each group of which none confirms, though its study has a second stage.

    Args:
        plan: of a command that has ended, of both stages.
    """
    if not plan.confirm:
        return []
    rows = plan.known
    confirmed = plan.confirming(rows)["group"]
    return [*rows[~rows["group"].isin(confirmed)].drop_duplicates("group")["cell"]]


def _of_one_option(rows: pd.DataFrame, recorded: pd.DataFrame) -> dict[Group, Cell]:
    """The groups of which rows and records together have one option -> a cell of it."""
    options: defaultdict[Group, set[str]] = defaultdict(set)
    for comparison_id, paradigm, schedule in zip(
        recorded["comparison_id"], recorded["paradigm"], recorded["schedule"], strict=True
    ):
        options[comparison_id, paradigm].add(schedule)
    for cell in rows.drop_duplicates("option")["cell"]:
        options[cell.group].add(cell.schedule.text)
    firsts = rows.drop_duplicates("group")
    groups = zip(firsts["group"], firsts["cell"], strict=True)
    return {group: cell for group, cell in groups if len(options[group]) == 1}


def _require_not_tuning(confirm: Collection[int], recorded: pd.DataFrame) -> None:
    tuned = set(recorded.loc[recorded["stage"].ne(CONFIRM), "seed"])
    if both := tuned & set(confirm):
        fresh = as_typed(fresh_seeds({*tuned, *confirm}, len(confirm)))
        raise RequestError(
            f"confirm={as_typed(confirm)}: the results directory holds tuning cells on seeds "
            f"{as_typed(both)}, and a choice must not be judged on the seeds that made it. Give "
            f"fresh ones, e.g. --set confirm={fresh}."
        )


def _require_not_confirming(rows: pd.DataFrame, recorded: pd.DataFrame) -> None:
    confirmed = set(recorded.loc[recorded["stage"].eq(CONFIRM), "seed"])
    seeds = set(rows["seed"])
    if both := seeds & confirmed:
        free = (seed for seed in itertools.count() if seed not in confirmed)
        others = as_typed(itertools.islice(free, len(seeds)))
        raise RequestError(
            f"seed={as_typed(seeds)}: the results directory holds confirming cells on seeds "
            f"{as_typed(both)}, and a choice must not be made on the seeds that judge it. Tune on "
            f"others, e.g. --set seed={others}."
        )
