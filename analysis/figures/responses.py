"""Scores against the searched axes: learning rate and switch point."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import offset_copy

from analysis.figures.style import (
    MARKER_SIZE,
    WIDTH,
    LineStyle,
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

_APART = 6.0  # points at most between the marks of two paradigms at one x
_FOOT = "validation split; {}; mean, lowest and highest seed; filled: chosen"


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
    _draw_responses(figure, axes, response, "lr", metric)
    rates = response["lr"].dropna().unique()
    if len(rates):
        logarithmic(axes, rates)
    return finished(
        figure,
        "learning rate (of the first phase)",
        _label(metric, threshold, response),
        _FOOT.format("at each rate the best option"),
    )


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
    shown = response.assign(switch_point=100 * response["switch_point"])
    _draw_responses(figure, axes, shown, "switch_point", metric)
    levels = by_paradigm(choice[choice["paradigm"].isin(REFERENCES)])
    for name, style in line_styles(levels).items():
        axes.axhline(
            100 * levels[name][f"validation_{metric}"].iloc[0],
            color=style.colour,
            linestyle=style.dashes,
            linewidth=1.6,
            label=seeds_label(f"{name}, chosen", levels[name]["num_seeds"]),
        )
    points = np.sort(shown["switch_point"].unique())
    if 1 < len(points) <= 11:
        axes.set_xticks(points, [f"{point:g}" for point in points])
    return finished(
        figure,
        "switch point (% of the budget)",
        _label(metric, threshold, response),
        _FOOT.format("of each switch point its best option"),
    )


def _label(metric: str, threshold: float | None, table: pd.DataFrame) -> str:
    return metric_label(metric, threshold, str(table["task"].iloc[0]) if len(table) else "")


def _draw_responses(
    figure: Figure, axes: Axes, response: pd.DataFrame, x: str, metric: str
) -> None:
    lines = by_paradigm(response)
    middle = (len(lines) - 1) / 2
    # Half of the room at an x, so that marks that belong together stand together.
    room = 0.5 * 60 * WIDTH / max(1, response[x].nunique() * len(lines))
    apart = min(_APART, room)
    for i, (name, style) in enumerate(line_styles(lines).items()):
        # Shifted on paper and not in the data, so that intervals at one x stand side by side.
        aside = offset_copy(axes.transData, figure, x=(i - middle) * apart, units="points")
        _draw_response(axes, lines[name], x, metric, name, style, aside)
    # Shifted marks do not count for the limits by themselves.
    reach = 100 * response[[metric, f"{metric}_low", f"{metric}_high"]]
    for column in reach:
        known = reach[column].notna()
        axes.update_datalim(np.column_stack([response[x], reach[column]])[known])
    axes.margins(x=0.08)
    axes.autoscale_view()


def _draw_response(
    axes: Axes,
    line: pd.DataFrame,
    x: str,
    metric: str,
    name: str,
    style: LineStyle,
    aside: object,
) -> None:
    known = line[line["num_seeds"] > 0]
    axes.errorbar(
        line[x],
        100 * line[metric],
        yerr=100
        * np.stack([line[metric] - line[f"{metric}_low"], line[f"{metric}_high"] - line[metric]]),
        color=style.colour,
        linestyle=style.dashes,
        linewidth=1.4,
        elinewidth=1.1,
        marker=style.marker,
        markersize=MARKER_SIZE,
        markerfacecolor="white",
        label=seeds_label(name, known["num_seeds"]),
        transform=aside,
    )
    chosen = line[line["chosen"]]
    axes.plot(
        chosen[x],
        100 * chosen[metric],
        color=style.colour,
        linestyle="none",
        marker=style.marker,
        markersize=MARKER_SIZE + 2,
        transform=aside,
        zorder=5,
    )


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
