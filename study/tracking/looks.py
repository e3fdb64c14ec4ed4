"""Inputs as HTML, and where models look in them: tiles, windows or words. All text is escaped."""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping, Sequence
from html import escape
from itertools import cycle
from pathlib import Path
from typing import NotRequired, TypedDict

import jinja2
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

    Of an input that a person asks about, `input` stands for label and foreground.

    Attributes:
        tiles: an image file (PNG or JPEG) in base64: the m tiles side by side.
        windows: of each window, of each channel, its values.
        words: of the post.
        attention: on each segment.
        foreground: the true segments, by their places.
        label: the true class.
        input: its file or number.
        across: tiles side by side, if they are of one picture.
        predicted: the class of highest score.
        score: its probability.
    """

    tiles: NotRequired[str]
    windows: NotRequired[list[list[list[float]]]]
    words: NotRequired[list[str]]
    attention: list[float]
    foreground: list[int]
    label: NotRequired[str]
    input: NotRequired[str | int]
    across: NotRequired[int]
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
    template = environment().get_template("looks.j2")
    return template.render(names=[*examples], inputs=inputs, count=count, style=_style)


def looks_page(examples: Sequence[Example], title: str, warning: str) -> str:
    """A page of its own with where one model looks."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>:root {{ color-scheme: light dark; "
        f"font: 1rem/1.5 system-ui, sans-serif; }}{STYLE}</style></head><body>"
        f"<p>{escape(warning)}</p>{looks_html({title: examples})}</body></html>\n"
    )


@functools.cache
def environment() -> jinja2.Environment:
    """The templates of this package, in which values are escaped."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _style(example: Example) -> str:
    """Of a row: its segments side by side, how many they are, and how wide."""
    if "words" in example:
        return ""
    m = len(example["attention"])
    across = example.get("across", min(m, _ACROSS))
    width = _WINDOW[0] / _WINDOW[1] if "windows" in example else 1
    return f"--s:url({_strip(example)});--m:{m};--n:{across};--w:{width:g}"


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
