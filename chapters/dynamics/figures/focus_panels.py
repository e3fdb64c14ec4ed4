"""Figures 2 and 3 of the paper, and the incentive against alpha (sections 3.1 and 3.2).

Axes are linear, to show which losses come down to 0 and which flatten above it. On a logarithmic
axis, the two of three panels that flatten would be a strip at the top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

_CLOSED_FORM: dict[str, Any] = {"color": BLACK, "linestyle": (0, (3.2, 2.0)), "linewidth": 0.9}
_FLOOR: dict[str, Any] = {"color": GREY, "linestyle": (0, (1.0, 1.6)), "linewidth": 1.3}


@dataclass(frozen=True, eq=False)
class Row:
    """What one row of panels shows, a panel a paradigm.

    Attributes:
        name: name of the setting.
        x_label: label of the horizontal axis.
        lines: one row a point: `paradigm`, `line` (what the legend names), `x`, `mean`, `low`,
            `high`; without an interval where the bounds are NaN.
        closed_form: `paradigm`, `line`, `x`, `mean`, dashed over the lines; may be empty.
        floors: `paradigm`, `line`, `floor`, dotted and horizontal; may be empty.
    """

    name: str
    x_label: str
    lines: pd.DataFrame
    closed_form: pd.DataFrame
    floors: pd.DataFrame


@own_settings()
def panels_figure(rows: Sequence[Row], y_label: str, band: bool = True) -> Figure:
    """A quantity against time or alpha: a row of panels a setting, a column a paradigm.

    Args:
        rows: at least one.
        y_label: the quantity with its unit.
        band: whether intervals are a band, else a bar each.
    """
    height = _BESIDE_ROWS + _ROW_HEIGHT * len(rows)
    figure = Figure(figsize=(_WIDTH, height))
    panels = figure.subplots(len(rows), len(PARADIGMS), sharex="row", sharey="row", squeeze=False)
    names = list(dict.fromkeys(name for row in rows for name in row.lines["line"]))
    styles = dict(zip(names, ordered_styles(len(names)), strict=True))
    letters = iter(ascii_lowercase)
    for row, axes_of_row in zip(rows, panels, strict=True):
        for paradigm, axes in zip(PARADIGMS, axes_of_row, strict=True):
            _panel(axes, row, paradigm, styles, band)
            y = f"{row.name}\n{y_label}" if axes is axes_of_row[0] else ""
            label(axes, row.x_label, y, f"({next(letters)}) {paradigm}", loc="left")
        _limit(axes_of_row[0], row)
    entries = {
        name: Line2D([], [], color=s.colour, marker=s.marker, markersize=4, linewidth=1.6)
        for name, s in styles.items()
    }
    if any(len(row.closed_form) for row in rows):
        entries["closed form"] = Line2D([], [], **_CLOSED_FORM)
    if any(len(row.floors) for row in rows):
        entries["floor"] = Line2D([], [], **_FLOOR)
    legend_above(figure, entries)
    return figure


def ordered_styles(count: int) -> list[LineStyle]:
    """Styles from light to dark: colours with a visible order, and a marker each."""
    places = np.linspace(_LIGHTEST, _DARKEST, count) if count > 1 else [_DARKEST]
    colours = [to_hex(mpl.colormaps["viridis"](place)) for place in places]
    return [
        LineStyle(colour, "-", _MARKERS[i % len(_MARKERS)]) for i, colour in enumerate(colours)
    ]


def _panel(
    axes: Axes, row: Row, paradigm: str, styles: Mapping[str, LineStyle], band: bool
) -> None:
    lines, closed_form, floors = (
        table[table["paradigm"] == paradigm] for table in (row.lines, row.closed_form, row.floors)
    )
    axes.axhline(0, color=GREY, linewidth=0.7, zorder=1)
    for name, style in styles.items():
        for floor in floors.loc[floors["line"] == name, "floor"]:
            axes.axhline(floor, zorder=1.5, **_FLOOR | {"color": style.colour})
        line = lines[lines["line"] == name]
        if len(line):
            draw(axes, line, style, name, band=band, size=4.0, most=_MARKS)
        closed = closed_form[closed_form["line"] == name]
        axes.plot(closed["x"], closed["mean"], zorder=4, **_CLOSED_FORM)
    if lines.empty:
        centre: dict[str, Any] = {"transform": axes.transAxes, "ha": "center"}
        axes.text(0.5, 0.5, "no cells", color=GREY, fontsize=SMALL, **centre)


def _limit(axes: Axes, row: Row) -> None:
    """Limits y to the means, with some room: intervals of two seeds may be far wider."""
    values = np.concatenate([row.lines["mean"], row.closed_form["mean"], row.floors["floor"], [0]])
    low, high = np.nanmin(values.astype(float)), np.nanmax(values.astype(float))
    room = _ROOM * (high - low) or 1.0
    now = axes.get_ylim()
    axes.set_ylim(max(now[0], low - room), min(now[1], high + room))
