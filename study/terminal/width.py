"""Text for people: what is counted, and lines that fit the terminal.

Text that goes elsewhere stays as it is.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

WIDEST = 99
"""Widest line of a sentence; longer ones are hard to read."""


def counted(number: float | str, one: str, many: str = "", form: str = "") -> str:
    """``1 cell``, ``3 to 6 seeds``; with `many`, where an s is not enough: ``2 cells are``."""
    return f"{number:{form}} {one if number in (1, '1') else many or f'{one}s'}"


def columns() -> int | None:
    """The terminal's width by COLUMNS or by itself; None if neither gives one."""
    return shutil.get_terminal_size((0, 0)).columns or None


def readable() -> int:
    """The width of a sentence: `WIDEST`, or that of a narrower terminal."""
    return min(WIDEST, columns() or WIDEST)


def fitted(text: str) -> str:
    """Folds lines that are wider than the terminal between words; the rest is indented.

    A wider word, such as a path, stays whole, so that it can be copied.
    """
    width = columns()
    return "\n".join(part for line in text.split("\n") for part in _folded(line, width))


def sentence(text: str) -> str:
    """Folds a sentence to `WIDEST` or to a narrower terminal."""
    return "\n".join(_lines(text, readable()))


def point(text: str) -> str:
    """The same as one of a list: ``- first``, and what follows indented."""
    return "\n".join(_lines(f"- {text}", readable(), "  "))


def fits(lines: Sequence[str]) -> bool:
    """Whether no line is wider than the terminal."""
    width = columns()
    return width is None or max(map(len, lines), default=0) <= width


def stacked(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table for a narrow terminal, with a line for each entry, row after row.

    Args:
        header: names of the columns; the first heads the lines of a row.
        rows: their entries.
    """
    lines = []
    for row in rows:
        first, *others = (f"{name}: {cell}" for name, cell in zip(header, row, strict=True))
        lines += [first, *(f"  {text}" for text in others)]
    return [part for line in lines for part in _folded(line, columns())]


def tabulated(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table for people, its first column to the left, all others to the right.

    Args:
        header: names of the columns.
        rows: their entries.
    """
    first, *others = (max(map(len, column)) for column in zip(header, *rows, strict=True))
    lines = [
        "  ".join([left.ljust(first), *map(str.rjust, right, others)])
        for left, *right in (header, *rows)
    ]
    return lines if fits(lines) else stacked(header, rows)


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
