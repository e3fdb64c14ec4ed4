"""What a report consists of, before it is HTML or Markdown: a list of blocks.

Each kind of section makes its blocks; `analysis/page/templates/blocks.j2` prints them. All texts
are plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


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
class Table:
    """A table.

    Attributes:
        header: (columns,) text; empty for none.
        rows: (rows, columns) text.
        left: left-aligned columns; the others are right-aligned, as numbers are.
        marked: rows to highlight.
        wrap: columns whose text may break into lines.
        csv: the file beside the report with its numbers at full precision; empty: there is none.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)
    marked: Sequence[int] = ()
    wrap: Sequence[int] = ()
    csv: str = ""


@dataclass(frozen=True, eq=False)
class Shown:
    """A picture: an SVG element for the page, its file beside it, and the words around it."""

    title: str
    caption: str
    svg: str
    file: str
    wide: bool = False

    @property
    def name(self) -> str:
        """Its file's name without folder and ending: that of its picture, and a key."""
        return self.file.rpartition("/")[-1].partition(".")[0]

    @property
    def pdf(self) -> str:
        """The same for papers."""
        return f"{self.file.removesuffix('.png')}.pdf"

    @property
    def alt(self) -> str:
        """For readers who cannot see it: the first sentence of the caption."""
        return self.caption.split(". ")[0].removesuffix(".") + "."


@dataclass(frozen=True)
class Details:
    """Blocks that are folded away below a line that says what they are."""

    summary: str
    blocks: Sequence[Block]


Block = Heading | Text | Points | Code | Table | Shown | Details
