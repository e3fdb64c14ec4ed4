"""Lays out axes as the points of a grid, and points as cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from search_spaces.base import SearchSpace
from study.cell.axis import Rules, depends_on, values_at
from study.cell.declared import Axis
from study.errors import RequestError
from study.kinds import KINDS
from study.plan.axes import as_assignments, tasks_of
from study.plan.plan import Plan, rows_of
from study.tasks.task import FactsOf
from study.terminal.working import working

LARGEST_GRID = 1_000_000

Points = Iterator[Mapping[str, Any]]
"""Of a grid: axis -> value."""


def make_plan(
    space: SearchSpace,
    preset: str,
    axes: Mapping[str, Rules],
    facts_of: FactsOf,
) -> Plan:
    """Lays out the grid of a study.

    Args:
        space: the study.
        preset: name of its preset.
        axes: as `study.plan.axes.resolve` gives them.
        facts_of: gives the facts of a task's data.

    Raises:
        RequestError: a value out of range, or a grid with no cell or too many.
    """
    kind = KINDS[space.kind]
    known = kind.axes(tasks_of(axes))
    plan = plan_of(space, preset, points_of(known, axes, kind.fastest), facts_of)
    return replace(plan, grid=tuple(as_assignments(known, axes)))


def plan_of(
    space: SearchSpace, preset: str, points: Iterable[Mapping[str, Any]], facts_of: FactsOf
) -> Plan:
    """The plan of points (axis -> value); arguments and errors as of `make_plan`."""
    maker = KINDS[space.kind].maker(facts_of)
    with working("laying out the grid", unit="cells") as part:
        cells = {cell.id: cell for cell in map(maker.cell, part.each(points))}.values()
        reasons = [maker.why_not(cell) for cell in cells]
    if None not in reasons:
        why = "; ".join(map(str, dict.fromkeys(reasons)))
        raise RequestError(f"nothing to run in this grid: {why}. Change it with --set.")
    both = [*zip(cells, reasons, strict=True)]
    rows = rows_of(
        cells,
        [None if reason else maker.flops(cell) for cell, reason in both],
        skipped=[f"{cell.text}: {reason}" if reason else None for cell, reason in both],
    )
    facts = {(cell.task, cell.options): maker.facts(cell) for cell in cells}
    return Plan(space.name, space.kind, preset, rows, facts)


def points_of(
    known: Mapping[str, Axis], axes: Mapping[str, Rules], fastest: Sequence[str]
) -> Points:
    """Every point of the grid: axis -> value, without axes that mean nothing there.

    The first axis varies slowest, `fastest` come last. What the values of an axis depend on comes
    before it.
    """
    directions = [name for name, axis in known.items() if not axis.whole]
    count = math.prod(max(len(rule.values) for rule in axes[name]) for name in directions)
    if count > LARGEST_GRID:
        raise RequestError(
            f"the grid has up to {count:,} cells, more than {LARGEST_GRID:,}. "
            "Narrow it with --set."
        )
    waiting = set(directions) - set(fastest)
    order: list[str] = []

    def place(name: str) -> None:
        if name in waiting:
            waiting.remove(name)
            for other in sorted(depends_on(axes[name])):  # as in every process
                place(other)
            order.append(name)

    for name in directions:
        place(name)
    order += [name for name in fastest if name in known]

    def along(name: str, points: Points) -> Points:
        only = known[name].only
        for point in points:
            if only and point[only[0]] not in only[1]:
                yield point
            else:
                for value in values_at(axes[name], name, point):
                    yield {**point, name: value}

    points: Points = iter([{}])
    for name in order:
        points = along(name, points)
    return points
