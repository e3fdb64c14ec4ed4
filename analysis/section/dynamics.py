"""Learning dynamics: how the paradigms learn, not which one is better.

Cells whose attention is held (fixed focus) and cells of the linear orthogonal setting are in no
comparison; they share this chapter of the report.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from analysis.section.base import Chapter, Section
from analysis.section.blocks import Block, Shown, Text
from analysis.section.parts import repeat_blocks, without_long_columns

_LEAD = (
    "How the paradigms learn, not which one is better: nothing in these sections is compared at "
    "equal compute."
)


class LearningDynamics(Chapter[Section]):
    """Says which of the paper's claims hold; there is no winner to name."""

    name = "learning dynamics"
    about = "Learning dynamics of attention"

    def head(
        self,
        sections: Sequence[Section],
        shown: Mapping[Section, Sequence[Shown]],
        published: bool,
    ) -> list[Block]:
        """Every claim with its verdict, and that there is no winner."""
        return [*super().head(sections, shown, published), Text(_LEAD, "quiet")]


LEARNING_DYNAMICS = LearningDynamics()


class Dynamics:
    """What sections of learning dynamics share; see `analysis.section.base.Section`.

    Args:
        cells: the rows of `cells` that it rests on.
        ids: ids of what it shows; its key is a hash of them.
    """

    chapter = LEARNING_DYNAMICS

    def __init__(self, cells: pd.DataFrame, ids: Iterable[str]) -> None:
        self.cells = cells
        self.key = hashlib.sha256("".join(ids).encode()).hexdigest()[:8]

    @property
    def labels(self) -> dict[str, object]:
        """`task` and `m` are missing where the cells have several."""
        return {"task": self._only("task"), "m": self._only("m"), "key": self.key}

    def cell_rows(self) -> pd.DataFrame:
        """Its cells without the columns that only comparisons need."""
        return without_long_columns(self.cells)

    def repeat_blocks(self, results: str) -> list[Block]:
        """The command that trains the first of its cells again."""
        return repeat_blocks(str(self.cells["cell_id"].iloc[0]), results)

    def _only(self, column: str) -> object:
        values = self.cells[column].unique()
        return values[0] if len(values) == 1 else None
