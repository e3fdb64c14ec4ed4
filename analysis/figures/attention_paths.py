"""Figures of attention paths: figure 2 of the paper (c to e), and what their interplay brings.

Theory is blue, what was sampled is black, the limit of infinite width is vermilion, and what
gradient descent trained is green.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from analysis.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    SMALL,
    TEXT,
    VERMILION,
    LineStyle,
    dress,
    finished,
    foot,
    own_settings,
    panel,
    shared_legend,
)

_MARKER_SIZE = 5.5
_ROOM = 1.25
"""Factor on N beyond the smallest and the largest width."""

_BESIDE_LINE = 1.1
"""Factor on N that moves sampled points off the line, so that both bars are seen."""

_LINE = LineStyle(BLUE, "-", "x")
_DROPPED = LineStyle(GREY, "--", "v")
_POINTS = LineStyle(BLACK, "", "o")
_LIMITS = ("-", (0, (5.0, 2.0)), (0, (1.0, 1.6)), (0, (5.0, 1.5, 1.0, 1.5)))
_TRAINED = tuple(reversed(_LIMITS))

_SIDE, _BESIDE, _ABOVE = 0.95, 1.6, 0.75
"""Inches of a matrix with the gap to the next, and of what stands beside and above them all."""

_LABEL = 0.12
"""Inches that a label of the colour bar takes."""

_NAME, _MOST_NAMES = 0.11, 16
"""Inches that the name of a path takes, and how many of them a matrix has room for."""

_TINY = 6.5
_COLOURS = "RdBu_r"


@dataclass(frozen=True, eq=False)
class Series:
    """Values of a measure with their intervals.

    Attributes:
        name: in the legend.
        table: one row a point: `x`, `mean`, `low` and `high`; bounds NaN: no interval.
    """

    name: str
    table: pd.DataFrame


@own_settings()
def accuracy_figure(
    theory: Series | None,
    sampled: Series | None,
    limits: Mapping[str, float],
    note: str,
    trained: Mapping[str, float] = MappingProxyType({}),
) -> Figure:
    """Accuracy against the width: theory as a line, samples as points, limits as lines across.

    Args:
        theory, sampled: their networks, if any.
        limits: name -> accuracy in %.
        note: below the panel.
        trained: the same of networks that gradient descent trained.
    """
    figure, axes = panel()
    if theory:
        _points(axes, theory, _LINE)
    if sampled:
        _points(axes, sampled, _POINTS, _BESIDE_LINE)
    for (name, value), dashes in zip(limits.items(), _LIMITS, strict=False):
        axes.axhline(value, color=VERMILION, linestyle=dashes, linewidth=1.4, label=name, zorder=1)
    for (name, value), dashes in zip(trained.items(), _TRAINED, strict=False):
        axes.axhline(value, color=GREEN, linestyle=dashes, linewidth=1.4, label=name, zorder=1)
    _widths(axes, [each for each in (theory, sampled) if each])
    return finished(figure, "width N", "accuracy (%)", note)


@own_settings()
def interplay_figure(whole: Series, dropped: Series, note: str) -> Figure:
    """Accuracy against the width with the whole order parameter, and with its diagonal alone.

    Args:
        whole, dropped: of the same networks.
        note: below the panel.
    """
    figure, axes = panel()
    _points(axes, whole, _LINE)
    _points(axes, dropped, _DROPPED)
    x = whole.table["x"].to_numpy()
    lower, upper = dropped.table["mean"].to_numpy(), whole.table["mean"].to_numpy()
    axes.fill_between(x, lower, upper, color=BLUE, alpha=0.08, linewidth=0)
    _widths(axes, [whole])
    return finished(figure, "width N", "accuracy (%)", note)


@own_settings()
def overlap_figure(mine: Series, limit: Series, note: str) -> Figure:
    """Overlap of the kernel's principal components with the labels, by falling eigenvalue.

    Args:
        mine: of a network; `x` is the number of the component, from 1.
        limit: of the limit of infinite width.
        note: below the panel.
    """
    figure, axes = panel()
    for series, colour, marker, shift in (
        (limit, VERMILION, "s", 0.15),
        (mine, BLUE, "o", -0.15),
    ):
        table = series.table
        x = table["x"] + shift
        axes.vlines(x, 0, table["mean"], color=colour, linewidth=1.6, alpha=0.55)
        axes.errorbar(
            x,
            table["mean"],
            yerr=bars(table),
            color=colour,
            marker=marker,
            markersize=3.6,
            linestyle="",
            elinewidth=0.8,
            capsize=1.5,
            label=series.name,
        )
    axes.axhline(0, color=GREY, linewidth=0.7)
    dress(axes, "principal component of the kernel", "overlap with the labels")
    last = int(mine.table["x"].max())
    axes.set_xticks([1, *range(5, last + 1, 5)])
    shared_legend(figure, [axes], [mine.name, limit.name])
    foot(figure, note)
    return figure


@own_settings()
def order_parameter_figure(
    rows: Mapping[str, Sequence[NDArray[np.float64] | None]],
    columns: Sequence[str],
    names: Sequence[str],
    note: str,
) -> Figure:
    """Matrices side by side: a row of them a method, a column a width, one scale for all.

    Args:
        rows: name -> matrices (D, D), None where there is none.
        columns: name of each column.
        names: (D,) of the paths.
        note: below the panels.
    """
    side = max(_SIDE, _NAME * min(len(names), _MOST_NAMES))
    size = (_BESIDE + side * len(columns), _ABOVE + side * len(rows))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    there = [matrix for matrices in rows.values() for matrix in matrices if matrix is not None]
    largest = max(float(np.abs(matrix).max()) for matrix in there)
    norm = SymLogNorm(linthresh=1.0, vmin=-largest, vmax=largest)
    for (name, matrices), of_row in zip(rows.items(), panels, strict=True):
        of_row[0].set_ylabel(name, fontsize=TEXT, parse_math=False)
        for axes, matrix in zip(of_row, matrices, strict=True):
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            if matrix is None:
                axes.set_box_aspect(1)
            else:
                axes.imshow(matrix, cmap=_COLOURS, norm=norm)
        named = range(0, len(names), -(-len(names) // _MOST_NAMES))
        of_row[0].set_yticks(named, [names[i] for i in named], fontsize=_TINY)
        of_row[0].tick_params(length=0)
    for axes, column in zip(panels[0], columns, strict=True):
        axes.set_title(column, fontsize=SMALL)
    bar = figure.colorbar(ScalarMappable(norm, _COLOURS), ax=panels, pad=0.01, fraction=0.015)
    room = _LABEL / (side * len(rows))
    tens = [10.0**power for power in range(4)]
    ends = [*(ten for ten in tens if norm(largest) - norm(ten) >= room), largest]
    ticks = [-end for end in reversed(ends)] + [0.0, *ends]
    bar.set_ticks(ticks, labels=[f"{tick:.3g}" for tick in ticks])
    bar.ax.tick_params(labelsize=SMALL)
    bar.minorticks_off()
    bar.ax.set_title("U", fontsize=SMALL)
    foot(figure, note)
    return figure


def _points(axes: Axes, series: Series, style: LineStyle, shift: float = 1.0) -> None:
    axes.errorbar(
        shift * series.table["x"],
        series.table["mean"],
        yerr=bars(series.table),
        color=style.colour,
        linestyle=style.dashes,
        marker=style.marker,
        markersize=_MARKER_SIZE,
        markerfacecolor=style.colour,
        linewidth=1.6,
        elinewidth=1.1,
        capsize=2.5,
        label=series.name,
    )


def bars(table: pd.DataFrame) -> NDArray[np.float64]:
    """(2, points) lengths of the bars below and above; 0 where there is no interval."""
    below, above = table["mean"] - table["low"], table["high"] - table["mean"]
    return np.nan_to_num(np.stack([below, above]).astype(np.float64))


def _widths(axes: Axes, drawn: Sequence[Series]) -> None:
    """A logarithmic axis that names the widths there are."""
    widths = sorted({float(x) for series in drawn for x in series.table["x"]})
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(widths, [f"{width:g}" for width in widths])
    if widths:
        axes.set_xlim(widths[0] / _ROOM, widths[-1] * _ROOM)
