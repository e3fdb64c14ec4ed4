"""Learning dynamics: how the paradigms learn, not which one is better.

Cells whose attention is held (fixed focus) and cells of the linear orthogonal setting are in no
comparison; they share this chapter of the report, and show the same things in the same order.
"""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Iterable, Sequence

import pandas as pd

from analysis.page.exports import without_long_columns
from analysis.rules.claim import Claim
from analysis.section.blocks import Block, Details, Heading, Text
from analysis.section.parts import again_blocks, claim_details
from analysis.section.picture import Shown
from analysis.section.section import Chapter

_LEAD = (
    "How the paradigms learn, not which one is better: nothing in these sections is compared at "
    "equal compute."
)


LEARNING_DYNAMICS = Chapter("learning dynamics", "Learning dynamics of attention", _LEAD)


class DynamicsSection(abc.ABC):
    """See `analysis.section.section.Section`.

    Args:
        cells: the rows of `cells` that it rests on.
        ids: ids of what it shows; its key is a hash of them.

    Attributes:
        about: what it is, in a sentence or two.
        title: its heading, without the key.
    """

    about: str
    title: str
    chapter = LEARNING_DYNAMICS
    template = "blocks"
    finding = ""

    @property
    def facts(self) -> dict[str, object]:
        return {"its": self}

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

    @property
    @abc.abstractmethod
    def claims(self) -> list[Claim]:
        """In the order of the paper, each in several settings."""

    @abc.abstractmethod
    def lines(self) -> list[str]:
        """The terminal's lines between the title and the claims."""

    @abc.abstractmethod
    def warnings(self) -> list[str]:
        """Sentences on what is missing, and why."""

    @abc.abstractmethod
    def details(self) -> list[Block]:
        """What is folded below the figures and the claims."""

    def text(self, published: bool = False) -> str:
        """For the terminal: a claim is a line, with its verdict in each setting."""
        verdicts: dict[str, list[str]] = {}
        for claim in self.claims:
            statement = claim.statement.removeprefix("Fixed focus: ").removesuffix(".")
            said = verdicts.setdefault(f"{claim.name} {statement}", [])
            said.append(f"{claim.verdict} ({claim.setting})")
        claims = [f"{claim}: {'; '.join(said)}" for claim, said in verdicts.items()]
        return "\n".join([self.title, "", *self.lines(), *claims])

    def blocks(self, shown: Sequence[Shown], results: str, published: bool = False) -> list[Block]:
        """The section below its heading."""
        return [
            Text(self.about, "quiet"),
            *(Text(text, "warning") for text in self.warnings()),
            *([Heading("Figures")] if shown else []),
            *shown,
            *claim_details(self.claims),
            *self.details(),
            Details("Repeat any cell", again_blocks(self.cells.iloc[0], results)),
        ]

    def _only(self, column: str) -> object:
        values = self.cells[column].unique()
        return values[0] if len(values) == 1 else None
