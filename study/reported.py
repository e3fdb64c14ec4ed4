"""What parts bring to the analysis, which `study` itself never imports."""

from __future__ import annotations

from dataclasses import dataclass

from study.door import Registry
from study.errors import RequestError


@dataclass(frozen=True)
class SectionOf:
    """A kind of sections of the report, and the cells that are shown there instead of compared.

    A cell that several would show is shown by the first of them.

    Attributes:
        place: its module, an `analysis.section.section.Kind`.
        files: pattern of the stems of its files: figures, and tables of data.
        kinds: names of kinds of cells, all of which are its own.
        tasks: of the others, those of these tasks.
        held: of the others, those whose attention is held (True) or not (False); None: either.

    Raises:
        RequestError: it names no cells.
    """

    place: str
    files: str
    kinds: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    held: bool | None = None

    def __post_init__(self) -> None:
        cells = [self.kinds, self.tasks]
        no_names = any(isinstance(each, str) for each in cells)  # a text would stand for its parts
        if no_names or not (any(cells) or self.held is not None):
            raise RequestError(
                f"the section {self.place} shows no cells: give it a tuple of kinds or tasks."
            )

    def shows(self, kind: str, task: str, held: bool) -> bool:
        """Whether it shows a cell of a kind and a task, whose attention is held or not."""
        if kind in self.kinds or not (self.tasks or self.held is not None):
            return kind in self.kinds
        return (not self.tasks or task in self.tasks) and self.held in (None, held)


SECTIONS: Registry[SectionOf] = Registry({})
"""Module -> kind of sections, in the order of the report, behind comparisons."""

FUNCTIONS: Registry[str] = Registry({})
"""Name -> place of a further function of the package `analysis`."""
