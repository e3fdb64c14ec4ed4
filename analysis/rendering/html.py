"""A report as one self-contained HTML page. Everything that is text is escaped here."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from html import escape
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
from study.evaluate.looks import STYLE as LOOKS

_STYLE = """
:root { color-scheme: light dark; --text: #1d1f23; --back: #ffffff; --soft: #f3f4f6;
  --line: #d5d8dd; --quiet: #5c636e; --mark: #e6f0fa; --warn: #fff3d6; --shade: #00000038; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e6ea; --back: #16181c; --soft: #22252b;
  --line: #3a3f48; --quiet: #a0a7b3; --mark: #1f3347; --warn: #43350f; --shade: #ffffff48; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1rem; max-width: 68rem; color: var(--text);
  background: var(--back); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .25rem 0; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 1.75rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1rem 0 .5rem; }
p, ul, pre, figcaption { max-width: 46rem; }
p, ul { margin: .5rem 0; }
ul { padding-left: 1.2rem; }
li { margin: .2rem 0; }
a { color: inherit; }
nav { display: flex; flex-wrap: wrap; gap: 0 1rem; }
nav, .quiet, figcaption { color: var(--quiet); font-size: .875rem; }
.lead { font-size: 1.2rem; line-height: 1.4; }
.warning { background: var(--warn); padding: .35rem .75rem; border-radius: .4rem; }
pre { background: var(--soft); padding: .5rem .75rem; border-radius: .4rem; font-size: .85rem;
  white-space: pre-wrap; }
details { border-top: 1px solid var(--line); }
details:last-of-type { border-bottom: 1px solid var(--line); }
details details { margin-left: 1rem; }
summary { cursor: pointer; padding: .35rem 0; font-weight: 600; }
details[open] { padding-bottom: 1rem; }
/* Where a table goes on beyond an edge, the edge has a shadow. */
.scroll { overflow-x: auto; margin: .5rem 0; background:
  linear-gradient(to right, var(--back) 50%, transparent) left / 2rem 100% no-repeat local,
  linear-gradient(to left, var(--back) 50%, transparent) right / 2rem 100% no-repeat local,
  linear-gradient(to right, var(--shade), transparent) left / .8rem 100% no-repeat scroll,
  linear-gradient(to left, var(--shade), transparent) right / .8rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: normal; }
th { font-weight: 600; vertical-align: bottom; }
td { white-space: nowrap; }
/* Where there is room for a table, its cells fold before it scrolls. */
@media (min-width: 40rem) { table:not(:has(.wrap)) td { white-space: normal; } }
.left { text-align: left; }
td.wrap { white-space: normal; overflow-wrap: break-word; min-width: 9rem; max-width: 40rem; }
tr.marked td { background: var(--mark); font-weight: 600; }
.pictures { display: grid; gap: 1rem 1.5rem; margin: .75rem 0; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); }
figure { margin: 0; break-inside: avoid; }
figure.wide { grid-column: 1 / -1; }
figure h4 { margin: 0 0 .25rem; font-size: .95rem; }
figcaption { margin-top: .25rem; }
figure svg { display: block; max-width: 100%; max-height: 23rem; height: auto;
  fill: currentColor; stroke-linejoin: round; }
figure.wide svg { min-width: 32rem; }
svg text { pointer-events: none; }
@media (max-width: 40rem) { body { padding: .75rem; } th, td { padding: .25rem .45rem; }
  td.wrap { min-width: 5rem; } }
@media print {
  :root { color-scheme: light; --text: #000000; --back: #ffffff; --soft: #f3f4f6;
    --line: #bbbbbb; --quiet: #444444; --mark: #e6f0fa; --warn: #fff3d6; }
  html { font-size: 9.5pt; }
  body { max-width: none; padding: 0; }
  nav { display: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
  .scroll { overflow: visible; background: none; }
  .pictures { grid-template-columns: repeat(2, 1fr); gap: 1rem; }
  figure.wide svg { min-width: 0; max-width: 62%; }
  p, ul { max-width: none; }
  table { font-size: .75rem; }
  td.left { white-space: normal; }
  td.wrap { min-width: 0; overflow-wrap: anywhere; }
  th, td { padding: .15rem .4rem; }
  tr, figure, pre { break-inside: avoid; }
  h2, h3, summary { break-after: avoid; }
}
"""

_RELOAD = """
let touched = 0;
for (const kind of ["keydown", "pointerdown", "pointermove", "wheel"])
  addEventListener(kind, () => { touched = Date.now(); }, {passive: true});
setInterval(() => { if (Date.now() - touched > PAUSE) location.reload(); }, PAUSE);
"""


def render(title: str, blocks: Sequence[Block], reload: float | None = None) -> str:
    """The whole page; it needs no network, and no other file but for links to those beside it.

    Args:
        title: of the page.
        blocks: what it shows.
        reload: seconds after which the browser loads it again, unless its reader is at work with
            it; None: never.
    """
    titles = [each.text for each in blocks if isinstance(each, Heading) and each.level == 2]
    links = [f'<a href="#part-{i}">{escape(text)}</a>' for i, text in enumerate(titles)]
    ids = iter(f'<h2 id="part-{i}">' for i in itertools.count())
    body = [f"<nav>{''.join(links)}</nav>"] if links[1:] else []
    body.append(re.sub("<h2>", lambda _: next(ids), _html(blocks)))
    if reload:
        body.append(f"<script>{_RELOAD.replace('PAUSE', f'{1000 * reload:g}')}</script>")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{LOOKS}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def _html(blocks: Sequence[Block]) -> str:
    body = []
    for shown, group in itertools.groupby(blocks, lambda block: isinstance(block, Shown)):
        pieces = [_block(block) for block in group]
        # Side by side where there is room.
        body += ['<div class="pictures">', *pieces, "</div>"] if shown else pieces
    return "\n".join(body)


def _block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Text(text, kind):
            return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"
        case Code(text):
            return f"<pre>{escape(text)}</pre>"
        case Points(texts):
            return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"
        case Details(summary, blocks):
            return f"<details><summary>{escape(summary)}</summary>{_html(blocks)}</details>"
        case Table():
            return _table(block)
        case Shown():
            return _picture(block)
        case Html(text):
            return text


def _table(table: Table) -> str:
    """A table that scrolls sideways where the screen is narrow."""

    def line(tag: str, cells: Sequence[str], kind: str = "") -> str:
        inside = "".join(
            f"<{tag}{_class_of(table, i)}>{escape(cell)}</{tag}>" for i, cell in enumerate(cells)
        )
        return f"<tr{kind}>{inside}</tr>"

    head = f"<thead>{line('th', table.header)}</thead>" if table.header else ""
    highlight = ' class="marked"'
    body = "\n".join(
        line("td", row, highlight if i in table.marked else "") for i, row in enumerate(table.rows)
    )
    # Scrolling with the keyboard needs focus.
    file = f'<p class="quiet">{_link(table.csv, table.csv)}</p>' if table.csv else ""
    rows = f"<table>{head}<tbody>\n{body}\n</tbody></table>"
    return f'<div class="scroll" tabindex="0">{rows}</div>{file}'


def _class_of(table: Table, column: int) -> str:
    kinds = ["left"] * (column in table.left) + ["wrap"] * (column in table.wrap)
    return f' class="{" ".join(kinds)}"' if kinds else ""


def _picture(shown: Shown) -> str:
    """A figure; a wide one scrolls sideways where the screen is narrow."""
    kind = ' class="wide"' if shown.wide else ""
    named = f'<svg role="img" aria-label="{escape(shown.alt)}"'
    return (
        f"<figure{kind}><h4>{escape(shown.title)}</h4>"
        f'<div class="scroll">{shown.svg.replace("<svg", named, 1)}</div>'
        f"<figcaption>{escape(shown.caption)} {_link(shown.pdf, 'PDF')}</figcaption></figure>"
    )


def _link(file: str, text: str) -> str:
    """To a file beside the page."""
    return f'<a href="{quote(file)}">{escape(text)}</a>'
