"""Marks and tiles that say their name and numbers where they are pointed at on a page.

What one says is its URL, see `analysis.figures.formats`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from analysis.figures.style import MARKER_SIZE, SEED_SIZE, WHITE, LineStyle

_NEAR = 0.03  # of the range of the means: two marks that are nearer hide each other
_APART = 0.018  # of the range of x, between two such marks
_MANY_SEEDS = 200  # of a line or row, each of which has some 170 bytes of a page
_OF_NAMES = 0.09  # of the way from a name to the next, between its marks


def said(name: str, rows: pd.DataFrame, unit: str = "") -> list[str]:
    """What marks say: ``soft, 0.1: 81.25 % (79 to 83.1)``.

    Args:
        name: of all of them.
        rows: as of `draw`.
        unit: of the means, with the space before it.
    """
    columns = ["at" if "at" in rows else "x", "mean", "low", "high"]
    return [
        f"{name}, {at if isinstance(at, str) else number(at)}: "
        f"{number(mean)}{unit}{interval(low, high)}"
        for at, mean, low, high in rows[columns].itertuples(index=False)
    ]


def number(value: float) -> str:
    """Four digits."""
    return f"{value:.4g}"


def interval(low: float, high: float) -> str:
    """`` (79 to 83.1)``; empty where it is not known."""
    return f" ({number(low)} to {number(high)})" if np.isfinite([low, high]).all() else ""


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
        rows: one row a mark: `x`, `mean`, `low` and `high` (bounds NaN: no interval); `at` is what
            it says of its place, by default its x, and `says` all that it says.
        style: of all of them.
        name: in the legend, and in what a mark says.
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
    face = style.colour if filled else WHITE
    rows = rows[(len(rows) - 1) % (step := math.ceil(len(rows) / most) or 1) :: step]
    axes.scatter(
        rows["x"],
        rows["mean"],
        size**2,
        marker=style.marker,
        facecolors=face,
        edgecolors=style.colour,
        linewidths=1.0,
        urls=list(rows["says"]) if "says" in rows else said(name, rows, unit),
        zorder=zorder + 0.5,
    )
    if legend:
        own: dict[str, Any] = {"marker": style.marker, "markersize": size, "markerfacecolor": face}
        axes.plot([], [], linestyle=dashes, linewidth=width, label=name, **own, **look)


def draw_seeds(axes: Axes, x: Any, y: Any, colour: str, says: Sequence[str]) -> None:
    """A small dot a seed; of very many none says its number, and they are one picture."""
    many = len(says) > _MANY_SEEDS
    look: dict[str, Any] = {"color": colour, "alpha": 0.55, "linewidths": 0}
    axes.scatter(x, y, SEED_SIZE**2, urls=None if many else says, rasterized=many, **look)


def side_by_side(
    rows: pd.DataFrame, logarithmic: bool = False, named: bool = False
) -> pd.DataFrame:
    """Moves marks along x where two would lie on each other; all others stay where they are.

    Args:
        rows: with `x` and `mean`, of all lines of a panel, each row with an index of its own.
        logarithmic: whether the axis of x is.
        named: whether x is the number of a name, at which all marks stand beside each other.

    Returns:
        The rows, with the places they had as `at` where that is not given.
    """
    place = np.log(rows["x"]) if logarithmic else rows["x"].astype(float)
    near = _NEAR * (np.ptp(rows["mean"].dropna()) if rows["mean"].notna().any() else 0.0)
    ordered = rows.assign(place=place).sort_values(["place", "mean"])
    begins = ordered["place"].diff().ne(0) | (~ordered["mean"].diff().le(near) & (not named))
    heaps = place.groupby(begins.cumsum())
    rank = heaps.cumcount() - (heaps.transform("size") - 1) / 2
    moved = place + rank * (_OF_NAMES if named else _APART * (np.ptp(place) or 1.0))
    given = {} if "at" in rows else {"at": rows["x"]}
    return rows.assign(**given, x=np.exp(moved) if logarithmic else moved)


def draw_tiles(
    axes: Axes, places: Sequence[tuple[int, int]], colours: Sequence[Any], says: Sequence[str]
) -> None:
    """Unit squares, each with the given (column, row) at its lower left corner."""
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    squares = [corners + np.array(place) for place in places]
    axes.add_collection(PolyCollection(squares, facecolors=colours, urls=says, linewidths=0))
