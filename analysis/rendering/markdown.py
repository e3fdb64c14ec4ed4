"""A report as Markdown (GitHub's flavour). Everything that is text is escaped here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape as html
from urllib.parse import quote

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
    width = len(table.header) or max(map(len, table.rows), default=1)
    header = table.header or [""] * width
    rule = ["---" if i in table.left else "---:" for i in range(width)]
    rows = [
        [f"**{escape(cell)}**" if i in table.marked and cell else escape(cell) for cell in row]
        for i, row in enumerate(table.rows)
    ]
    lines = [[escape(cell) for cell in header], rule, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {escape(text)}"
        case Text(text, "warning"):
            return f"> {escape(text)}"
        case Text(text, _):
            return escape(text)
        case Code(text):
            longest = max(map(len, re.findall("`+", text)), default=0)
            fence = "`" * max(3, longest + 1)
            return f"{fence}\n{text}\n{fence}"
        case Points(texts):
            return "\n".join(f"- {escape(text)}" for text in texts)
        case Details(summary, blocks):
            inside = "\n\n".join(filter(None, map(_block, blocks)))
            return f"<details><summary>{html(summary)}</summary>\n\n{inside}\n\n</details>"
        case Table():
            return "\n\n".join([table(block), *[_link(block.csv, block.csv)] * bool(block.csv)])
        case Shown():
            picture, pdf = f"!{_link(block.file, block.alt)}", _link(block.pdf, "PDF")
            return f"#### {escape(block.title)}\n\n{picture}\n\n{escape(block.caption)} {pdf}"
        case Html():
            return "The pictures are in report.html beside this file."


def _link(file: str, text: str) -> str:
    """To a file beside the text."""
    return f"[{escape(text)}]({quote(file)})"
