"""Figures of the heads of trained networks: figure 3e and f of the paper.

Theory is blue, as in `chapters.paths.figures.path_figures`; what was trained is green.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.marks import draw
from analysis.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    HEIGHT,
    VERMILION,
    WIDTH,
    LineStyle,
    label,
    own_settings,
    panel,
    shared_legend,
)
from chapters.paths.heads.heads_cell import BOUND

PUBLISHED = "published"
"""Name of the published drops in the legend."""

_STYLES = {
    "theory": LineStyle(BLUE, "-", "P"),
    "reverse": LineStyle("#7FB7DA", (0, (1.5, 1.5)), "X"),
    "weight-norm": LineStyle("#E69F00", (0, (5.0, 2.0)), "s"),
    "entropy": LineStyle(GREEN, "-.", "^"),
    "sensitivity": LineStyle("#CC79A7", (0, (3.0, 1.2, 1.0, 1.2)), "D"),
    "random": LineStyle(GREY, ":", "o"),
    "greedy": LineStyle("#56B4E9", (0, (7.0, 1.5)), "v"),
}
_APART = 0.055
"""Removed heads between the points of two lines, so that all bars are seen."""


@own_settings()
def scores_figure(
    name: str, scores: pd.DataFrame, drops: pd.DataFrame, published: Sequence[float] = ()
) -> Figure:
    """Scores of heads above, and what the network loses without each, by rank of the score.

    Args:
        name: of the scores.
        scores: as `draw` takes them; `x` is the rank, 1 the lowest.
        drops: likewise, in points.
        published: drops of the paper in points, by rank.
    """
    figure = Figure(figsize=(WIDTH, 1.25 * HEIGHT))
    above, below = figure.subplots(2, 1, sharex=True)
    for axes, text, table, colour in (
        (above, name, scores, BLUE),
        (below, "lost without the head", drops, VERMILION),
    ):
        axes.bar(table["x"], table["mean"], 0.62, color=colour, alpha=0.4)
        draw(axes, table, LineStyle(colour, "", "o"), text)
    if len(published):
        ranks = range(1, len(published) + 1)
        table = pd.DataFrame({"x": ranks, "mean": published, "low": np.nan, "high": np.nan})
        draw(below, table.assign(filled=False), LineStyle(BLACK, "", "D"), PUBLISHED, size=4.5)
    below.axhline(0, color=GREY, linewidth=0.7)
    label(above, y="score")
    label(below, "rank of the head's score in its network (1: lowest)", "lost accuracy (points)")
    below.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=16))
    above.set_ylim(bottom=0)
    shared_legend(figure)
    return figure


@own_settings()
def pruning_figure(lines: Mapping[str, tuple[str, pd.DataFrame]], chance: float) -> Figure:
    """Accuracy against the number of removed heads, a line an order.

    Args:
        lines: method, or reverse for theory's order backwards -> its name in the legend and its
            rows as `draw` takes them, in %. The bound is a line without marks.
        chance: accuracy in % that guessing reaches.
    """
    figure, axes = panel()
    orders = {order: line for order, line in lines.items() if order != BOUND}
    for name, best in [lines[BOUND]] if BOUND in lines else []:
        look: dict[str, Any] = {"color": BLACK, "linestyle": "--", "linewidth": 1.3, "zorder": 1}
        axes.plot(best["x"], best["mean"], label=name, url=name, **look)
    for number, (order, (name, table)) in [*enumerate(orders.items())][::-1]:  # theory on top
        shift = _APART * (number - (len(orders) - 1) / 2)
        shifted = table.assign(x=table["x"] + shift, at=table["x"])
        draw(axes, shifted, _STYLES[order], name, unit=" %", size=4.2)
    axes.axhline(chance, color=GREY, linewidth=0.9, linestyle=(0, (1.0, 3.0)), label="chance")
    label(axes, "removed heads", "accuracy (%)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    shared_legend(figure, [name for name, _ in orders.values()])
    return figure
