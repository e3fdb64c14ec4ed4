"""Scores against compute, against searched axes, and against the factors of settings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.marks import (
    draw,
    draw_seeds,
    label_values,
    number,
    scaled,
    side_by_side,
)
from analysis.figures.style import (
    GREY,
    finished,
    label,
    limit_values,
    line_styles,
    own_settings,
    panel,
    shared_legend,
    styled,
)
from analysis.forms import SHARES, Unit, amount, span
from analysis.groups import AXES, Axis

_MOST_MARKS = 12  # along a curve, however many evaluations it has
_COLUMN = 0.02  # of the x axis, of the seeds of one paradigm at the end of its curve

_PANEL_WIDTH, _PANEL_HEIGHT, _BESIDE = 2.7, 2.0, 0.4
"""Inches of the panel of a factor, and of what stands beside or above all of them."""

_LOGARITHMIC_FROM = 4
"""Ratio of the largest value to the smallest above which the axis of a factor is logarithmic."""


@own_settings()
def compute_figure(
    curve: pd.DataFrame,
    y_label: str,
    ends: pd.DataFrame | None = None,
    axis: Axis = "flops",
    noun: str = "mosaics",
    seeds: Mapping[str, str] | None = None,
    unit: Unit = SHARES,
) -> Figure:
    """A measure against training compute: one line per paradigm, its seeds at the end.

    The axis shows what lies between the second evaluation and the last, not the rise from
    chance before. It holds all means and seeds; bands may go beyond.

    Args:
        curve: as `analysis.digest.means.learning_curve` gives it for one split; a
            line ends where a seed has no evaluation, as a mean over others would look like
            progress.
        y_label: name of the measure, with its unit.
        ends: `paradigm`, `seed` and `score` of each at the end.
        axis: what is compute here.
        noun: name of the instances, in the plural.
        seeds: paradigm -> n in words; None: as many as the curve is of.
        unit: of the measure.
    """
    curve = curve[curve["num_seeds"] == curve["num_cells"]]
    x = curve[AXES[axis]]
    rows = scaled(curve, unit).assign(x=x, at=[amount(each, axis, noun) for each in x])
    if ends is None:
        ends = pd.DataFrame(columns=["paradigm", "seed", "score"])
    figure, axes = panel()
    for place, (name, style, line) in enumerate(styled(rows), start=1):
        n = seeds[name] if seeds else span(line["num_seeds"])
        draw(axes, line, style, f"{name} (n={n})", band=True, unit=unit.sign, most=_MOST_MARKS)
        scores = unit.scale * ends[ends["paradigm"] == name].set_index("seed")["score"]
        says = [
            f"{name}, seed {seed}: {number(score)}{unit.sign}" for seed, score in scores.items()
        ]
        beside = np.full(len(scores), x.max() * (1 + _COLUMN * place))
        draw_seeds(axes, beside, scores, style.colour, says)
    x_labels = {
        "flops": "training compute (FLOPs)",
        "seconds": "measured training time (s)",
        "mosaics": f"{noun} trained on",
    }
    finished(figure, x_labels[axis], y_label, unit)
    later = rows.loc[rows["budget_fraction"] > rows["budget_fraction"].min(), "mean"]
    if len(shown := pd.concat([later, unit.scale * ends["score"]]).dropna()):
        limit_values(axes, shown.min(), shown.max(), unit)
    return figure


@own_settings()
def response_figure(
    response: pd.DataFrame,
    axis: str,
    metric: str,
    y_label: str,
    levels: pd.DataFrame,
    unit: Unit = SHARES,
) -> Figure:
    """A metric against a searched axis, one line per paradigm, the chosen option filled.

    Args:
        response: as `analysis.digest.choose` gives it.
        axis: `lr` or `switch_point`, a column of it.
        metric: `saif`, `accuracy`, or a measure of recorded runs; bars reach from the lowest seed
            to the highest.
        y_label: its name with its unit.
        levels: rows of paradigms, as `analysis.choose` gives them, whose level stands beside.
        unit: of the metric.
    """
    figure, axes = panel()
    rates = axis == "lr"
    x, chosen = response[axis] * (1 if rates else 100), response["chosen"]
    rows = scaled(response, unit, metric, f"{metric}_low", f"{metric}_high")
    rows = rows.assign(x=x, at=x.map(number) + np.where(chosen, ", chosen", ""), filled=chosen)
    for name, style, line in styled(side_by_side(rows, logarithmic=rates)):
        n = span(line.loc[line["num_seeds"] > 0, "num_seeds"])
        draw(axes, line, style, f"{name} (n={n})", unit=unit.sign)
    styles = line_styles(levels["paradigm"])
    for level in levels.to_dict("records"):
        name, height = f"{level['paradigm']}, chosen", unit.scale * level[f"validation_{metric}"]
        colour, dashes, _ = styles[level["paradigm"]]
        across = axes.axhline(height, color=colour, linestyle=dashes)
        across.set(
            label=f"{name} (n={level['num_seeds']})", url=f"{name}: {number(height)}{unit.sign}"
        )
    label_values(axes, x, logarithmic=rates)
    what = "learning rate (of the first phase)" if rates else "switch point (% of the budget)"
    return finished(figure, what, y_label, unit)


@own_settings()
def factors_figure(levels: pd.DataFrame, units: Mapping[str, Unit]) -> Figure:
    """A row of panels per factor, a column per metric, a line per paradigm with its intervals.

    Factors all of whose values are numbers have an axis of numbers, the others one of names, on
    which marks are not joined. The base is on a vertical line in each panel.

    Args:
        levels: one row per (factor, value, paradigm, metric), in the order of factors and values:
            `factor` (label of the axis), `value` (a number or a name), `base` (whether it is that
            of the base), `paradigm`, `metric` (its name with its unit), `mean`, `low`, `high`
            (bounds NaN where there is no interval).
        units: metric -> its unit.
    """
    factors, metrics = levels["factor"].unique(), levels["metric"].unique()
    width, height = _PANEL_WIDTH * len(metrics), _PANEL_HEIGHT * len(factors)
    figure = Figure(figsize=(_BESIDE + width, _BESIDE + height))
    panels = figure.subplots(len(factors), len(metrics), squeeze=False, sharey="col")
    for metric, column in zip(metrics, panels.T, strict=True):
        unit = units[metric]
        of_metric = scaled(levels[levels["metric"] == metric], unit)
        for factor, axes in zip(factors, column, strict=True):
            _draw_factor(axes, of_metric[of_metric["factor"] == factor], unit)
            label(axes, factor, title=metric if axes is column[0] else "")
        reach = of_metric[["mean", "low", "high"]].to_numpy(float)
        if not np.isnan(reach).all():  # the same in all panels: factors can be compared
            limit_values(axes, np.nanmin(reach), np.nanmax(reach), unit)
    shared_legend(figure, line_styles(levels["paradigm"]))
    return figure


def _draw_factor(axes: Axes, rows: pd.DataFrame, unit: Unit) -> None:
    """One metric against one factor."""
    values = rows["value"].unique()
    named = any(isinstance(value, str) for value in values)
    x = rows["value"].factorize()[0] if named else rows["value"].astype(float)
    rows = rows.assign(at=rows["value"], x=x).sort_values("x", kind="stable")
    axes.axvline(rows.loc[rows["base"], "x"].iloc[0], color=GREY, linestyle=":", label="base")
    low, high = rows["x"].min(), rows["x"].max()
    wide = not named and 0 < _LOGARITHMIC_FROM * low < high
    for name, style, line in styled(side_by_side(rows, wide)):
        draw(axes, line, style._replace(dashes="") if named else style, name, unit=unit.sign)
    if named:
        axes.margins(x=0.25)
        axes.set_xticks(range(len(values)), [*map(str, values)], parse_math=False)
    else:
        label_values(axes, values, wide)
