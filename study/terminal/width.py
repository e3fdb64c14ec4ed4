"""Text for people: what is counted, and lines that fit the terminal.

Text that goes elsewhere stays as it is.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

WIDEST = 99
"""Widest line of a sentence; longer ones are hard to read."""


def counted(number: float | str, one: str, many: str = "", form: str = "") -> str:
    """``1 cell``, ``3 to 6 seeds``; with `many`, where an s is not enough: ``2 cells are``."""
    return f"{number:{form}} {one if number in (1, '1') else many or f'{one}s'}"


def columns() -> int:
    """The terminal's width by COLUMNS or by itself; elsewhere lines have no end."""
    return shutil.get_terminal_size((sys.maxsize, 0)).columns


def readable() -> int:
    """The width of a sentence: `WIDEST`, or that of a narrower terminal."""
    return min(WIDEST, columns())


def sentence(text: str, margin: str = "") -> str:
    """Folds a sentence to that width; its further lines begin with a margin."""
    return _folded(text, readable(), margin)


def fitted(text: str) -> str:
    """Folds lines that are wider than the terminal between words; the rest is indented.

    A wider word, such as a path, stays whole, so that it can be copied.
    """
    width = columns()
    return "\n".join(
        _folded(line, width, " " * (len(line) - len(line.lstrip()) + 2))
        if len(line) > width
        else line
        for line in text.split("\n")
    )


def _folded(text: str, width: int, margin: str) -> str:
    return textwrap.fill(
        text,
        width,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )


def tabulated(
    header: Sequence[str], rows: Sequence[Sequence[str]], ruled: bool = False
) -> list[str]:
    """A table for people, as lines; on a narrow terminal, a line for each entry, row after row.

    Args:
        header: names of the columns.
        rows: their entries.
        ruled: whether its columns are all to the left, their names above a rule; else only the
            first is to the left.
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rules = [["-" * width for width in widths]] if ruled else []
    signs = ["<", *("<" if ruled else ">" for _ in widths[1:])]
    form = "  ".join(f"{{:{sign}{width}}}" for sign, width in zip(signs, widths, strict=True))
    lines = [form.format(*row).rstrip() for row in (header, *rules, *rows)]
    if max(map(len, lines)) > columns():
        stacked = ("\n  ".join(map("{}: {}".format, header, row)) for row in rows)
        return fitted("\n".join(stacked)).split("\n")
    return lines
