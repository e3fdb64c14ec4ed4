"""What a report consists of, before it is HTML or Markdown: a list of blocks.

Each kind of section makes its blocks; `analysis/templates/blocks.j2` prints them. All texts
are plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from analysis.section.picture import Shown
from analysis.section.templates import Table


@dataclass(frozen=True)
class Heading:
    """Heading of a chapter (level 2), which the table of contents lists, or of a part of one."""

    text: str
    level: Literal[2, 3] = 3


@dataclass(frozen=True)
class Text:
    """A paragraph; kind `lead` is larger, `quiet` smaller, `warning` set apart."""

    text: str
    kind: Literal["", "lead", "quiet", "warning"] = ""


@dataclass(frozen=True)
class Points:
    """Short sentences, one below the other."""

    texts: Sequence[str]


@dataclass(frozen=True)
class Code:
    """Lines to copy."""

    text: str


@dataclass(frozen=True)
class Details:
    """Blocks that are folded away below a line that says what they are."""

    summary: str
    blocks: Sequence[Block]


Block = Heading | Text | Points | Code | Table | Shown | Details
