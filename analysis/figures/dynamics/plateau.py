"""How many times as long as lvml the other paradigms take to leave the plateau, beside theory."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis.figures.responses import logarithmic
from analysis.figures.style import (
    GREY,
    MARKER_SIZE,
    WIDTH,
    by_paradigm,
    dress,
    foot,
    line_styles,
    own_settings,
    shared_legend,
)
from analysis.words import level, span
from study.terminal import counted

_PANEL_WIDTH, _HEIGHT, _BESIDE = 2.4, 3.4, 0.9
"""Inches of a panel, of the figure, and of what stands beside the panels."""

_SHIFT = 1.04
"""Factor on m by which the marks of two paradigms stand apart."""


@own_settings()
def plateau_figure(table: pd.DataFrame, confidence: float) -> Figure:
    """A panel a number of classes: the ratio against m, with its interval, theory dotted.

    Args:
        table: as `analysis.comparison.across.plateau.plateaus` gives it, of one setting or more
            for each (m, C).
        confidence: of the intervals, in (0, 1).

    Raises:
        ValueError: `table` is empty.
    """
    if table.empty:
        raise ValueError("table must hold at least one setting, got none")
    classes = sorted(table["num_classes"].unique())
    width = max(WIDTH, _BESIDE + _PANEL_WIDTH * len(classes))
    figure = Figure(figsize=(width, _HEIGHT), layout="constrained")
    panels = figure.subplots(1, len(classes), squeeze=False, sharey=True)[0]
    for axes, count in zip(panels, classes, strict=True):
        _draw(axes, table[table["num_classes"] == count])
        label = "times as long as lvml" if axes is panels[0] else ""
        dress(axes, f"segments m, {count} classes", label)
    shared_legend(figure, panels, by_paradigm(table))
    foot(
        figure,
        "until half of log C; geometric mean over "
        f"n={counted(span(table['num_seeds']), 'seed')}, bar: {level(confidence)} interval; "
        "dotted: the linear orthogonal setting",
    )
    return figure


def _draw(axes: Axes, rows: pd.DataFrame) -> None:
    axes.axhline(1, color=GREY, linewidth=1)
    lines = by_paradigm(rows)
    for i, (name, style) in enumerate(line_styles(lines).items()):
        line = lines[name].sort_values("m")
        axes.plot(line["m"], line["theory"], color=style.colour, linestyle=":", linewidth=1.4)
        axes.errorbar(
            line["m"] * _SHIFT ** (2 * i - 1),
            line["ratio"],
            yerr=np.stack([line["ratio"] - line["low"], line["high"] - line["ratio"]]),
            color=style.colour,
            linestyle="none",
            marker=style.marker,
            markersize=MARKER_SIZE,
            elinewidth=1.1,
            label=name,
        )
    logarithmic(axes, rows["m"].to_numpy(float))
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
