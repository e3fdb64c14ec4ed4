"""Scores against training compute, seconds, or mosaics or posts seen."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.figure import Figure

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
from analysis.groups import AXES, Axis
from analysis.words import instances, level

_MARKERS = 10  # along a line, however many evaluations it has


@own_settings()
def compute_figure(
    curve: pd.DataFrame,
    metric: str,
    split: str = "test",
    confidence: float = 0.95,
    axis: Axis = "flops",
    threshold: float | None = None,
    task: str = "",
) -> Figure:
    """A metric against training compute: one line a paradigm, a band for the interval.

    A line ends where some seed of its option has no evaluation within the cut: a mean over
    different seeds than before would look like progress.

    Args:
        curve: as `analysis.comparison.curves.learning_curve` gives it for that split.
        metric: `saif`, `accuracy`, or a measure of recorded runs.
        split: name of the split.
        confidence: of the band, in (0, 1).
        axis: what is compute here.
        threshold: of SAIF, for the label; None: the task's own.
        task: of the curve; empty: of mosaics.
    """
    complete = curve[curve["num_seeds"] == curve["num_cells"]]
    unit, x_label = x_unit(axis, complete[AXES[axis]].max(), instances(task))
    figure, axes = panel()
    lines = by_paradigm(complete)
    for i, (name, style) in enumerate(line_styles(lines).items()):
        line = lines[name]
        x = line[AXES[axis]] / unit
        step = math.ceil(len(line) / _MARKERS)
        axes.plot(
            x,
            100 * line["mean"],
            color=style.colour,
            linestyle=style.dashes,
            marker=style.marker,
            markersize=MARKER_SIZE,
            markevery=(i % step, step),
            linewidth=1.6,
            label=seeds_label(name, line["num_seeds"]),
        )
        band = (100 * line["low"], 100 * line["high"])
        axes.fill_between(x, *band, color=style.colour, alpha=0.13, linewidth=0)
    text = f"{split} split; mean over n seeds, band: {level(confidence)} interval (from n=2)"
    if len(complete) < len(curve):
        text += "; a line ends with its last evaluation that all seeds have within the cut"
    finished(figure, x_label, metric_label(metric, threshold, task), text)
    axes.xaxis.label.set_parse_math(True)  # a power of ten
    return figure


def x_unit(axis: Axis, largest: float, noun: str) -> tuple[float, str]:
    """How much one unit of the x axis is, and the axis' label."""
    if not largest > 0:  # NaN, too
        largest = 1.0
    if axis == "seconds":
        units = {"h": 3600.0, "min": 60.0, "s": 1.0}
        name = next((n for n, size in units.items() if largest >= 3 * size), "s")
        return units[name], f"measured training time ({name})"
    exponent = math.floor(math.log10(largest))
    what = {"flops": ("training compute", "FLOPs"), "mosaics": ("training data seen", noun)}
    quantity, unit = what[axis]
    if axis == "mosaics" and exponent < 5:
        return 1.0, f"{quantity} ({unit})"
    return 10.0**exponent, f"{quantity} ($10^{{{exponent}}}$ {unit})"
