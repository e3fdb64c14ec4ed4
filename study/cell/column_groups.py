"""Columns of results that some cells have, known without Arrow; see `study.results.columns`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from study.cell.declared import Axis, Name, Number, Text, Whole
from study.door import Registry

TEXT, WHOLE, NUMBER, TEXTS, WHOLES, NUMBERS = TYPES = (
    "text", "whole number", "number", "texts", "whole numbers", "numbers",
)  # fmt: skip

Column = tuple[str, str]
"""Type, one of `TYPES`, and meaning in Markdown."""

Of = Literal["set up", "found", "measured", "evaluated"]
"""What columns tell of: how a cell was set up (parameters of its run in MLflow), what it found,
what an evaluation measures beside SAIF, or what else an evaluation found."""


class Group(NamedTuple):
    """Columns that a file has all or none of.

    Attributes:
        of: what they tell.
        columns: name -> type and meaning.
    """

    of: Of
    columns: Mapping[str, Column]


GROUPS: Registry[Group] = Registry({})
"""Heading in docs/results.md -> columns, of all that chapters and packages register."""


def of_axes(axes: Mapping[str, Axis]) -> dict[str, Column]:
    """The columns that axes declare."""
    of = {Whole: WHOLE, Number: NUMBER, Name: TEXT, Text: TEXT}
    return {
        axis.named or name: (of[type(axis.takes)], axis.column)
        for name, axis in axes.items()
        if axis.column
    }
