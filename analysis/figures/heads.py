"""Figures of the heads of trained networks: figure 3e and f of the paper.

Theory is blue, as in `analysis.figures.attention_paths`; what was trained is green.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.attention_paths import Series, bars
from analysis.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    HEIGHT,
    VERMILION,
    WIDTH,
    LineStyle,
    dress,
    foot,
    own_settings,
    panel,
    shared_legend,
)

PUBLISHED = "published"
"""Name of the published drops in the legend."""

_STYLES = {
    "weight-norm": LineStyle("#E69F00", (0, (5.0, 2.0)), "s"),
    "entropy": LineStyle(GREEN, "-.", "^"),
    "sensitivity": LineStyle("#CC79A7", (0, (3.0, 1.2, 1.0, 1.2)), "D"),
    "random": LineStyle(GREY, ":", "o"),
    "greedy": LineStyle("#56B4E9", (0, (7.0, 1.5)), "v"),
}
_THEORY = LineStyle(BLUE, "-", "x")
_REVERSED = LineStyle("#7FB7DA", (0, (1.5, 1.5)), "+")
_APART = 0.055
"""Removed heads between the points of two lines, so that all bars are seen."""


@own_settings()
def scores_figure(scores: Series, drops: Series, published: Sequence[float], note: str) -> Figure:
    """Scores of heads above, and what the network loses without each, by rank of the score.

    Args:
        scores: `x` is the rank, 1 the lowest.
        drops: likewise, in points.
        published: drops of the paper in points, by rank; may be empty.
        note: below the panels.
    """
    figure = Figure(figsize=(WIDTH, 1.25 * HEIGHT), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for axes, series, colour in ((above, scores, BLUE), (below, drops, VERMILION)):
        table = series.table
        axes.bar(table["x"], table["mean"], 0.62, color=colour, alpha=0.4, label=series.name)
        axes.errorbar(
            table["x"], table["mean"], bars(table), color=colour, linestyle="", elinewidth=1.2,
            capsize=2.5,
        )  # fmt: skip
    if published:
        below.plot(
            np.arange(1, len(published) + 1), published, linestyle="", marker="D", color=BLACK,
            markersize=4.5, markerfacecolor="white", label=PUBLISHED, zorder=3,
        )  # fmt: skip
    below.axhline(0, color=GREY, linewidth=0.7)
    dress(above, "", "score")
    dress(below, "rank of the head's score in its network (1: lowest)", "lost accuracy (points)")
    below.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=16))
    above.set_ylim(bottom=0)
    shared_legend(figure, [above, below])
    foot(figure, note)
    return figure


@own_settings()
def pruning_figure(
    theory: Sequence[Series], rules: Mapping[str, Series], bound: Series | None,
    chance: float, note: str,
) -> Figure:  # fmt: skip
    """Accuracy against the number of removed heads, a line an order.

    Args:
        theory: its order, and the reverse one, if there are.
        rules: method -> its line.
        bound: the best of all subsets, if it is known.
        chance: accuracy in % that guessing reaches.
        note: below the panel.
    """
    figure, axes = panel()
    lines = [*zip(theory, (_THEORY, _REVERSED), strict=False)]
    lines += [(series, _STYLES.get(name, _THEORY)) for name, series in rules.items()]
    if bound is not None:
        axes.plot(
            bound.table["x"], bound.table["mean"], color=BLACK, linestyle="--", linewidth=1.3,
            label=bound.name, zorder=1,
        )  # fmt: skip
    for number, (series, style) in enumerate(lines):
        axes.errorbar(
            series.table["x"] + _APART * (number - (len(lines) - 1) / 2),
            series.table["mean"],
            yerr=bars(series.table),
            color=style.colour,
            linestyle=style.dashes,
            marker=style.marker,
            markersize=4.2,
            linewidth=1.9 if style is _THEORY else 1.2,
            elinewidth=0.8,
            capsize=1.5,
            label=series.name,
            zorder=3 if style is _THEORY else 2,
        )
    axes.axhline(chance, color=GREY, linewidth=0.9, linestyle=(0, (1.0, 3.0)), label="chance")
    dress(axes, "removed heads", "accuracy (%)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    shared_legend(figure, [axes], [series.name for series, _ in lines])
    foot(figure, note)
    return figure
