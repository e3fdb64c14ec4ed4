"""Scores against the searched axes: learning rate and switch point."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

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


@own_settings()
def learning_rate_figure(
    response: pd.DataFrame,
    metric: str,
    threshold: float | None = None,
) -> Figure:
    """A metric against the learning rate, one line a paradigm, the chosen rate filled.

    Args:
        response: as `analysis.comparison.responses.learning_rate_response` gives it.
        metric: `saif`, `accuracy`, or a measure of recorded runs.
        threshold: of SAIF, for the label; None: the task's own.
    """
    figure, axes = panel()
    _draw_responses(axes, response.assign(x=response["lr"]), metric, logarithmic=True)
    rates = response["lr"].dropna().unique()
    if len(rates):
        logarithmic(axes, rates)
    label = _label(metric, threshold, response)
    return finished(figure, "learning rate (of the first phase)", label)


@own_settings()
def switch_figure(
    response: pd.DataFrame,
    choice: pd.DataFrame,
    metric: str,
    threshold: float | None = None,
) -> Figure:
    """A metric against the switch point, with the chosen options of soft and hard as levels.

    Args:
        response: as `analysis.comparison.responses.switch_response` gives it.
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
    known = np.sort(points.unique())
    if 1 < len(known) <= 11:
        axes.set_xticks(known, [f"{point:g}" for point in known])
    label = _label(metric, threshold, response)
    return finished(figure, "switch point (% of the budget)", label)


def _label(metric: str, threshold: float | None, table: pd.DataFrame) -> str:
    return metric_label(metric, threshold, str(table["task"].iloc[0]) if len(table) else "")


def _draw_responses(
    axes: Axes, response: pd.DataFrame, metric: str, logarithmic: bool = False
) -> None:
    """A line a paradigm; bars reach from the lowest seed to the highest."""
    ends = {"mean": metric, "low": f"{metric}_low", "high": f"{metric}_high"}
    rows = response.reset_index(drop=True)
    rows = rows.assign(**{end: 100 * rows[column] for end, column in ends.items()})
    lines = by_paradigm(side_by_side(rows, logarithmic))
    for name, style in line_styles(lines).items():
        line = lines[name]
        label = seeds_label(name, line.loc[line["num_seeds"] > 0, "num_seeds"])
        draw(axes, line, style, label, filled=False, unit=" %")
        chosen, at = f"{name}, chosen", line[line["chosen"]]
        size = MARKER_SIZE + 2
        draw(axes, at, style, chosen, joined=False, legend=False, unit=" %", size=size, zorder=3)
    axes.margins(x=0.08)


def logarithmic(axes: Axes, values: np.ndarray) -> None:
    """A logarithmic x axis with ticks at the values where there is room, else at 1, 2, 5."""
    values = np.unique(values)
    low, high = float(values[0]), float(values[-1])
    axes.set_xscale("log")
    margin = (high / low) ** 0.06 if high > low else 2.0
    axes.set_xlim(low / margin, high * margin)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(_ticks(values)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _ticks(values: np.ndarray) -> list[float]:
    """At most some nine numbers that can be read side by side."""
    low, high = float(values[0]), float(values[-1])
    if len(values) <= 9 and _readable(values):
        return [float(value) for value in values]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1,)):
        ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low / 1.001 <= tick <= high * 1.001]
        if len(ticks) > 1 and len(ticks) <= 9:
            return ticks
    if len(decades) > 9:
        return [10.0**decade for decade in decades[:: math.ceil(len(decades) / 9)]]
    return [float(f"{value:.2g}") for value in np.geomspace(low, high, 3)]


def _readable(values: np.ndarray) -> bool:
    """Whether labels at the values do not touch on a logarithmic axis."""
    if len(values) < 2:
        return True
    places = np.log(values) / np.log(values[-1] / values[0])
    return float(np.diff(places).min()) > 0.09
