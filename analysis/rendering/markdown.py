"""A report as Markdown (GitHub's flavour). Everything that is text is escaped here."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from html import escape as html
from urllib.parse import quote

import pandas as pd

from analysis.section.blocks import (
    Block,
    Code,
    Details,
    Heading,
    Html,
    Points,
    Shown,
    Table,
    Text,
)

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~$])")


def render(title: str, blocks: Sequence[Block]) -> str:
    """The whole text; pictures are links to files beside it."""
    return "\n\n".join([f"# {escape(title)}", *map(_block, blocks)]) + "\n"


def escape(text: str) -> str:
    """Plain text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("&", "&amp;")


def table(table: Table) -> str:
    """A table; one without a header gets an empty header, which Markdown requires."""
    header = table.header or [""] * len(table.rows[0])
    cells = pd.DataFrame(table.rows, columns=[*map(escape, header)], dtype=str).map(escape)
    sides = ["left" if i in table.left else "right" for i in range(len(header))]
    return cells.to_markdown(index=False, disable_numparse=True, colalign=sides)


def captioned(caption: str, cells: Table, notes: Sequence[str]) -> str:
    """A table for a paper, between its caption and what must be said beside it."""
    return "\n\n".join([f"**{escape(caption)}**", table(cells), *map(escape, notes)]) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {escape(text)}"
        case Text(text, kind):
            return "> " * (kind == "warning") + escape(text)
        case Code(text):
            return textwrap.indent(text, "    ")
        case Points(texts):
            return "\n".join(f"- {escape(text)}" for text in texts)
        case Details(summary, blocks):
            inside = "\n\n".join(filter(None, map(_block, blocks)))
            return f"<details><summary>{html(summary)}</summary>\n\n{inside}\n\n</details>"
        case Table():
            return table(block) + f"\n\n{_link(block.csv, block.csv)}" * bool(block.csv)
        case Shown():
            picture, pdf = f"!{_link(block.file, block.alt)}", _link(block.pdf, "PDF")
            return f"#### {escape(block.title)}\n\n{picture}\n\n{escape(block.caption)} {pdf}"
        case Html():
            return "The pictures are in report.html beside this file."


def _link(file: str, text: str) -> str:
    """To a file beside the text."""
    return f"[{escape(text)}]({quote(file)})"
