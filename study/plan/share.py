"""Which cells of a study a shard trains.

The grid's cells are numbered group by group, a group being what one paradigm of a comparison
tries, and shard K of N takes every N-th of them: each group is spread evenly. The numbers follow
from the grid alone. So all shards agree on them, whenever each is started and whatever is recorded
by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from study.cell import AnyCell
from study.cell.grouped import grouped
from study.kinds import KINDS
from study.plan.plan import Plan
from study.request import Shard


class Share:
    """The share of one shard.

    Args:
        shard: whose.
        grid: the plan of all cells of the study, before it is compared with what is recorded.
        confirm: seeds that confirm the chosen options; empty: the study has one stage.

    Attributes:
        shard: as given.
        waiting: cells of the share that wait for networks, which other shards may train.
        lacking: how many cells for which it waits are other shards', and not recorded here.
    """

    def __init__(self, shard: Shard, grid: Plan, confirm: Sequence[int] = ()) -> None:
        self.shard = shard
        self.waiting: Sequence[AnyCell] = ()
        self.lacking = 0
        self._confirm = {seed: number for number, seed in enumerate(confirm)}
        groups = grouped(grid.cells)
        self._groups = {group: number for number, group in enumerate(groups)}
        self._numbers = {**_numbers(KINDS[grid.kind].needs(grid.cells)), **_numbers(grid.cells)}

    def has(self, cell: AnyCell) -> bool:
        """Whether the shard trains a cell: of the grid, a network of it, or one that confirms."""
        number = self._numbers.get(cell.id)
        if number is None:
            number = self._number(cell.group, cell.seed)
        return self._takes(number)

    def next(self, plans: Sequence[Plan]) -> Plan:
        """What the first plan of which anything is left to run, by whomever, leaves to the shard.

        Args:
            plans: of the study, each of what the next one needs.
        """
        first = next((plan for plan in plans if plan.to_run), plans[-1])
        self.waiting = self.of(plans[-1]).to_run if first is not plans[-1] else ()
        tuning = (cell for cell in first.to_run if cell.seed not in self._confirm)
        self.lacking = sum(not self.has(cell) for cell in tuning)
        return self.of(first)

    def of(self, plan: Plan) -> Plan:
        """What a plan of the study leaves to the shard."""
        to_come = []
        for each in plan.to_come:
            seeds = [s for s in self._confirm if self._takes(self._number(each.group, s))]
            if seeds:
                to_come.append(replace(each, count=len(seeds)))
        cells = tuple(cell for cell in plan.cells if self.has(cell))
        return replace(plan, cells=cells, to_come=tuple(to_come)).resumed(plan.finished)

    def _number(self, group: Any, seed: int) -> int:
        """Of a cell that confirms; the same whichever option is chosen, and when."""
        return self._groups[group] * len(self._confirm) + self._confirm[seed]

    def _takes(self, number: int) -> bool:
        return number % self.shard.of == self.shard.number - 1


def _numbers(cells: Iterable[AnyCell]) -> dict[str, int]:
    """Cell id -> its number, group by group."""
    in_order = (cell.id for group in grouped(cells).values() for cell in group)
    return {cell_id: number for number, cell_id in enumerate(in_order)}
