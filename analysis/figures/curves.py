"""Scores against compute, against searched axes, and against the factors of settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator
from numpy.typing import ArrayLike, NDArray

from analysis.figures.marks import draw, draw_seeds, in_percent, number, side_by_side
from analysis.figures.style import (
    GREY,
    MARKER_SIZE,
    WIDTH,
    by_paradigm,
    finished,
    label,
    limit_shares,
    line_styles,
    own_settings,
    panel,
    shared_legend,
)
from analysis.forms import amount, span
from analysis.groups import AXES, Axis

_MOST_MARKS = 12  # along a curve, however many evaluations it has
_COLUMN = 0.02  # of the x axis, of the seeds of one paradigm at the end of its curve

_MOST_COLUMNS = 4
_PANEL_WIDTH, _PANEL_HEIGHT, _BESIDE = 2.5, 2.0, 1.1
"""Inches of the panel of a factor, and of what stands beside or above all of them."""

_LOGARITHMIC_FROM = 4
"""Ratio of the largest value to the smallest above which the axis of a factor is logarithmic."""

_MOST_TICKS, _TOUCHING = 9, 0.1
"""Of a logarithmic axis: labels, and the part of it from one to the next that they need."""


@own_settings()
def compute_figure(
    curve: pd.DataFrame,
    y_label: str,
    ends: pd.DataFrame | None = None,
    axis: Axis = "flops",
    noun: str = "mosaics",
    seeds: Mapping[str, str] | None = None,
) -> Figure:
    """A measure against training compute: one line per paradigm, its seeds at the end.

    The axis shows what lies between the second evaluation and the last, not the rise from
    chance before. It holds all means and seeds; bands may go beyond.

    Args:
        curve: as `analysis.digest.means.learning_curve` gives it for one split; a
            line ends where a seed has no evaluation, as a mean over others would look like
            progress.
        y_label: name of the measure, with its unit.
        ends: `paradigm`, `seed` and `score` (a fraction) of each at the end.
        axis: what is compute here.
        noun: name of the instances, in the plural.
        seeds: paradigm -> n in words; None: as many as the curve is of.
    """
    curve = curve[curve["num_seeds"] == curve["num_cells"]]
    x = curve[AXES[axis]]
    rows = in_percent(curve).assign(x=x, at=[amount(each, axis, noun) for each in x])
    scores = pd.DataFrame(columns=["paradigm", "seed", "score"]) if ends is None else ends
    figure, axes = panel()
    lines = by_paradigm(rows)
    for place, (name, style) in enumerate(line_styles(lines).items(), start=1):
        n = seeds[name] if seeds else span(lines[name]["num_seeds"])
        look: dict[str, Any] = {"band": True, "unit": " %", "most": _MOST_MARKS}
        draw(axes, lines[name], style, f"{name} (n={n})", **look)
        mine = scores[scores["paradigm"] == name]
        says = [
            f"{name}, seed {seed}: {number(100 * score)} %"
            for seed, score in zip(mine["seed"], mine["score"], strict=True)
        ]
        beside = np.full(len(mine), x.max() * (1 + _COLUMN * place))
        draw_seeds(axes, beside, 100 * mine["score"], style.colour, says)
    x_labels = {
        "flops": "training compute (FLOPs)",
        "seconds": "measured training time (s)",
        "mosaics": f"training data seen ({noun})",
    }
    finished(figure, x_labels[axis], y_label)
    later = rows.loc[rows["budget_fraction"] > rows["budget_fraction"].min(), "mean"]
    if len(shown := pd.concat([later, 100 * scores["score"]]).dropna()):
        limit_shares(axes, shown.min(), shown.max())
    return figure


@own_settings()
def response_figure(
    response: pd.DataFrame,
    axis: str,
    metric: str,
    y_label: str,
    levels: pd.DataFrame,
) -> Figure:
    """A metric against a searched axis, one line per paradigm, the chosen option filled.

    Args:
        response: as `analysis.digest.choose` gives it.
        axis: `lr` or `switch_point`, a column of it.
        metric: `saif`, `accuracy`, or a measure of recorded runs; bars reach from the lowest seed
            to the highest.
        y_label: its name with its unit.
        levels: rows of paradigms, as `analysis.choose` gives them, whose level stands beside.
    """
    figure, axes = panel()
    rates = axis == "lr"
    rows = in_percent(response, metric, f"{metric}_low", f"{metric}_high")
    rows = rows.assign(x=response[axis] if rates else 100 * response[axis])
    lines = by_paradigm(side_by_side(rows, logarithmic=rates))
    for name, style in line_styles(lines).items():
        line = lines[name]
        n = span(line.loc[line["num_seeds"] > 0, "num_seeds"])
        draw(axes, line, style, f"{name} (n={n})", filled=False, unit=" %")
        look: dict[str, Any] = {"unit": " %", "size": MARKER_SIZE + 2, "zorder": 3}
        best = line[line["chosen"]]
        draw(axes, best, style, f"{name}, chosen", joined=False, legend=False, **look)
    for name, style in line_styles(levels["paradigm"]).items():
        (chosen,) = levels[levels["paradigm"] == name].to_dict("records")
        height = 100 * chosen[f"validation_{metric}"]
        level = axes.axhline(height, color=style.colour, linestyle=style.dashes)
        level.set_label(f"{name}, chosen (n={chosen['num_seeds']})")
        level.set_url(f"{name}, chosen: {number(height)} %")
    if rates:
        logarithmic(axes, rows["x"].dropna())
        return finished(figure, "learning rate (of the first phase)", y_label)
    axes.margins(x=0.08)
    return finished(figure, "switch point (% of the budget)", y_label)


@own_settings()
def factors_figure(levels: pd.DataFrame) -> Figure:
    """A panel per factor, one metric above the other, a line per paradigm with its intervals.

    Factors whose values are numbers have an axis of numbers, the others one of names, on which
    marks are not joined. The base is on a vertical line in each panel.

    Args:
        levels: one row per (factor, value, paradigm, metric), in the order of factors and values:
            `factor` (label of the axis), `value` (numbers or names), `base` (whether it is that
            of the base), `paradigm`, `metric` (its name with its unit), `mean`, `low`, `high`
            (fractions; bounds NaN where there is no interval).
    """
    levels = in_percent(levels)
    factors, metrics = (list(dict.fromkeys(levels[name])) for name in ("factor", "metric"))
    columns = min(len(factors), _MOST_COLUMNS)
    rows = len(metrics) * math.ceil(len(factors) / columns)
    width = max(WIDTH, _BESIDE + _PANEL_WIDTH * columns)
    figure = Figure(figsize=(width, _BESIDE + _PANEL_HEIGHT * rows))
    for (row, column), axes in np.ndenumerate(figure.subplots(rows, columns, squeeze=False)):
        band, place = divmod(row, len(metrics))
        of_row = factors[columns * band :][:columns]
        if column >= len(of_row):
            axes.remove()
            continue
        mine = levels[levels["metric"] == metrics[place]]
        _draw_factor(axes, mine[mine["factor"] == of_row[column]])
        reach = mine[["mean", "low", "high"]].to_numpy(float)
        if not np.isnan(reach).all():  # the same in all panels: factors can be compared
            limit_shares(axes, np.nanmin(reach), np.nanmax(reach))
        last = place == len(metrics) - 1
        label(axes, of_row[column] if last else "", "" if column else metrics[place])
    shared_legend(figure, figure.axes, by_paradigm(levels))
    return figure


def _draw_factor(axes: Axes, rows: pd.DataFrame) -> None:
    """One metric against one factor."""
    values = list(dict.fromkeys(rows["value"]))
    named = isinstance(values[0], str)
    places = {value: place if named else value for place, value in enumerate(values)}
    rows = rows.assign(at=rows["value"], x=rows["value"].map(places).astype(float))
    for place in rows.loc[rows["base"], "x"].unique():
        axes.axvline(place, color=GREY, linestyle=":", linewidth=1.2, label="base")
    low, high = rows["x"].min(), rows["x"].max()
    wide = not named and 0 < _LOGARITHMIC_FROM * low < high
    lines = by_paradigm(side_by_side(rows, wide))
    for name, style in line_styles(lines).items():
        draw(axes, lines[name], style, name, joined=not named, unit=" %")
    if wide:
        logarithmic(axes, values)
    else:
        texts = [value if named else f"{value:g}" for value in values]
        axes.set_xticks([*places.values()], texts, parse_math=False)
        beside = 0.5 if named else 0.1 * (high - low) or 1.0
        axes.set_xlim(low - beside, high + beside)


def logarithmic(axes: Axes, values: ArrayLike) -> None:
    """A logarithmic x axis with ticks that can be read side by side."""
    values = np.unique(values)
    low, high = values[[0, -1]]
    margin = (high / low) ** 0.06 if high > low else 2.0
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_xlim(low / margin, high * margin)
    axes.xaxis.set_major_locator(FixedLocator(_ticks(values).tolist()))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:.3g}" if x < 1 else f"{x:.5g}")


def _ticks(values: NDArray[Any]) -> NDArray[Any]:
    """The values, powers of ten between them, or the ends: the first that lie far enough apart."""
    low, high = values[[0, -1]]
    powers = 10.0 ** np.arange(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    for ticks in (values, powers):
        apart = np.diff(np.log(ticks)) > _TOUCHING * np.log(high / low)
        if 1 < len(ticks) <= _MOST_TICKS and apart.all():
            return ticks
    return np.unique(values[[0, -1]])
