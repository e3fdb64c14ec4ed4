"""What a report consists of, before it is HTML or Markdown: a list of blocks.

Each kind of section makes its blocks; `analysis.rendering` writes them. All texts are plain:
`analysis.rendering` escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bokeh.models import LayoutDOM


@dataclass(frozen=True)
class Heading:
    """Heading of a section (level 2) or a part of one (level 3); links point at `anchor`."""

    text: str
    level: Literal[2, 3] = 3
    anchor: str = ""


@dataclass(frozen=True)
class Text:
    """A paragraph; kind `lead` is larger, `quiet` smaller, `warning` set apart."""

    text: str
    kind: Literal["", "lead", "quiet", "warning"] = ""


@dataclass(frozen=True)
class Code:
    """Lines to copy."""

    text: str


@dataclass(frozen=True)
class Contents:
    """Links to sections: (title, anchor) each."""

    items: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        header: (columns,) text; empty for none.
        rows: (rows, columns) text.
        left: left-aligned columns; the others are right-aligned, as numbers are.
        marked: rows to highlight.
        wrap: columns whose text may break into lines.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)
    marked: Sequence[int] = ()
    wrap: Sequence[int] = ()


@dataclass(frozen=True, eq=False)
class Shown:
    """A picture: its PNG for the page, its file beside the page, and the words around it."""

    title: str
    caption: str
    png: bytes
    file: str
    wide: bool = False

    @property
    def alt(self) -> str:
        """For readers who cannot see it: the first sentence of the caption."""
        return self.caption.split(". ")[0].removesuffix(".") + "."


@dataclass(frozen=True, eq=False)
class Interactive:
    """Figures that answer to a reader of the page, where scripts run; elsewhere there are none.

    Attributes:
        title: heading.
        caption: what they show, and how to use them.
        figures: name of a setting -> its figures; the reader chooses the setting.
    """

    title: str
    caption: str
    figures: Mapping[str, LayoutDOM]


@dataclass(frozen=True)
class Html:
    """What only a page can show: HTML whose texts are escaped; elsewhere there is nothing."""

    html: str


Block = Heading | Text | Code | Contents | Table | Shown | Interactive | Html
