"""Scores against the searched axes: learning rate and switch point."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import ArrayLike, NDArray

from analysis.figures.marks import draw, number, side_by_side
from analysis.figures.style import (
    MARKER_SIZE,
    by_paradigm,
    finished,
    line_styles,
    metric_label,
    own_settings,
    panel,
    seeds_label,
)

REFERENCES = ("hard", "hard-sampled", "hard-running", "soft")
"""Paradigms without a switch point whose level stands beside the response to it."""


_MOST_TICKS = 9
_TOUCHING = 0.09  # of a logarithmic axis, from one label to the next


@own_settings()
def learning_rate_figure(
    response: pd.DataFrame,
    metric: str,
    threshold: float | None = None,
) -> Figure:
    """A metric against the learning rate, one line a paradigm, the chosen rate filled.

    Args:
        response: as `analysis.digest.responses.learning_rate_response` gives it.
        metric: `saif`, `accuracy`, or a measure of recorded runs.
        threshold: of SAIF, for the label; None: the task's own.
    """
    figure, axes = panel()
    _draw_responses(axes, response.assign(x=response["lr"]), metric, wide=True)
    rates = response["lr"].dropna()
    if len(rates):
        logarithmic(axes, rates)
    return finished(figure, "learning rate (of the first phase)", _y(metric, threshold, response))


@own_settings()
def switch_figure(
    response: pd.DataFrame,
    choice: pd.DataFrame,
    metric: str,
    threshold: float | None = None,
) -> Figure:
    """A metric against the switch point, with the chosen options of soft and hard as levels.

    Args:
        response: as `analysis.digest.responses.switch_response` gives it.
        choice: as `analysis.choose` gives it.
        metric: `saif`, `accuracy`, or a measure of recorded runs.
        threshold: of SAIF, for the label; None: the task's own.
    """
    figure, axes = panel()
    points = 100 * response["switch_point"]
    _draw_responses(axes, response.assign(x=points), metric)
    levels = by_paradigm(choice[choice["paradigm"].isin(REFERENCES)])
    for name, style in line_styles(levels).items():
        height = 100 * levels[name][f"validation_{metric}"].iloc[0]
        axes.axhline(
            height,
            color=style.colour,
            linestyle=style.dashes,
            linewidth=1.6,
            label=seeds_label(f"{name}, chosen", levels[name]["num_seeds"]),
            url=f"{name}, chosen: {number(height)} %",
        )
    known = points.unique()
    if 1 < len(known) <= 11:
        axes.set_xticks(known, [f"{point:g}" for point in known])
    return finished(figure, "switch point (% of the budget)", _y(metric, threshold, response))


def _y(metric: str, threshold: float | None, table: pd.DataFrame) -> str:
    return metric_label(metric, threshold, str(table["task"].iloc[0]) if len(table) else "")


def _draw_responses(axes: Axes, response: pd.DataFrame, metric: str, wide: bool = False) -> None:
    """A line a paradigm; bars reach from the lowest seed to the highest."""
    ends = {"mean": metric, "low": f"{metric}_low", "high": f"{metric}_high"}
    rows = response.reset_index(drop=True)
    rows = rows.assign(**{end: 100 * rows[column] for end, column in ends.items()})
    lines = by_paradigm(side_by_side(rows, wide))
    for name, style in line_styles(lines).items():
        line = lines[name]
        label = seeds_label(name, line.loc[line["num_seeds"] > 0, "num_seeds"])
        draw(axes, line, style, label, filled=False, unit=" %")
        chosen, at = f"{name}, chosen", line[line["chosen"]]
        size = MARKER_SIZE + 2
        draw(axes, at, style, chosen, joined=False, legend=False, unit=" %", size=size, zorder=3)
    axes.margins(x=0.08)


def logarithmic(axes: Axes, values: ArrayLike) -> None:
    """A logarithmic x axis with ticks at the values where there is room, else at 1, 2, 5."""
    values = np.unique(values)
    low, high = float(values[0]), float(values[-1])
    axes.set_xscale("log")
    margin = (high / low) ** 0.06 if high > low else 2.0
    axes.set_xlim(low / margin, high * margin)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(_ticks(values).tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _ticks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A few of the values, or round numbers between them, that can be read side by side."""
    if len(values) < 2:
        return values
    low, high = values[[0, -1]]
    decades = 10.0 ** np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    sparse = decades[:: math.ceil(len(decades) / _MOST_TICKS)]
    for ticks in (values, np.outer(decades, (1, 2, 5)).ravel(), decades, sparse):
        there = ticks[(ticks >= low / 1.001) & (ticks <= high * 1.001)]
        gaps = np.diff(np.log(there)) / np.log(high / low)
        if 1 < len(there) <= _MOST_TICKS and gaps.min() > _TOUCHING:
            return there
    return np.array([float(f"{value:.2g}") for value in np.geomspace(low, high, 3)])
