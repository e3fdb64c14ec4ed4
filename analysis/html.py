"""Pieces of a self-contained HTML page. Everything that is text is escaped here."""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from html import escape

_STYLE = """
:root { color-scheme: light dark; --text: #1d1f23; --back: #ffffff; --soft: #f3f4f6;
  --line: #d5d8dd; --quiet: #5c636e; --mark: #e6f0fa; --warn: #fff3d6; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e6ea; --back: #16181c; --soft: #22252b;
  --line: #3a3f48; --quiet: #a0a7b3; --mark: #1f3347; --warn: #43350f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 68rem; color: var(--text);
  background: var(--back); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.5rem 0 .5rem; padding-top: .75rem;
  border-top: 2px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
p, li { overflow-wrap: anywhere; max-width: 46rem; }
a { color: inherit; }
.quiet { color: var(--quiet); font-size: .9rem; }
.warning { background: var(--warn); padding: .5rem .75rem; border-radius: .4rem; }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { background: var(--soft); font-weight: 600; }
td { white-space: nowrap; }
.left { text-align: left; }
.wrap td { white-space: normal; overflow-wrap: anywhere; }
.wrap td:first-child { white-space: nowrap; overflow-wrap: normal; }
tr.marked td { background: var(--mark); font-weight: 600; }
.pictures { display: grid; gap: .75rem;
  grid-template-columns: repeat(auto-fit, minmax(min(15rem, 100%), 1fr)); }
.wide { grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); }
figure { margin: 0; break-inside: avoid; max-width: 34rem; }
img { display: block; width: 100%; height: auto; background: #ffffff; border-radius: .4rem; }
@media (max-width: 40rem) { body { padding: .75rem; } th, td { padding: .3rem .45rem; } }
@media print {
  :root { color-scheme: light; --text: #000000; --back: #ffffff; --soft: #f3f4f6;
    --line: #bbbbbb; --quiet: #444444; --mark: #e6f0fa; --warn: #fff3d6; }
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  .scroll { overflow: visible; }
  .pictures { grid-template-columns: repeat(4, 1fr); }
  .wide { grid-template-columns: repeat(2, 1fr); }
  table { font-size: .8rem; }
  th, td { padding: .2rem .4rem; }
  td.left:last-child { white-space: normal; }
  tr, figure { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
}
"""


def page(title: str, body: Sequence[str]) -> str:
    """A whole page. `body` is HTML made by the other functions."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def section(title: str, anchor: str) -> str:
    """The head of a part of the page that `contents` can point at."""
    return f'<h2 id="{escape(anchor)}">{escape(title)}</h2>'


def subsection(title: str) -> str:
    return f"<h3>{escape(title)}</h3>"


def contents(titles: Sequence[str], anchors: Sequence[str]) -> str:
    """Links to the sections of the page."""
    items = [
        f'<li><a href="#{escape(anchor)}">{escape(title)}</a></li>'
        for title, anchor in zip(titles, anchors, strict=True)
    ]
    return f"<ul>{''.join(items)}</ul>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph; kind `quiet` or `warning` sets it apart."""
    return f'<p class="{escape(kind)}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Collection[int] = (0,),
    marked: Collection[int] = (),
    wrap: bool = False,
) -> str:
    """A table that scrolls sideways where the screen is narrow.

    Args:
        header: (columns,) text; empty for none.
        rows: (rows, columns) text.
        left: columns set to the left; the others to the right, as numbers are.
        marked: rows to be highlighted.
        wrap: break long text in all columns but the first.
    """

    def line(tag: str, cells: Sequence[str], kind: str = "") -> str:
        sides = [' class="left"' if i in left else "" for i in range(len(cells))]
        inside = "".join(
            f"<{tag}{side}>{escape(cell)}</{tag}>" for cell, side in zip(cells, sides, strict=True)
        )
        return f"<tr{kind}>{inside}</tr>"

    head = f"<thead>{line('th', header)}</thead>" if header else ""
    highlight = ' class="marked"'
    body = "\n".join(
        line("td", row, highlight if i in marked else "") for i, row in enumerate(rows)
    )
    kind = ' class="wrap"' if wrap else ""
    return f'<div class="scroll"><table{kind}>{head}<tbody>\n{body}\n</tbody></table></div>'


def pictures(items: Sequence[tuple[bytes, str]], wide: bool = False) -> str:
    """PNG pictures side by side where there is room: (PNG, text that says what it shows)."""
    figures = [
        f'<figure><img alt="{escape(text)}" '
        f'src="data:image/png;base64,{base64.b64encode(png).decode()}"></figure>'
        for png, text in items
    ]
    return f'<div class="pictures{" wide" if wide else ""}">{"".join(figures)}</div>'
