"""Inputs as HTML, and where models look in them: tiles, windows or words. All text is escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import cycle
from typing import NotRequired, TypedDict

import numpy as np

OPEN_LINES = 4
"""Lines of tiles, or posts, that are seen at once; further inputs are folded."""

STYLE = """
.looks th, .looks td { text-align: left; vertical-align: top; white-space: normal;
  padding: .3rem .5rem; }
.looks tbody th { background: none; }
.tiles { --t: 2rem; display: grid; grid-template-columns: repeat(var(--n), auto); gap: .5rem;
  justify-content: start; padding: .4rem .4rem 0; }
.tile { font-size: .75rem; line-height: 1.25; text-align: center; color: #8a919d; }
.tile::before { content: ""; display: block; width: calc(var(--w) * var(--t)); height: var(--t);
  margin-bottom: .4rem; print-color-adjust: exact; -webkit-print-color-adjust: exact;
  background: #ffffff var(--s) var(--x) 0 / calc(var(--m) * 100%) 100%;
  box-shadow: 0 0 0 calc(var(--a) * .4rem) #d55e00; }
.tile.on { color: inherit; }
.tile.true { border-bottom: 3px solid #009e73; }
.post { min-width: 15rem; line-height: 1.7; }
.post span { padding: .1rem .15rem; border-radius: .2rem; print-color-adjust: exact;
  -webkit-print-color-adjust: exact; background: rgb(86 180 233 / var(--a)); }
.post .dark { color: #000000; }
.post .true { text-decoration: underline 2px #009e73; text-underline-offset: .2rem; }
.said { margin: .3rem 0 0; font-size: .85rem; white-space: nowrap; }
.wrong { color: #d55e00; font-weight: 600; }
@media (max-width: 40rem) { .tiles { --t: 1.7rem; } .post { min-width: 13rem; } }
"""

_ACROSS = 5  # tiles side by side
_WINDOW = 60, 40  # units of the drawing of a window
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")


class Example(TypedDict):
    """Where a model looks in an input of m segments, one of which `tiles`, `windows` or `words`.

    Attributes:
        input: its row in the split.
        tiles: an image file (PNG or JPEG) in base64: the m tiles side by side.
        windows: of each window, of each channel, its values.
        words: of the post.
        attention: on each segment.
        foreground: the true segments, by their places.
        label: the true class.
        predicted: the class of highest score.
        score: its probability.
    """

    input: int
    tiles: NotRequired[str]
    windows: NotRequired[list[list[list[float]]]]
    words: NotRequired[list[str]]
    attention: list[float]
    foreground: list[int]
    label: str
    predicted: str
    score: float


def looks_html(examples: Mapping[str, Sequence[Example]]) -> str:
    """A table: a row an input that all have, a column a name.

    Args:
        examples: name -> where it looks, e.g. a paradigm; at least one.
    """
    by_input = [{each["input"]: each for each in mine} for mine in examples.values()]
    shared = [row for row in by_input[0] if all(row in mine for mine in by_input)]
    first = [by_input[0][row] for row in shared]
    rows = [_row([mine[row] for mine in by_input]) for row in shared]
    names = "".join(f"<th>{escape(name)}</th>" for name in examples)
    lines = [1 if "words" in mine else -(-len(mine["attention"]) // _ACROSS) for mine in first]
    count = max(1, OPEN_LINES // max(lines, default=1))
    parts = [
        '<div class="scroll looks" tabindex="0"><table>'
        f"<thead><tr><th>class</th>{names}</tr></thead><tbody>{''.join(part)}</tbody></table></div>"
        for part in (rows[:count], rows[count:])
        if part
    ]
    if len(parts) > 1:
        more = len(rows) - count
        parts[1] = f"<details><summary>{more} more</summary>{parts[1]}</details>"
    return "\n".join(parts)


def looks_page(examples: Sequence[Example], title: str, warning: str) -> str:
    """A page of its own with where one model looks."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>:root {{ color-scheme: light dark; "
        f"font: 1rem/1.5 system-ui, sans-serif; }}{STYLE}</style></head><body>"
        f"<p>{escape(warning)}</p>{looks_html({title: examples})}</body></html>\n"
    )


def _row(of_each: Sequence[Example]) -> str:
    first = of_each[0]
    style = ""  # inherited by the tiles, so that an image stands on the page once
    if "words" not in first:
        m = len(first["attention"])
        width = _WINDOW[0] / _WINDOW[1] if "windows" in first else 1
        style = f"--s:url({_strip(first)});--m:{m};--n:{min(m, _ACROSS)};--w:{width:g}"
    cells = "".join(f"<td>{_input(each)}{_said(each)}</td>" for each in of_each)
    return f'<tr style="{style}"><th>{escape(first["label"])}</th>{cells}</tr>\n'


def _said(example: Example) -> str:
    right = example["predicted"] == example["label"]
    verdict = "right" if right else '<span class="wrong">wrong</span>'
    score = f"{100 * example['score']:.0f} %"
    return f'<p class="said">{escape(example["predicted"])}, {score}: {verdict}</p>'


def _input(example: Example) -> str:
    if "words" in example:
        return f'<div class="post">{" ".join(_words(example))}</div>'
    return f'<div class="tiles">{"".join(_tiles(example))}</div>'


def _words(example: Example) -> Iterator[str]:
    """Shaded by the square root, so that a small share is seen."""
    for place, (word, share) in enumerate(_pairs(example)):
        shade = share**0.5
        kinds = ["dark"] * (shade > 0.6) + ["true"] * (place in example["foreground"])
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        style = f'style="--a:{shade:.2f}" title="{100 * share:.0f} %"'
        yield f"<span{kind} {style}>{escape(word)}</span>"


def _pairs(example: Example) -> Iterator[tuple[str, float]]:
    return zip(example["words"], example["attention"], strict=True)


def _tiles(example: Example) -> Iterator[str]:
    last = max(1, len(example["attention"]) - 1)
    for place, share in enumerate(example["attention"]):
        kinds = ["tile"] + ["on"] * (share >= 0.01) + ["true"] * (place in example["foreground"])
        style = f"--x:{100 * place / last:.4g}%;--a:{share:.2f}"
        yield f'<span class="{" ".join(kinds)}" style="{style}">{100 * share:.0f}</span>'


def _strip(example: Example) -> str:
    """The segments side by side, as the URL of an image."""
    if "windows" in example:
        kind, data = "svg+xml", _drawn(np.array(example["windows"])).encode()
    else:  # decoded, as nothing but an image may stand here
        data = base64.b64decode(example["tiles"], validate=True)
        kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _drawn(windows: np.ndarray) -> str:
    """(m, channels, steps) as SVG: a line a channel; all windows have one scale."""
    m, _, steps = windows.shape
    width, height = _WINDOW
    across = np.linspace(3, width - 3, steps)
    down = 3 + (height - 6) * (windows.max() - windows) / (np.ptp(windows) or 1)
    lines = []
    for place, channels in enumerate(down):
        for colour, values in zip(cycle(_COLOURS), channels):
            points = " ".join(
                f"{place * width + x:.1f},{y:.1f}" for x, y in zip(across, values, strict=True)
            )
            lines.append(f'<polyline points="{points}" stroke="{colour}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {m * width} {height}" '
        f'preserveAspectRatio="none" fill="none" stroke-width="1">{"".join(lines)}</svg>'
    )
