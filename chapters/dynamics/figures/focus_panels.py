"""Figures 2 and 3 of the paper, and the incentive against alpha (sections 3.1 and 3.2).

Axes are linear, to show which losses come down to 0 and which flatten above it. On a logarithmic
axis, the two of three panels that flatten would be a strip at the top.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures.marks import draw
from analysis.figures.style import (
    BLACK,
    GREY,
    SMALL,
    LineStyle,
    label,
    legend_above,
    own_settings,
)
from analysis.groups import PARADIGMS

_WIDTH, _ROW_HEIGHT, _BESIDE_ROWS = 9.0, 2.4, 0.95
"""Inches."""

_LIGHTEST, _DARKEST = 0.86, 0.3
"""Of the colour map, which is even to the eye, in grey and for colour-blind readers: what is
beyond is too light on white, or too dark on black."""

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_MARKS = 6
"""Markers along a line: they tell lines apart where colour does not."""

_ROOM = 0.15
"""Of the range of the means, above and below them."""

_LOOKS: Mapping[str, dict[str, Any]] = {
    "closed form": {"color": BLACK, "linestyle": (0, (3.2, 2.0)), "linewidth": 0.9},
    "floor": {"color": GREY, "linestyle": (0, (1.0, 1.6)), "linewidth": 1.3},
}


@own_settings()
def panels_figure(
    lines: pd.DataFrame, y_label: str, x_labels: Mapping[str, str], band: bool = True
) -> Figure:
    """A quantity against time or alpha: a row of panels per setting, a column per paradigm.

    Args:
        lines: one row per point: `setting`, `paradigm`, `line` (what the legend names), `x`,
            `mean`, `low` and `high`, without an interval where the bounds are NaN; `what`:
            ``measured``; ``closed form``, dashed over it; or ``floor``, dotted and horizontal.
        y_label: the quantity with its unit.
        x_labels: setting -> label of its horizontal axis, in the order of the rows.
        band: whether intervals are a band, else a bar each.
    """
    height = _BESIDE_ROWS + _ROW_HEIGHT * len(x_labels)
    figure = Figure(figsize=(_WIDTH, height))
    shape = len(x_labels), len(PARADIGMS)
    panels = figure.subplots(*shape, sharex="row", sharey="row", squeeze=False)
    measured = lines[lines["what"] == "measured"]
    names = [*dict.fromkeys(measured["line"])]
    styles = dict(zip(names, ordered_styles(len(names)), strict=True))
    letters = iter(ascii_lowercase)
    for (setting, x_label), axes_of_row in zip(x_labels.items(), panels, strict=True):
        row = lines[lines["setting"] == setting]
        for paradigm, axes in zip(PARADIGMS, axes_of_row, strict=True):
            _panel(axes, row[row["paradigm"] == paradigm], styles, band)
            y = f"{setting}\n{y_label}" if axes is axes_of_row[0] else ""
            label(axes, x_label, y, f"({next(letters)}) {paradigm}", loc="left")
        _limit(axes_of_row[0], row["mean"])
    entries = {
        name: Line2D([], [], color=s.colour, marker=s.marker, markersize=4, linewidth=1.6)
        for name, s in styles.items()
    }
    there = {name: look for name, look in _LOOKS.items() if lines["what"].eq(name).any()}
    legend_above(figure, entries | {name: Line2D([], [], **look) for name, look in there.items()})
    return figure


def ordered_styles(count: int) -> list[LineStyle]:
    """Styles from light to dark: colours with a visible order, and a marker each."""
    places = np.linspace(_LIGHTEST, _DARKEST, count) if count > 1 else [_DARKEST]
    colours = [to_hex(mpl.colormaps["viridis"](place)) for place in places]
    return [
        LineStyle(colour, "-", _MARKERS[i % len(_MARKERS)]) for i, colour in enumerate(colours)
    ]


def _panel(axes: Axes, rows: pd.DataFrame, styles: Mapping[str, LineStyle], band: bool) -> None:
    axes.axhline(0, color=GREY, linewidth=0.7, zorder=1)
    for key, line in rows.groupby(["line", "what"], sort=False):
        name, what = map(str, key)
        style = styles[name]
        if what == "measured":
            draw(axes, line, style, name, band=band, size=4.0, most=_MARKS)
        elif what == "floor":
            axes.axhline(
                line["mean"].iloc[0], zorder=1.5, **_LOOKS[what] | {"color": style.colour}
            )
        else:
            axes.plot(line["x"], line["mean"], zorder=4, **_LOOKS[what])
    if rows.empty:
        centre: dict[str, Any] = {"transform": axes.transAxes, "ha": "center"}
        axes.text(0.5, 0.5, "no cells", color=GREY, fontsize=SMALL, **centre)


def _limit(axes: Axes, means: pd.Series) -> None:
    """Limits y to the means, with some room: intervals of two seeds may be far wider."""
    values = [*means, 0.0]
    low, high = np.nanmin(values), np.nanmax(values)
    room = _ROOM * (high - low) or 1.0
    now = axes.get_ylim()
    axes.set_ylim(max(now[0], low - room), min(now[1], high + room))
