"""Lays out axes as the points of a grid, and points as cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from search_spaces.base import By, SearchSpace, Values
from study.cell import AnyCell
from study.cell.axis import depends_on, values_at
from study.cell.declared import Axis
from study.errors import RequestError
from study.kind import Kind
from study.kinds import KINDS
from study.plan.axes import as_assignments, tasks_of
from study.plan.divide import with_packing
from study.plan.plan import Plan, Skip
from study.tasks.base import FactsOf
from study.terminal.working import working
from study.train.steps.packs import Packing

LARGEST_GRID = 1_000_000


def make_plan(
    space: SearchSpace,
    preset: str,
    axes: Mapping[str, Values | By] | Sequence[Mapping[str, Any]],
    facts_of: FactsOf,
) -> Plan:
    """Lays out the grid of a study.

    Args:
        space: the study.
        preset: name of its preset.
        axes: as `study.plan.axes.resolve` gives them; or single points, axis -> value.
        facts_of: gives the known or nominal facts of a task's data.

    Raises:
        RequestError: a value out of range, or a grid with no cell or too many.
    """
    cells: dict[str, AnyCell] = {}
    flops: dict[str, Any] = {}
    skipped: dict[Skip, None] = {}
    kind = KINDS[space.kind]
    maker = kind.maker(facts_of)
    grid: tuple[str, ...] = ()
    points: Iterable[Mapping[str, Any]] = ()
    if isinstance(axes, Mapping):
        known = kind.axes(tasks_of(axes))
        points, grid = _points(kind, known, axes), tuple(as_assignments(known, axes))
    else:
        points = axes
    with working("laying out the grid", unit="cells") as part:
        for point in part.each(points):
            cell = maker.cell(point)
            reason = maker.why_not(cell)
            if reason:
                skipped[Skip(cell.text, reason)] = None
            else:
                cells[cell.id], flops[cell.id] = cell, maker.flops(cell)
    if not cells:
        reasons = "; ".join(dict.fromkeys(skip.reason for skip in skipped))
        raise RequestError(f"nothing to run in this grid: {reasons}. Change it with --set.")
    plan = Plan(
        study=space.name,
        kind=space.kind,
        preset=preset,
        cells=tuple(cells.values()),
        finished=frozenset(),
        skipped=tuple(skipped),
        flops=flops,
        facts={(cell.task, cell.options): maker.facts(cell) for cell in cells.values()},
        packing=Packing(),
        concurrent=1,
        threads=1,
        grid=grid,
    )
    return with_packing(plan, plan.packing)


def _points(
    kind: Kind, known: Mapping[str, Axis], axes: Mapping[str, Values | By]
) -> Iterator[dict[str, Any]]:
    """Every point of the grid: axis -> value, without axes that mean nothing there.

    The first axis varies slowest, `kind.fastest` come last. What the values of an axis depend on
    comes before it.
    """
    _refuse_huge_grid([values for name, values in axes.items() if not known[name].whole])
    slower = [n for n, axis in known.items() if not axis.whole and n not in kind.fastest]
    order: dict[str, None] = {}

    def place(name: str, above: frozenset[str] = frozenset()) -> None:
        if name in slower and name not in above:
            for other in sorted(depends_on(axes[name])):  # as in every process
                place(other, above | {name})
            order.setdefault(name)

    for name in slower:
        place(name)
    order |= dict.fromkeys(name for name in kind.fastest if name in known)

    def extend(point: dict[str, Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
        if not names:
            yield point
            return
        name, *rest = names
        only = known[name].only
        if only is not None and point[only[0]] not in only[1]:
            yield from extend(point, rest)
            return
        for value in values_at(axes[name], name, point):
            yield from extend({**point, name: value}, rest)

    yield from extend({}, list(order))


def _refuse_huge_grid(axes: Sequence[Values | By]) -> None:
    """Refuses a grid whose upper bound of points is too large, before it is laid out."""

    def most(axis: Values | By) -> int:
        if isinstance(axis, By):
            return max(map(most, (*axis.values.values(), axis.otherwise)))
        return len(axis)

    count = math.prod(map(most, axes))
    if count > LARGEST_GRID:
        raise RequestError(
            f"the grid has up to {count:,} cells, more than {LARGEST_GRID:,}. "
            "Narrow it with --set."
        )
