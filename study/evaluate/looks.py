"""Inputs as HTML, and where models look in them: tiles, windows or words. All text is escaped."""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import cycle
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

OPEN_LINES = 4
"""Lines of tiles, or posts, that are seen at once; further inputs are folded."""

STYLE = """
.looks th, .looks td { text-align: left; vertical-align: top; white-space: normal;
  padding: .3rem .5rem; }
.looks tbody th { background: none; }
.looks span, .looks span::before { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.tiles { --t: 2rem; display: grid; grid-template-columns: repeat(var(--n), auto); gap: .5rem;
  justify-content: start; padding: .4rem .4rem 0; }
.tiles span { font-size: .75rem; line-height: 1.25; text-align: center; }
.tiles .none { color: #8a919d; }
.tiles span::before { content: ""; display: block; margin-bottom: .4rem;
  width: calc(var(--w) * var(--t)); height: var(--t);
  background: #ffffff var(--s) var(--x) 0 / calc(var(--m) * 100%) 100%;
  box-shadow: 0 0 0 calc(var(--a) * .4rem) #d55e00; }
.tiles .true { border-bottom: 3px solid #009e73; }
.post { min-width: 15rem; line-height: 1.7; }
.post span { padding: .1rem .15rem; border-radius: .2rem; background: rgb(86 180 233 / var(--d)); }
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
        tiles: an image file (PNG or JPEG) in base64: the m tiles side by side.
        windows: of each window, of each channel, its values.
        words: of the post.
        attention: on each segment.
        foreground: the true segments, by their places.
        label: the true class.
        predicted: the class of highest score.
        score: its probability.
    """

    tiles: NotRequired[str]
    windows: NotRequired[list[list[list[float]]]]
    words: NotRequired[list[str]]
    attention: list[float]
    foreground: list[int]
    label: str
    predicted: str
    score: float


def looks_html(examples: Mapping[str, Sequence[Example]]) -> str:
    """A table: a row an input, a column a name.

    Args:
        examples: name -> where it looks, e.g. a paradigm; of the same inputs in the same order,
            some maybe of fewer.
    """
    inputs = [*zip(*examples.values(), strict=False)]
    lines = max(-(-len(each["attention"]) // _ACROSS) for each in next(iter(examples.values())))
    count = OPEN_LINES if "words" in inputs[0][0] else max(1, OPEN_LINES // lines)
    table = functools.partial(_table, examples)
    if len(inputs) <= count:
        return table(inputs)
    more = f"<details><summary>{len(inputs) - count} more</summary>{table(inputs[count:])}"
    return f"{table(inputs[:count])}{more}</details>"


def looks_page(examples: Sequence[Example], title: str, warning: str) -> str:
    """A page of its own with where one model looks."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>:root {{ color-scheme: light dark; "
        f"font: 1rem/1.5 system-ui, sans-serif; }}{STYLE}</style></head><body>"
        f"<p>{escape(warning)}</p>{looks_html({title: examples})}</body></html>\n"
    )


def _table(names: Iterable[str], inputs: Sequence[Sequence[Example]]) -> str:
    header = "".join(f"<th>{escape(name)}</th>" for name in ("class", *names))
    return (
        f'<div class="scroll looks" tabindex="0"><table><thead><tr>{header}</tr></thead>'
        f"<tbody>{''.join(map(_row, inputs))}</tbody></table></div>"
    )


def _row(of_each: Sequence[Example]) -> str:
    first = of_each[0]
    style = ""  # inherited by the tiles, so that an image stands on the page once
    if "words" not in first:
        m = len(first["attention"])
        width = _WINDOW[0] / _WINDOW[1] if "windows" in first else 1
        style = f"--s:url({_strip(first)});--m:{m};--n:{min(m, _ACROSS)};--w:{width:g}"
    cells = "".join(map(_cell, of_each))
    return f'<tr style="{style}"><th>{escape(first["label"])}</th>{cells}</tr>\n'


def _cell(example: Example) -> str:
    right = example["predicted"] == example["label"]
    verdict = "right" if right else '<span class="wrong">wrong</span>'
    return (
        f'<td><div class="{"post" if "words" in example else "tiles"}">'
        f"{' '.join(_segments(example))}</div>"
        f'<p class="said">{escape(example["predicted"])}, {100 * example["score"]:.0f} %: '
        f"{verdict}</p></td>"
    )


def _segments(example: Example) -> Iterator[str]:
    """Words, or the numbers below tiles. Shades go by the square root: a small share is seen."""
    shares = example["attention"]
    texts = example.get("words") or [f"{100 * share:.0f}" for share in shares]
    for place, (text, share) in enumerate(zip(texts, shares, strict=True)):
        kinds = ["dark"] * (share > 0.36) + ["none"] * (share < 0.01)
        kinds += ["true"] * (place in example["foreground"])
        across = 100 * place / max(1, len(shares) - 1)
        style = f"--x:{across:.4g}%;--a:{share:.2f};--d:{share**0.5:.2f}"
        how = f'class="{" ".join(kinds)}" style="{style}" title="{100 * share:.0f} %"'
        yield f"<span {how}>{escape(text)}</span>"


def _strip(example: Example) -> str:
    """The segments side by side, as the URL of an image."""
    if "windows" in example:
        kind, data = "svg+xml", _drawn(np.array(example["windows"])).encode()
    else:  # decoded, as nothing but an image may stand here
        data = base64.b64decode(example["tiles"], validate=True)
        kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _drawn(windows: NDArray[np.float64]) -> str:
    """(m, channels, steps) as SVG: a line a channel; all windows have one scale."""
    m, _, steps = windows.shape
    width, height = _WINDOW
    down = 3 + (height - 6) * (windows.max() - windows) / (np.ptp(windows) or 1)
    lines = []
    for place, channels in enumerate(down):
        across = place * width + np.linspace(3, width - 3, steps)
        for colour, values in zip(cycle(_COLOURS), channels, strict=False):
            ends = np.stack([across, values], axis=1).round(1).ravel().tolist()
            points = " ".join(map(str, ends))
            lines.append(f'<polyline points="{points}" stroke="{colour}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {m * width} {height}" '
        f'preserveAspectRatio="none" fill="none">{"".join(lines)}</svg>'
    )
