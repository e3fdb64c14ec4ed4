"""A search as the source of a study's further cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from study.cell import Cell
from study.search.search import Search


class Suggestions:
    """A search as a `study.launch.job_queue.Source`; recorded cells do not run again.

    Args:
        search: asked for cells, told of their ends.
        recorded: cell id -> status of the cells that need no run.
        announce: called with a suggestion's cells that will run, and how many were done before.
    """

    def __init__(
        self,
        search: Search,
        recorded: Mapping[str, str],
        announce: Callable[[list[Cell], int], object],
    ) -> None:
        self.search = search
        self._recorded = recorded
        self._announce = announce

    @property
    def exhausted(self) -> bool:
        return self.search.exhausted

    def more(self) -> list[Cell]:
        while not self.search.exhausted:
            cells = self.search.more()
            missing = [cell for cell in cells if cell.id not in self._recorded]
            self._announce(missing, len(cells) - len(missing))
            for cell in cells:
                if cell.id in self._recorded:
                    self.search.ended(cell.id, self._recorded[cell.id])
            if missing:
                return missing
        return []

    def ended(self, cell_id: str, status: str) -> None:
        self.search.ended(cell_id, status)
