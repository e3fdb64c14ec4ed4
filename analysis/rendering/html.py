"""A report as one self-contained HTML page. Everything that is text is escaped here."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any

from analysis.section.blocks import (
    Block,
    Code,
    Contents,
    Heading,
    Html,
    Interactive,
    Shown,
    Table,
    Text,
)
from study.evaluate.looks import STYLE as LOOKS

if TYPE_CHECKING:
    from bokeh.models import LayoutDOM

_STYLE = """
:root { color-scheme: light dark; --text: #1d1f23; --back: #ffffff; --soft: #f3f4f6;
  --line: #d5d8dd; --quiet: #5c636e; --mark: #e6f0fa; --warn: #fff3d6; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e6ea; --back: #16181c; --soft: #22252b;
  --line: #3a3f48; --quiet: #a0a7b3; --mark: #1f3347; --warn: #43350f; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1rem; max-width: 68rem; color: var(--text);
  background: var(--back); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.5rem 0 .5rem; padding-top: .75rem;
  border-top: 2px solid var(--line); overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
p, li { overflow-wrap: anywhere; max-width: 46rem; }
a { color: inherit; }
.lead { font-size: 1.1rem; margin: .5rem 0; }
.quiet, figcaption { color: var(--quiet); font-size: .9rem; }
.warning { background: var(--warn); padding: .35rem .75rem; border-radius: .4rem;
  margin: .5rem 0; }
pre { background: var(--soft); padding: .5rem .75rem; border-radius: .4rem; font-size: .85rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { background: var(--soft); font-weight: 600; vertical-align: bottom; }
td { white-space: nowrap; }
.left { text-align: left; }
td.wrap { white-space: normal; overflow-wrap: break-word; min-width: 9rem; max-width: 40rem; }
tr.marked td { background: var(--mark); font-weight: 600; }
.pictures { display: grid; gap: 1.5rem; margin: 1rem 0; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); }
figure { margin: 0; break-inside: avoid; }
figure.wide { grid-column: 1 / -1; }
figure h4 { margin: 0 0 .4rem; font-size: 1rem; }
figcaption { margin-top: .4rem; }
img { display: block; width: 100%; height: auto; background: #ffffff; border-radius: .4rem; }
figure img { max-width: 34rem; }
figure.wide img { max-width: 52rem; }
figure.interactive { margin: 1.5rem 0; }
.interactive select { font: inherit; max-width: 100%; margin-bottom: .5rem; }
.interactive > div { background: #ffffff; color: #1d1f23; color-scheme: light; padding: .5rem;
  border-radius: .4rem; border: 1px solid var(--line); }
@media (max-width: 40rem) { body { padding: .75rem; } th, td { padding: .3rem .45rem; } }
@media print {
  :root { color-scheme: light; --text: #000000; --back: #ffffff; --soft: #f3f4f6;
    --line: #bbbbbb; --quiet: #444444; --mark: #e6f0fa; --warn: #fff3d6; }
  html { font-size: 9.5pt; }
  body { max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  .pictures { grid-template-columns: repeat(2, 1fr); gap: 1rem; }
  figure.wide img { max-width: 62%; }
  figure.interactive { display: none; }
  p, li { max-width: none; }
  .lead { font-size: 1rem; }
  table { font-size: .75rem; }
  td.left { white-space: normal; }
  td.wrap { min-width: 0; overflow-wrap: anywhere; }
  th, td { padding: .15rem .4rem; }
  tr, figure, pre { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
}
"""


# Packed, Bokeh takes a third of the room. It says on the console what it does; of figures that are
# replaced nothing is left.
_SHOW = """
const packed = atob(document.getElementById("bokeh").textContent);
const bytes = new Blob([Uint8Array.from(packed, letter => letter.charCodeAt(0))]).stream();
const bokeh = document.createElement("script");
bokeh.textContent = await new Response(bytes.pipeThrough(new DecompressionStream("gzip"))).text();
document.head.append(bokeh);
Bokeh.logger.set_level("warn");
for (const figure of document.querySelectorAll("figure.interactive")) {
  const items = JSON.parse(figure.querySelector("script").textContent);
  const [place, choice] = ["div", "select"].map(name => figure.querySelector(name));
  let shown;
  async function show() {
    (await shown)?.clear();
    shown = Bokeh.embed.embed_item(items[choice.selectedIndex], place);
  }
  choice.addEventListener("change", show);
  figure.hidden = false;
  show();
}
"""

_RELOAD = """
let touched = 0;
for (const kind of ["keydown", "pointerdown", "pointermove", "wheel"])
  addEventListener(kind, () => { touched = Date.now(); }, {passive: true});
setInterval(() => { if (Date.now() - touched > PAUSE) location.reload(); }, PAUSE);
"""


def render(title: str, blocks: Sequence[Block], reload: float | None = None) -> str:
    """The whole page; it needs no other file and no network.

    Args:
        title: of the page.
        blocks: what it shows.
        reload: seconds after which the browser loads it again, unless its reader is at work with
            it; None: never.
    """
    body = []
    for shown, group in groupby(blocks, lambda block: isinstance(block, Shown)):
        pieces = [_block(block) for block in group]
        # Side by side where there is room.
        body += ['<div class="pictures">', *pieces, "</div>"] if shown else pieces
    if any(isinstance(block, Interactive) for block in blocks):
        body.append(f'<script type="text/plain" id="bokeh">{_bokeh()}</script>')
        body.append(f'<script type="module">{_SHOW}</script>')
    if reload:
        body.append(f"<script>{_RELOAD.replace('PAUSE', f'{1000 * reload:g}')}</script>")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{LOOKS}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def _block(block: Block) -> str:
    match block:
        case Heading(text, level, anchor):
            target = f' id="{escape(anchor)}"' if anchor else ""
            return f"<h{level}{target}>{escape(text)}</h{level}>"
        case Text(text, kind):
            return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"
        case Code(text):
            return f"<pre>{escape(text)}</pre>"
        case Contents(items):
            links = [f'<li><a href="#{escape(a)}">{escape(title)}</a></li>' for title, a in items]
            return f"<ul>{''.join(links)}</ul>"
        case Table():
            return _table(block)
        case Shown():
            return _picture(block)
        case Interactive():
            return _interactive(block)
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
    return f'<div class="scroll" tabindex="0"><table>{head}<tbody>\n{body}\n</tbody></table></div>'


def _class_of(table: Table, column: int) -> str:
    kinds = ["left"] * (column in table.left) + ["wrap"] * (column in table.wrap)
    return f' class="{" ".join(kinds)}"' if kinds else ""


def _picture(shown: Shown) -> str:
    data = base64.b64encode(shown.png).decode()
    kind = ' class="wide"' if shown.wide else ""
    return (
        f"<figure{kind}><h4>{escape(shown.title)}</h4>"
        f'<img alt="{escape(shown.alt)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(shown.caption)}</figcaption></figure>"
    )


def _interactive(block: Interactive) -> str:
    """Hidden where no script runs."""
    options = "".join(f"<option>{escape(name)}</option>" for name in block.figures)
    alone = " hidden" if len(block.figures) == 1 else ""
    figures = [_item(each) for each in block.figures.values()]
    items = json.dumps(figures, separators=(",", ":"))
    items = items.replace("<", r"\u003c")  # which would end the script; to JSON it is the same
    return (
        f'<figure class="interactive" hidden><h4>{escape(block.title)}</h4>'
        f'<select aria-label="setting"{alone}>{options}</select><div></div>'
        f"<figcaption>{escape(block.caption)}</figcaption>"
        f'<script type="application/json">{items}</script></figure>'
    )


def _item(figures: LayoutDOM) -> Any:
    """What Bokeh's script needs to show figures; the same for the same figures."""
    from bokeh.embed import json_item

    numbers: dict[str, str] = {}

    def renamed(node: dict[str, Any]) -> dict[str, Any]:
        # Bokeh counts on through all that a process has drawn.
        ids = [name for name in ("id", "root_id") if name in node]
        return node | {name: numbers.setdefault(node[name], str(len(numbers))) for name in ids}

    return json.loads(json.dumps(json_item(figures)), object_hook=renamed)


def _bokeh() -> str:
    """The scripts that draw figures and their widgets, from Bokeh's package, packed as base64."""
    from bokeh.util.paths import bokehjs_path

    folder = bokehjs_path() / "js"
    scripts = [(folder / f"{name}.min.js").read_bytes() for name in ("bokeh", "bokeh-widgets")]
    return base64.b64encode(gzip.compress(b"\n".join(scripts), mtime=0)).decode()
