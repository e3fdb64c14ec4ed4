"""Matrices with their numbers: focus-prediction heat maps, and differences over two factors."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from analysis.digest.measures import measures
from analysis.figures.style import (
    BLACK,
    BLUE,
    GREY,
    SMALL,
    VERMILION,
    WHITE,
    label,
    own_settings,
)
from analysis.forms import SHARES, Unit, percent
from analysis.groups import paradigm_order
from study import tasks

_COLUMNS = 2  # of heat maps, as many as a phone has room for
_SIDE, _BESIDE, _ABOVE = 2.3, 0.3, 0.4
"""Inches of a heat map with its labels, and of what else is beside and above them."""

_DARK = 0.5  # a share with light numbers
_PALE = 1.8  # so much stronger than the largest difference would be the full colour
_CELL, _LETTERS = 0.95, 15  # inches of a cell of a grid, and letters that it has room for


@own_settings()
def heatmap_figure(
    heatmaps: Mapping[str, NDArray[np.float64]],
    threshold: float | None = None,
    seeds: Mapping[str, int | str] | None = None,
    task: str = "",
) -> Figure:
    """Focus-prediction heat maps as section 2.4 of the paper has them, one panel per paradigm.

    Args:
        heatmaps: paradigm -> (bins, bins) fractions of the instances, axis 0 = a_z, axis 1 = s_y.
        threshold: of SAIF; None: the task's own.
        seeds: paradigm -> n, or that in words, said beside its name.
        task: gives the edges of the bins; empty: of mosaics.

    Returns:
        a_z on x, s_y on y upwards, cells in % of the instances, shaded in grey. The outline at
        the top right is SAIF.
    """
    modality = tasks.modality(task)
    usual, edges = modality.saif_threshold, modality.heatmap_edges
    saif = measures(task)["saif"].at(threshold)
    bins, first = len(edges) - 1, edges.index(threshold or usual)
    names = [f"{edge:g}" for edge in edges]
    columns = min(_COLUMNS, len(heatmaps))
    rows = math.ceil(len(heatmaps) / columns)
    figure = Figure(figsize=(_BESIDE + _SIDE * columns, _ABOVE + _SIDE * rows))
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for unused in panels[len(heatmaps) :]:
        unused.remove()
    for axes, name in zip(panels, paradigm_order(heatmaps), strict=False):
        heatmap = heatmaps[name]
        for (a_z, s_y), share in np.ndenumerate(heatmap):
            ink = WHITE if share > _DARK else BLACK
            _tile(axes, a_z, s_y, to_rgba(BLACK, share), percent(share), ink)
        outline = _outline(axes, first, first, bins - first, VERMILION)
        outline.set_url(f"{saif}: {percent(heatmap[first:, first:].sum())} %")
        ticks = range(bins + 1)
        axes.set(xticks=ticks, xticklabels=names, yticks=ticks, yticklabels=names)
        axes.set(xlim=(0, bins), ylim=(0, bins), aspect="equal")
        axes.grid(False)
        label(axes, title=f"{name} (n={seeds[name]})" if seeds else name)
    figure.supxlabel("foreground attention a_z")
    figure.supylabel("true-class score s_y")
    return figure


@own_settings()
def grid_figure(
    grid: pd.DataFrame, row: str, column: str, what: str, unit: Unit = SHARES
) -> Figure:
    """A difference of two paradigms over a grid of two factors.

    Args:
        grid: one row per setting: `row` and `column` (values of the two factors, categories in
            their order), `base` (whether it is the base), `difference` (a fraction; NaN: not
            known) and `verdict` (better, worse or undecided).
            Combinations that are not there stay empty.
        row, column: names of the factors.
        what: the difference is, with its unit.
    """
    rows, columns = ([*grid[name].cat.categories] for name in ("row", "column"))
    figure = Figure(figsize=(1.6 + _CELL * len(columns), 1.4 + 0.6 * _CELL * len(rows)))
    axes = figure.subplots()
    strongest = _PALE * max(0.01, grid["difference"].abs().max())  # NaN: none is known
    for each in grid.to_dict("records"):
        x, y = columns.index(each["column"]), rows.index(each["row"])
        colour = BLUE if each["difference"] > 0 else VERMILION
        face = to_rgba(colour, float(np.nan_to_num(abs(each["difference"]) / strongest)))
        undecided = each["verdict"] == "undecided"
        text = unit.change(each["difference"]) + undecided * "\nundecided"
        _tile(axes, x, y, face, text, GREY if undecided else BLACK)
        if each["base"]:
            _outline(axes, x, y, 1, BLACK)
    axes.grid(False)
    axes.spines[:].set_visible(True)
    axes.tick_params(length=0)
    for axis, names in ((axes.xaxis, columns), (axes.yaxis, rows)):
        wrapped = [textwrap.fill(name, _LETTERS) for name in names]
        axis.set_ticks(np.arange(len(names)) + 0.5, wrapped, parse_math=False)
    axes.set(xlim=(0, len(columns)), ylim=(0, len(rows)))
    label(axes, column, row, what)
    return figure


def _tile(axes: Axes, x: int, y: int, face: tuple[float, ...], text: str, ink: str) -> None:
    """A square in column x and row y, with its text."""
    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=face, linewidth=0))
    centre: dict[str, Any] = {"ha": "center", "va": "center_baseline"}
    axes.text(x + 0.5, y + 0.5, text, color=ink, fontsize=SMALL, **centre)


def _outline(axes: Axes, x: int, y: int, side: int, colour: str) -> Rectangle:
    """Around a square of tiles."""
    look: dict[str, Any] = {"fill": False, "clip_on": False, "linewidth": 2.0, "zorder": 3}
    square = Rectangle((x, y), side, side, edgecolor=colour, **look)
    axes.add_patch(square)
    return square
