"""Names the cells that become known while a study runs: a search's, and those that confirm."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from study.cell import Cell
from study.cell.cell import Group
from study.launch.job_queue import Job
from study.plan.plan import Plan
from study.plan.stages import Choose, confirming
from study.search.search import Search
from study.terminal.progress import Progress


class CellsToCome:
    """Gives the suggestions of a search; then confirms each group whose tuning cells have ended.

    A `study.launch.job_queue.Source`, asked when nothing else is left to start. What is confirmed
    together trains in packs, or shares prefixes, as the plan's cells do.

    Args:
        plan: of the study.
        finished: ids of the cells that need no run.
        choose: chooses the options of groups that are tuned.
        progress: told of the confirming cells.
        search: before whose end no group is tuned; None: the plan has all tuning cells.

    Attributes:
        cells: those that confirm, so far.
    """

    def __init__(
        self,
        plan: Plan,
        finished: Collection[str],
        choose: Choose,
        progress: Progress,
        search: Search | None = None,
    ) -> None:
        self._plan, self._finished = plan, finished
        self._choose, self._progress, self._search = choose, progress, search
        self._examples = {each.group: each.examples for each in plan.to_come if each.group}
        self._tuned: dict[Group, dict[str, Cell]] = {group: {} for group in self._examples}
        self._running: dict[str, Cell] = {}
        self.cells: list[Any] = []
        if self._tuned:
            self._tunes(cell for cell in plan.to_run if cell.seed not in plan.confirm)

    @property
    def exhausted(self) -> bool:
        return not self._tuned and (self._search is None or self._search.exhausted)

    def more(self) -> list[Job]:
        if self._search is not None and (cells := self._search.more()):
            self._tunes(cells)
            return [Job((cell,)) for cell in cells]
        running = {cell.group for cell in self._running.values()}
        ended = {group: cells for group, cells in self._tuned.items() if group not in running}
        for group in ended:
            del self._tuned[group]
        return self._confirm(ended) if ended else []

    def ended(self, cell_id: str, status: str) -> None:
        tuned = self._running.pop(cell_id, None)
        if tuned is not None and self._search is not None:
            self._search.ended(cell_id, status)

    def _tunes(self, cells: Iterable[Cell]) -> None:
        for cell in cells:
            self._running[cell.id] = cell
            if self._plan.confirm:
                self._tuned.setdefault(cell.group, {})[cell.id] = cell

    def _confirm(self, tuned: dict[Group, dict[str, Cell]]) -> list[Job]:
        options = self._choose(tuned)
        second = confirming(self._plan, options).resumed(self._finished)
        self.cells += second.cells
        seconds = {cell.id: self._seconds(cell) for cell in second.to_run}
        gone = len(self._plan.confirm) * len(tuned.keys() - options.keys())
        self._progress.add(second.to_run, seconds, len(second.finished), gone)
        return second.jobs

    def _seconds(self, cell: Cell) -> float:
        """As estimated for its option, or for its group if another command tuned the option."""
        option = replace(cell, seed=self._plan.confirm[0])
        group = self._plan.seconds_of(self._examples.get(cell.group, self._plan.examples))
        return self._plan.seconds.get(option.id, group)
