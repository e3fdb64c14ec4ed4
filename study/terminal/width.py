"""Text for a terminal, no wider than it is; as wide as it comes where it goes elsewhere."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

WIDEST = 99
"""Of sentences: longer lines are hard to read."""


def columns() -> int | None:
    """How wide the terminal is, as COLUMNS or the terminal says; None: neither does."""
    return shutil.get_terminal_size((0, 0)).columns or None


def fitted(text: str) -> str:
    """Lines that are wider than the terminal are folded between words, and go on indented.

    A word that is wider, as a path, stays whole: it can be copied.
    """
    width = columns()
    return "\n".join(part for line in text.split("\n") for part in _folded(line, width))


def sentence(text: str) -> str:
    """A sentence in lines of at most `WIDEST`, or what the terminal has."""
    return "\n".join(_lines(text, min(WIDEST, columns() or WIDEST)))


def fits(lines: Sequence[str]) -> bool:
    """Whether no line is wider than the terminal."""
    width = columns()
    return width is None or max(map(len, lines), default=0) <= width


def stacked(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table for a narrow terminal: each row by itself, with a line for each of its cells.

    Args:
        header: names of the columns, the first of which heads the lines of a row.
        rows: their cells.
    """
    lines = []
    for row in rows:
        first, *others = (f"{name}: {cell}" for name, cell in zip(header, row, strict=True))
        lines += [first, *(f"  {text}" for text in others)]
    return [part for line in lines for part in _folded(line, columns())]


def _folded(line: str, width: int | None) -> list[str]:
    if width is None or len(line) <= width:
        return [line]
    margin = line[: len(line) - len(line.lstrip())] + "  "
    return _lines(line, width, margin)


def _lines(text: str, width: int, margin: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )
