"""What settings change: scores against each factor, and a difference over a grid of two."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.transforms import offset_copy
from numpy.typing import NDArray

from analysis.figures.responses import logarithmic
from analysis.figures.style import (
    BLACK,
    BLUE,
    GREY,
    MARKER_SIZE,
    SMALL,
    TEXT,
    VERMILION,
    WIDTH,
    by_paradigm,
    dress,
    foot,
    line_styles,
    metric_label,
    own_settings,
    shared_legend,
)
from analysis.words import level, points, span
from study.terminal import counted

_MOST_COLUMNS = 4
_PANEL_WIDTH, _PANEL_HEIGHT, _BESIDE = 2.5, 2.0, 1.1
"""Inches of a panel, and of what stands beside or above all of them."""

_LOGARITHMIC_FROM = 4
"""Ratio of the largest value to the smallest above which an axis is logarithmic."""

_APART = 4.0  # points between the marks of two paradigms at one value
_MARGIN = 0.06  # of the range of a metric, above and below
_PALE = 1.8  # so much stronger than the largest difference would be the full colour
_CELL = 0.95  # inches of a cell of a grid
_COLOURS = LinearSegmentedColormap.from_list("differences", [VERMILION, "white", BLUE])


@own_settings()
def factors_figure(
    levels: pd.DataFrame, confidence: float, threshold: float | None = None, task: str = ""
) -> Figure:
    """A panel a factor, SAIF above accuracy, a line a paradigm with bars for its interval.

    Factors whose values are numbers have an axis of numbers, the others one of names, on which
    marks are not joined. The base is on a vertical line in each panel.

    Args:
        levels: one row a (factor, value, paradigm, metric), in the order of factors and values:
            `factor` (label of the axis), `value` (numbers or names), `base` (whether it is that
            of the base), `paradigm`, `metric`, `mean`, `low`, `high` (fractions; bounds NaN where
            there is no interval), `num_seeds`.
        confidence: of the intervals, in (0, 1).
        threshold: of SAIF, for the label; None: the task's own.
        task: of all of them; empty: of mosaics.

    Raises:
        ValueError: `levels` is empty.
    """
    if levels.empty:
        raise ValueError("levels must hold at least one value of a factor, got none")
    factors, metrics = (list(dict.fromkeys(levels[name])) for name in ("factor", "metric"))
    columns = min(len(factors), _MOST_COLUMNS)
    bands = math.ceil(len(factors) / columns)
    width = max(WIDTH, _BESIDE + _PANEL_WIDTH * columns)
    size = (width, _BESIDE + _PANEL_HEIGHT * len(metrics) * bands)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(metrics) * bands, columns, squeeze=False)
    for place in range(bands * columns):
        band, column = divmod(place, columns)
        for row, metric in enumerate(metrics, start=len(metrics) * band):
            axes = panels[row, column]
            if place >= len(factors):
                axes.remove()
                continue
            mine = levels[levels["metric"] == metric]
            _draw_factor(figure, axes, mine[mine["factor"] == factors[place]])
            axes.set_ylim(*_limits(mine))
            label = metric_label(metric, threshold, task) if column == 0 else ""
            dress(axes, factors[place] if metric == metrics[-1] else "", label)
    shared_legend(figure, figure.axes, by_paradigm(levels))
    foot(
        figure,
        "test split; in each panel all else as at the base; mean over "
        f"n={counted(span(levels['num_seeds']), 'seed')}, bar: {level(confidence)} interval",
    )
    return figure


@own_settings()
def grid_figure(
    grid: pd.DataFrame,
    rows: tuple[str, Sequence[str]],
    columns: tuple[str, Sequence[str]],
    label: str,
) -> Figure:
    """A difference of two paradigms over a grid of two factors, as a matrix with its numbers.

    Args:
        grid: one row a setting: `row` and `column` (values of the two factors), `base` (whether
            it is the base), `difference` (a fraction) and `verdict` (better, worse or undecided).
            Combinations that are not there stay empty.
        rows: name of the factor that the rows are of, and its values from below.
        columns: name of the other, and its values.
        label: what the difference is, with its unit.

    Raises:
        ValueError: `grid` is empty.
    """
    if grid.empty:
        raise ValueError("grid must hold at least one setting, got none")
    (row_name, of_rows), (column_name, of_columns) = rows, columns
    size = (1.6 + _CELL * len(of_columns), 1.4 + 0.6 * _CELL * len(of_rows))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    matrix = np.full((len(of_rows), len(of_columns)), np.nan)
    for setting in grid.to_dict("records"):
        y, x = of_rows.index(setting["row"]), of_columns.index(setting["column"])
        matrix[y, x] = setting["difference"]
        decided = setting["verdict"] != "undecided"
        axes.text(
            x,
            y,
            points(setting["difference"]) + ("" if decided else "\nundecided"),
            ha="center",
            va="center",
            fontsize=TEXT if decided else SMALL,
            fontweight="bold" if decided else "normal",
            color=BLACK if decided else GREY,
        )
        if setting["base"]:
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, linewidth=2, zorder=3))
    strongest = _PALE * float(np.nanmax(np.abs(matrix), initial=0.01))
    axes.imshow(
        matrix, cmap=_COLOURS, vmin=-strongest, vmax=strongest, aspect="auto", origin="lower"
    )
    axes.set_xticks(range(len(of_columns)), of_columns, fontsize=SMALL, parse_math=False)
    axes.set_yticks(range(len(of_rows)), of_rows, fontsize=SMALL, parse_math=False)
    axes.set_xlabel(column_name, fontsize=TEXT, parse_math=False)
    axes.set_ylabel(row_name, fontsize=TEXT, parse_math=False)
    axes.set_title(label, fontsize=TEXT, parse_math=False)
    foot(figure, "test split; bold: decided; outlined: the base")
    return figure


def _draw_factor(figure: Figure, axes: Axes, rows: pd.DataFrame) -> None:
    """One metric against one factor."""
    values = list(dict.fromkeys(rows["value"]))
    names = [str(value) for value in values if isinstance(value, str)]
    places = {value: i if names else value for i, value in enumerate(values)}
    for value in dict.fromkeys(rows.loc[rows["base"], "value"]):
        axes.axvline(places[value], color=GREY, linestyle=":", linewidth=1.2, label="base")
    lines = by_paradigm(rows)
    middle = (len(lines) - 1) / 2
    for i, (name, style) in enumerate(line_styles(lines).items()):
        line = lines[name]
        axes.errorbar(
            [places[value] for value in line["value"]],
            100 * line["mean"],
            yerr=100 * np.stack([line["mean"] - line["low"], line["high"] - line["mean"]]),
            color=style.colour,
            linestyle="none" if names else style.dashes,
            linewidth=1.4,
            elinewidth=1.1,
            marker=style.marker,
            markersize=MARKER_SIZE,
            label=name,
            # Shifted on paper and not in the data, so that intervals stand side by side.
            transform=offset_copy(axes.transData, figure, x=(i - middle) * _APART, units="points"),
        )
    if names:
        axes.set_xticks(range(len(names)), names, parse_math=False)
        axes.set_xlim(-0.5, len(names) - 0.5)
    else:
        _number_axis(axes, np.array(sorted(places), dtype=np.float64))


def _number_axis(axes: Axes, values: NDArray[np.float64]) -> None:
    """An axis with ticks at the values; logarithmic where they are of different size."""
    low, high = float(values[0]), float(values[-1])
    if low > 0 and high > _LOGARITHMIC_FROM * low:
        logarithmic(axes, values)
        return
    axes.set_xticks(values, [f"{value:g}" for value in values])
    beside = 0.1 * (high - low) or 1.0
    axes.set_xlim(low - beside, high + beside)


def _limits(rows: pd.DataFrame) -> tuple[float, float]:
    """Of a metric, in per cent: the same in all panels, so that factors can be compared."""
    reach = 100 * rows[["mean", "low", "high"]].to_numpy(float)
    if np.isnan(reach).all():
        return 0.0, 100.0
    low, high = float(np.nanmin(reach)), float(np.nanmax(reach))
    margin = _MARGIN * (high - low) or 1.0
    return max(low - margin, -2.0), min(high + margin, 102.0)
