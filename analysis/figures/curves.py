"""Scores against training compute, seconds, or mosaics or posts seen."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.marks import draw, draw_seeds, interval, number
from analysis.figures.style import (
    by_paradigm,
    finished,
    limit_shares,
    line_styles,
    metric_label,
    own_settings,
    panel,
    seeds_label,
)
from analysis.groups import AXES, Axis
from analysis.words import amount, instances

_MOST_MARKS = 12  # along a line, however many evaluations it has
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_COLUMN = 0.02  # of the x axis, of the seeds of one paradigm at the end of its line


@own_settings()
def compute_figure(
    curve: pd.DataFrame,
    metric: str,
    seeds: pd.DataFrame | None = None,
    axis: Axis = "flops",
    threshold: float | None = None,
    task: str = "",
    planned: Mapping[str, int] | None = None,
) -> Figure:
    """A metric against training compute: one line a paradigm, its seeds at the end.

    The axis shows what lies between the second evaluation and the last, not the rise from
    chance before. It holds all means and seeds; bands may go beyond.

    Args:
        curve: as `analysis.digest.means.learning_curve` gives it for one split; a
            line ends where a seed has no evaluation, as a mean over others would look like
            progress.
        metric: `saif`, `accuracy`, or a measure of recorded runs.
        seeds: `paradigm`, `seed` and the metric (a fraction) of each at the end.
        axis: what is compute here.
        threshold: of SAIF, for the label; None: the task's own.
        task: of the curve; empty: of mosaics.
        planned: paradigm -> its seeds, said beside those that it has; None: as many.
    """
    noun = instances(task)
    curve = curve[curve["num_seeds"] == curve["num_cells"]]
    if seeds is None:
        seeds = pd.DataFrame(columns=["paradigm", "seed", metric], dtype=float)
    end = float(curve[AXES[axis]].max())
    unit, x_label = _x_unit(axis, end, noun)
    figure, axes = panel()
    lines, of_seeds = by_paradigm(curve), by_paradigm(seeds)
    for number_of, (name, style) in enumerate(line_styles(lines).items(), start=1):
        line = lines[name]
        rows = pd.DataFrame({"x": line[AXES[axis]] / unit})
        rows[["mean", "low", "high"]] = 100 * line[["mean", "low", "high"]]
        rows["says"] = [
            f"{name}, {amount(unit * x, axis, noun)}: {number(mean)} %{interval(low, high)}"
            for x, mean, low, high in rows.itertuples(index=False)
        ]
        label = seeds_label(name, line["num_seeds"], (planned or {}).get(name))
        draw(axes, rows, style, label, band=True, most=_MOST_MARKS)
        mine = of_seeds.get(name, seeds[:0])
        says = [
            f"{name}, seed {seed}: {number(100 * score)} %"
            for seed, score in mine[["seed", metric]].itertuples(index=False)
        ]
        x = np.full(len(mine), end / unit * (1 + _COLUMN * number_of))
        draw_seeds(axes, x, 100 * mine[metric], style.colour, says)
    finished(figure, x_label, metric_label(metric, threshold, task))
    first = curve["budget_fraction"].min()
    means = curve.loc[curve["budget_fraction"] > first, "mean"]
    shown = 100 * np.concatenate([means if means.notna().any() else curve["mean"], seeds[metric]])
    if np.isfinite(shown).any():
        limit_shares(axes, np.nanmin(shown), np.nanmax(shown))
    return figure


def _x_unit(axis: Axis, largest: float, noun: str) -> tuple[float, str]:
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
    return 10.0**exponent, f"{quantity} (10{str(exponent).translate(_RAISED)} {unit})"
