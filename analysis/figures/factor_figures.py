"""What settings change: scores against each factor, and a difference over a grid of two."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis.figures.marks import draw, draw_tiles, side_by_side
from analysis.figures.response_figures import logarithmic
from analysis.figures.style import (
    BLACK,
    BLUE,
    GREY,
    SMALL,
    TEXT,
    VERMILION,
    WIDTH,
    by_paradigm,
    label,
    limit_shares,
    line_styles,
    metric_label,
    own_settings,
    shared_legend,
)
from analysis.words import points

_MOST_COLUMNS = 4
_PANEL_WIDTH, _PANEL_HEIGHT, _BESIDE = 2.5, 2.0, 1.1
"""Inches of a panel, and of what stands beside or above all of them."""

_LOGARITHMIC_FROM = 4
"""Ratio of the largest value to the smallest above which an axis is logarithmic."""

_PALE = 1.8  # so much stronger than the largest difference would be the full colour
_CELL, _LETTERS = 0.95, 15  # inches of a cell of a grid, and letters that it has room for


@own_settings()
def factors_figure(levels: pd.DataFrame, threshold: float | None = None, task: str = "") -> Figure:
    """A panel a factor, SAIF above accuracy, a line a paradigm with bars for its interval.

    Factors whose values are numbers have an axis of numbers, the others one of names, on which
    marks are not joined. The base is on a vertical line in each panel.

    Args:
        levels: one row a (factor, value, paradigm, metric), in the order of factors and values:
            `factor` (label of the axis), `value` (numbers or names), `base` (whether it is that
            of the base), `paradigm`, `metric`, `mean`, `low`, `high` (fractions; bounds NaN where
            there is no interval), `num_seeds`.
        threshold: of SAIF, for the label; None: the task's own.
        task: of all of them; empty: of mosaics.
    """
    factors, metrics = (list(dict.fromkeys(levels[name])) for name in ("factor", "metric"))
    columns = min(len(factors), _MOST_COLUMNS)
    bands = math.ceil(len(factors) / columns)
    width = max(WIDTH, _BESIDE + _PANEL_WIDTH * columns)
    size = (width, _BESIDE + _PANEL_HEIGHT * len(metrics) * bands)
    figure = Figure(figsize=size)
    panels = figure.subplots(len(metrics) * bands, columns, squeeze=False)
    for place in range(bands * columns):
        band, column = divmod(place, columns)
        for row, metric in enumerate(metrics, start=len(metrics) * band):
            axes = panels[row, column]
            if place >= len(factors):
                axes.remove()
                continue
            mine = levels[levels["metric"] == metric]
            _draw_factor(axes, mine[mine["factor"] == factors[place]])
            limit_shares(axes, *_reach(mine))
            y = metric_label(metric, threshold, task) if column == 0 else ""
            label(axes, factors[place] if metric == metrics[-1] else "", y)
    shared_legend(figure, figure.axes, by_paradigm(levels))
    return figure


@own_settings()
def grid_figure(
    grid: pd.DataFrame,
    rows: tuple[str, Sequence[str]],
    columns: tuple[str, Sequence[str]],
    what: str,
) -> Figure:
    """A difference of two paradigms over a grid of two factors, as a matrix with its numbers.

    Args:
        grid: one row a setting: `row` and `column` (values of the two factors), `base` (whether
            it is the base), `difference` (a fraction; NaN: not known) and `verdict` (better,
            worse or undecided).
            Combinations that are not there stay empty.
        rows: name of the factor that the rows are of, and its values from below.
        columns: name of the other, and its values.
        what: the difference is, with its unit.
    """
    (row_name, of_rows), (column_name, of_columns) = rows, columns
    size = (1.6 + _CELL * len(of_columns), 1.4 + 0.6 * _CELL * len(of_rows))
    figure = Figure(figsize=size)
    axes = figure.subplots()
    axes.grid(False)
    axes.spines[:].set_visible(True)
    strongest = _PALE * max(0.01, float(grid["difference"].abs().max()))  # NaN: none is known
    places, colours, says = [], [], []
    for setting in grid.to_dict("records"):
        y, x = of_rows.index(setting["row"]), of_columns.index(setting["column"])
        difference, decided = setting["difference"], setting["verdict"] != "undecided"
        places.append((x, y))
        strength = float(np.nan_to_num(abs(difference) / strongest))
        colours.append(to_rgba(BLUE if difference > 0 else VERMILION, strength))
        says.append(
            f"{column_name} {setting['column']}, {row_name} {setting['row']}: "
            f"{points(difference)} points, {setting['verdict']}"
        )
        axes.text(
            x + 0.5,
            y + 0.5,
            points(difference) + ("" if decided else "\nundecided"),
            ha="center",
            va="center",
            fontsize=TEXT if decided else SMALL,
            fontweight="bold" if decided else "normal",
            color=BLACK if decided else GREY,
        )
        if setting["base"]:
            axes.add_patch(Rectangle((x, y), 1, 1, fill=False, linewidth=2, zorder=3))
    draw_tiles(axes, places, colours, says)
    axes.set(xlim=(0, len(of_columns)), ylim=(0, len(of_rows)))
    axes.tick_params(length=0)
    for axis, values in ((axes.xaxis, of_columns), (axes.yaxis, of_rows)):
        names = [textwrap.fill(value, _LETTERS) for value in values]
        axis.set_ticks(np.arange(len(names)) + 0.5, names, parse_math=False)
    label(axes, column_name, row_name, what)
    return figure


def _draw_factor(axes: Axes, rows: pd.DataFrame) -> None:
    """One metric against one factor."""
    values = list(dict.fromkeys(rows["value"]))
    names = [value for value in values if isinstance(value, str)]
    places = {value: i if names else value for i, value in enumerate(values)}
    for value in dict.fromkeys(rows.loc[rows["base"], "value"]):
        axes.axvline(places[value], color=GREY, linestyle=":", linewidth=1.2, label="base")
    rows = rows.assign(at=rows["value"], x=rows["value"].map(places).astype(float))
    ends = ["mean", "low", "high"]
    rows[ends] = 100 * rows[ends]
    known = np.sort([float(place) for place in places.values()])
    low, high = known[[0, -1]]
    wide = not names and 0 < _LOGARITHMIC_FROM * low < high
    lines = by_paradigm(side_by_side(rows.reset_index(drop=True), wide, bool(names)))
    for name, style in line_styles(lines).items():
        draw(axes, lines[name], style, name, joined=not names, unit=" %")
    if names:
        axes.set_xticks(range(len(names)), names, parse_math=False)
        axes.set_xlim(-0.5, len(names) - 0.5)
    elif wide:
        logarithmic(axes, known)
    else:
        axes.set_xticks(known, [f"{value:g}" for value in known])
        beside = 0.1 * (high - low) or 1.0
        axes.set_xlim(low - beside, high + beside)


def _reach(rows: pd.DataFrame) -> tuple[float, float]:
    """Of a metric, in per cent: the same in all panels, so that factors can be compared."""
    reach = 100 * rows[["mean", "low", "high"]].to_numpy(float)
    return (0.0, 100.0) if np.isnan(reach).all() else (np.nanmin(reach), np.nanmax(reach))
