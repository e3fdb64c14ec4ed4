"""The contract of learning dynamics: what every study of them gives the report.

A comparison asks which paradigm is better at equal compute. A study of learning dynamics asks how
a paradigm learns: it has curves and claims, and no winner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pandas as pd

from analysis.section.blocks import Block, Shown
from analysis.section.claim import Claim
from analysis.section.picture import Picture
from analysis.section.summary import GroupSummary


class Dynamics(Protocol):
    """One study of learning dynamics, read from a results directory.

    Attributes:
        title: heading of its section.
        key: 8 hex digits, which no other one in the directory has, for names of files.
        cells: the rows of `cells` that it rests on.
    """

    @property
    def title(self) -> str: ...

    @property
    def key(self) -> str: ...

    @property
    def cells(self) -> pd.DataFrame: ...

    def text(self) -> str:
        """For the terminal: a small table, and one line a claim."""
        ...

    def claims(self) -> Sequence[Claim]:
        """What the paper claims, and what the data says."""
        ...

    def pictures(self) -> Sequence[Picture]:
        """Its figures; no two share a name."""
        ...

    def tables(self) -> Mapping[str, pd.DataFrame]:
        """Stem of a file -> table, for export as CSV at full precision."""
        ...

    def blocks(self, shown: Sequence[Shown]) -> Sequence[Block]:
        """Its section of the report, below the heading.

        Args:
            shown: its pictures, in their order, as the page holds them.
        """
        ...

    def summaries(self) -> Sequence[GroupSummary]:
        """For MLflow: one summary a (task, m, paradigm)."""
        ...
