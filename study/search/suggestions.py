"""The cells that a search suggests and that are to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from study.cell import Cell
from study.search.search import Search


class Suggestions:
    """Asks a search for cells; those that are recorded do not run again.

    Args:
        search: asked for cells, told of their ends.
        recorded: cell id -> status of the cells that need no run.
        announce: called with a suggestion's cells that will run, how many more were done before,
            and how many other drivers have taken.
    """

    def __init__(
        self,
        search: Search,
        recorded: Mapping[str, str],
        announce: Callable[[list[Cell], int, int], object],
    ) -> None:
        self.search = search
        self._recorded = recorded
        self._announce = announce
        self._elsewhere = 0

    @property
    def exhausted(self) -> bool:
        return self.search.exhausted

    def more(self) -> list[Cell]:
        """The cells to run of the next suggestion that has any; empty: there is none left."""
        while not self.search.exhausted:
            cells = self.search.more()
            missing = [cell for cell in cells if cell.id not in self._recorded]
            taken = self.search.elsewhere - self._elsewhere
            self._elsewhere += taken
            self._announce(missing, len(cells) - len(missing), taken)
            for cell in cells:
                if cell.id in self._recorded:
                    self.search.ended(cell.id, self._recorded[cell.id])
            if missing:
                return missing
        return []

    def ended(self, cell_id: str, status: str) -> None:
        """Takes the end of one of its cells: the recorded status, or `failed` for good."""
        self.search.ended(cell_id, status)
