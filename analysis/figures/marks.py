"""Marks that say their name and numbers where they are pointed at on a page.

What one says is its URL, see `analysis.figures.formats`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.style import MARKER_SIZE, SEED_SIZE, WHITE, LineStyle

_NEAR = 0.03  # of the range of the means: two marks that are nearer hide each other
_APART = 0.018  # of the range of x, between two such marks
_MANY_SEEDS = 400  # that are drawn together, each of which has some 150 bytes of a page


def number(value: float) -> str:
    """Four digits."""
    return f"{value:.4g}"


def in_percent(
    rows: pd.DataFrame, mean: str = "mean", low: str = "low", high: str = "high"
) -> pd.DataFrame:
    """Rows as `draw` takes them, of columns of fractions."""
    return rows.assign(mean=100 * rows[mean], low=100 * rows[low], high=100 * rows[high])


def draw(
    axes: Axes,
    rows: pd.DataFrame,
    style: LineStyle,
    name: str,
    *,
    joined: bool = True,
    filled: bool = True,
    band: bool = False,
    legend: bool = True,
    unit: str = "",
    most: int = 200,
    size: float = MARKER_SIZE,
    width: float = 1.4,
    zorder: float = 2.0,
) -> None:
    """Marks with their intervals, joined by a line.

    Args:
        axes: the panel.
        rows: one row a mark: `x`, `mean`, `low` and `high` (bounds NaN: no interval), and `at`,
            what it says of its place, if that is not its x.
        style: of all of them.
        name: in the legend, and in what a mark says: ``soft, 0.1: 81.25 % (79 to 83.1)``.
        joined, filled: whether a line joins the marks, and whether they are full.
        band: intervals are a band, else a bar each.
        legend: whether the legend names them.
        unit: of the means, with the space before it.
        most: marks; of more points, every so many has one.
        size: of a mark, in points.
        width: of the line, in points.
        zorder: of all of them.
    """
    look: dict[str, Any] = {"color": style.colour, "zorder": zorder}
    dashes = style.dashes if joined else ""
    axes.plot(rows["x"], rows["mean"], linestyle=dashes, linewidth=width, **look)
    ends = rows.dropna(subset=["low", "high"])
    if band:
        axes.fill_between(ends["x"], ends["low"], ends["high"], alpha=0.13, linewidth=0, **look)
    else:
        axes.vlines(ends["x"], ends["low"], ends["high"], linewidth=1.1, alpha=0.7, **look)
    step = math.ceil(len(rows) / most) or 1
    marked = rows[(len(rows) - 1) % step :: step]
    face = style.colour if filled else WHITE
    axes.scatter(
        marked["x"],
        marked["mean"],
        size**2,
        marker=style.marker,
        facecolors=face,
        edgecolors=style.colour,
        linewidths=1.0,
        urls=_said(name, marked, unit),
        zorder=zorder + 0.5,
    )
    if legend:
        own: dict[str, Any] = {"marker": style.marker, "markersize": size, "markerfacecolor": face}
        axes.plot([], [], linestyle=dashes, linewidth=width, label=name, **own, **look)


def _said(name: str, rows: pd.DataFrame, unit: str) -> list[str]:
    places = rows["at" if "at" in rows else "x"]
    says = []
    for at, mean, low, high in zip(places, rows["mean"], rows["low"], rows["high"], strict=True):
        place = at if isinstance(at, str) else number(at)
        interval = f" ({number(low)} to {number(high)})" if low <= high else ""  # else not known
        says.append(f"{name}, {place}: {number(mean)}{unit}{interval}")
    return says


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

    Returns:
        The rows, with the places they had as `at` where that is not given.
    """
    rows = rows.reset_index(drop=True)
    rows["at"] = rows["at"] if "at" in rows else rows["x"]
    place = np.log(rows["x"]) if logarithmic else rows["x"].astype(float)
    ordered = rows.assign(place=place).sort_values(["place", "mean"])
    near = ordered["mean"].diff() <= _NEAR * (rows["mean"].max() - rows["mean"].min())
    heap = (~near | ordered["place"].diff().ne(0)).cumsum()
    heaps = place.groupby(heap)
    beside = heaps.cumcount() - (heaps.transform("size") - 1) / 2
    moved = place + _APART * (np.ptp(place) or 1.0) * beside
    return rows.assign(x=np.exp(moved) if logarithmic else moved)
