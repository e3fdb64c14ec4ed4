"""Marks that say their name and numbers where they are pointed at on a page.

What one says is its URL, see `analysis.figures.formats`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from analysis.figures.style import MARKER_SIZE, SEED_SIZE, WHITE, LineStyle
from analysis.forms import Unit

_NEAR = 0.03  # of the range of the means: two marks that are nearer hide each other
_APART = 0.018  # of the range of x, between two such marks
_TOUCHING = 0.12  # of the range of x, from one label to the next, or they touch
_MANY_SEEDS = 400  # that are drawn together, each of which has some 150 bytes of a page


def number(value: float) -> str:
    """Four digits."""
    return f"{value:.4g}"


def scaled(
    rows: pd.DataFrame, unit: Unit, mean: str = "mean", low: str = "low", high: str = "high"
) -> pd.DataFrame:
    """Rows as `draw` takes them, of columns of a measure: fractions become per cent."""
    times = unit.scale
    return rows.assign(mean=times * rows[mean], low=times * rows[low], high=times * rows[high])


def draw(
    axes: Axes,
    rows: pd.DataFrame,
    style: LineStyle,
    name: str,
    *,
    band: bool = False,
    unit: str = "",
    most: int = 200,
    size: float = MARKER_SIZE,
) -> None:
    """Marks with their intervals, joined by a line.

    Args:
        axes: the panel.
        rows: one row a mark: `x`, `mean`, `low` and `high` (bounds NaN: no interval); `at`, what
            it says of its place, if that is not its x; `filled`, if not all are.
        style: of all of them; without dashes no line joins them.
        name: in the legend, and in what a mark says: ``soft, 0.1: 81.25 % (79 to 83.1)``.
        band: intervals are a band, else a bar each.
        unit: of the means, with the space before it.
        most: marks; of more points, every so many has one.
        size: of a mark, in points.
    """
    colour, dashes, marker = style
    axes.plot(rows["x"], rows["mean"], color=colour, linestyle=dashes)
    ends = rows.dropna(subset=["low", "high"])
    if band:
        look: dict[str, Any] = {"alpha": 0.13, "linewidth": 0}
        axes.fill_between(ends["x"], ends["low"], ends["high"], color=colour, **look)
    else:
        axes.vlines(ends["x"], ends["low"], ends["high"], colour, linewidth=1.1, alpha=0.7)
    step = math.ceil(len(rows) / most) or 1
    marked = rows[(len(rows) - 1) % step :: step]
    faces = [colour if each else WHITE for each in marked.get("filled", [True] * len(marked))]
    look = {"facecolors": faces, "edgecolors": colour, "linewidths": 1.0, "zorder": 2.5}
    says = [*_said(name, marked, unit)]
    axes.scatter(marked["x"], marked["mean"], size**2, marker=marker, urls=says, **look)
    look = {"linestyle": dashes, "marker": marker, "markersize": size}
    face = WHITE if WHITE in faces else colour
    axes.plot([], [], color=colour, markerfacecolor=face, label=name, **look)


def _said(name: str, rows: pd.DataFrame, unit: str) -> Iterator[str]:
    columns = rows.get("at", rows["x"]), rows["mean"], rows["low"], rows["high"]
    for at, mean, low, high in zip(*columns, strict=True):
        place = at if isinstance(at, str) else number(at)
        interval = f" ({number(low)} to {number(high)})" if low <= high else ""  # else not known
        yield f"{name}, {place}: {number(mean)}{unit}{interval}"


def draw_seeds(axes: Axes, x: Any, y: Any, colour: str, says: Sequence[str]) -> None:
    """A small dot a seed; of very many none says its number, and they are one picture."""
    many = len(says) > _MANY_SEEDS
    look: dict[str, Any] = {"color": colour, "alpha": 0.55, "linewidths": 0}
    axes.scatter(x, y, SEED_SIZE**2, urls=None if many else says, rasterized=many, **look)


def side_by_side(rows: pd.DataFrame, logarithmic: bool = False) -> pd.DataFrame:
    """Moves marks along x where two would lie on each other; all others stay where they are.

    Args:
        rows: with `x` and `mean`, of all lines of a panel.
        logarithmic: whether the axis of x is.
    """
    rows = rows.reset_index(drop=True)
    place = np.log(rows["x"]) if logarithmic else rows["x"].astype(float)
    ordered = rows.assign(place=place).sort_values(["place", "mean"])
    near = ordered["mean"].diff() <= _NEAR * (rows["mean"].max() - rows["mean"].min())
    heap = (~near | ordered["place"].diff().ne(0)).cumsum()
    heaps = place.groupby(heap)
    beside = heaps.cumcount() - (heaps.transform("size") - 1) / 2
    moved = place + _APART * (np.ptp(place) or 1.0) * beside
    return rows.assign(x=np.exp(moved) if logarithmic else moved)


def label_values(axes: Axes, values: ArrayLike, logarithmic: bool = False) -> None:
    """An x axis that names the values there are, but those too near to the one before."""
    values = np.unique(np.asarray(values, float))
    places = np.log(values) if logarithmic else values
    shown: dict[float, float] = {}
    for place, value in zip(places, values, strict=True):
        if place - max(shown, default=-math.inf) > _TOUCHING * np.ptp(places):
            shown[place] = value
    if logarithmic:
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.margins(x=0.08)
    texts = [f"{x:.3g}" if x < 1 else f"{x:.5g}" for x in shown.values()]
    axes.set_xticks([*shown.values()], texts)
