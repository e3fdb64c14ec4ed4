"""Paired differences between paradigms."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures.marks import draw_seeds
from analysis.figures.style import (
    BLACK,
    BLUE,
    GREY,
    SEED_SIZE,
    TEXT,
    WHITE,
    WIDTH,
    label,
    legend_above,
    own_settings,
)
from analysis.words import interval_of_pair, level, metric_name, points

_ABOVE, _ROW, _LINE = 1.05, 0.36, 0.15  # inches around the rows, of a row, of a further line
_LETTERS = 22  # of a name on one line: of longer ones little would be left for the rows
_SEEDS = 0.28  # of a row, from the interval down to its seeds
_MARGIN = 0.06  # of the range, beside what reaches farthest


@own_settings()
def forest_figure(
    paired: pd.DataFrame, seeds: pd.DataFrame | None = None, threshold: float | None = None
) -> Figure:
    """A row a pair of paradigms: mean difference and interval, each seed's own below.

    Args:
        paired: as `analysis.digest.pairs` gives it, of one comparison and one metric.
        seeds: `first`, `second`, `seed` and `difference` (a fraction) of the common seeds.
        threshold: of SAIF, for the label; None: the task's own.

    Raises:
        ValueError: `paired` is empty.
    """
    if paired.empty:
        raise ValueError("paired must hold at least one pair of paradigms, got none")
    if seeds is None:
        seeds = pd.DataFrame(columns=["first", "second", "seed", "difference"])
    names = [f"{row.first} \N{MINUS SIGN} {row.second}" for row in paired.itertuples()]
    labels = [textwrap.fill(name, _LETTERS, break_on_hyphens=False) for name in names]
    row_height = _ROW + _LINE * max(name.count("\n") for name in labels)
    figure = Figure(figsize=(WIDTH, _ABOVE + row_height * len(names)))
    axes = figure.subplots()
    axes.axvline(0, color=BLACK, linewidth=0.9, zorder=1)
    for place, (name, row) in enumerate(zip(names, paired.to_dict("records"), strict=True)):
        says = (
            f"{name}: {points(row['difference'])} points ({interval_of_pair(row)}), "
            f"{row['verdict']}, n={row['num_pairs']}"
        )
        bar, mark = _looks(row["verdict"] != "undecided")
        axes.plot([100 * row["low"], 100 * row["high"]], [place] * 2, **bar, url=says)
        axes.plot(100 * row["difference"], place, **mark, url=says, zorder=3)
        mine = seeds[(seeds["first"] == row["first"]) & (seeds["second"] == row["second"])]
        told = [
            f"{name}, seed {each.seed}: {points(each.difference)} points"
            for each in mine.itertuples()
        ]
        draw_seeds(axes, 100 * mine["difference"], np.full(len(mine), place + _SEEDS), BLACK, told)
    metric, task = (str(paired[column].iloc[0]) for column in ("metric", "task"))
    label(axes, f"{metric_name(metric, threshold, task)} difference (percentage points)")
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_yticks(range(len(names)), labels, fontsize=TEXT, parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.5)
    axes.set_xlim(_limits(paired, seeds))
    (bar, decided), (_, undecided) = _looks(True), _looks(False)
    entries = {
        "decided": Line2D([], [], **decided),
        "undecided": Line2D([], [], **undecided),
        f"{level(paired['confidence'].iloc[0])} interval": Line2D([], [], **bar),
        "a seed": Line2D([], [], color=BLACK, marker="o", markersize=SEED_SIZE, linestyle=""),
    }
    legend_above(figure, entries, len(entries), handlelength=1.6)
    return figure


def _looks(decided: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of the line and of the circle of a row."""
    colour = BLUE if decided else GREY
    bar = {"color": colour, "linewidth": 3.0, "solid_capstyle": "butt"}
    mark = {"color": colour, "marker": "o", "linestyle": "none", "markersize": 7}
    face = colour if decided else WHITE
    return bar, mark | {"markeredgewidth": 1.5, "markerfacecolor": face}


def _limits(paired: pd.DataFrame, seeds: pd.DataFrame) -> tuple[float, float]:
    """Of all that is shown, and 0; no difference of shares is beyond 100 points."""
    of_pairs = paired[["difference", "low", "high"]].to_numpy(float).ravel()
    reach = 100 * np.concatenate([of_pairs, seeds["difference"].to_numpy(float), [0.0]])
    low, high = float(np.nanmin(reach)), float(np.nanmax(reach))
    margin = _MARGIN * (high - low) or 1.0
    return max(low - margin, -102.0), min(high + margin, 102.0)
