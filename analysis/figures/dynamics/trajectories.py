"""How focus and classifier of a linear model grow (section 4 and figure 4 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.marks import draw
from analysis.figures.style import (
    GREY,
    SMALL,
    TEXT,
    LineStyle,
    dress,
    line_styles,
    own_settings,
    shared_legend,
)

ROWS = {
    "mu": "classifier \N{GREEK SMALL LETTER MU}",
    "nu": "focus \N{GREEK SMALL LETTER NU}",
    "loss": "loss (nats)",
}
"""Column -> the axis of its row of panels."""

_MARKERS = 10  # along a line, however many evaluations it has
_ONSET = 0.99  # share of the loss at the start: before, nothing is seen to move

Pair = tuple[int, int]
"""(m, C)."""


@own_settings()
def trajectory_figure(
    exact: pd.DataFrame,
    measured: pd.DataFrame,
    pairs: Sequence[Pair],
    levels: Sequence[float] = (),
) -> Figure:
    """mu, nu and loss over the time of the gradient flow: one column a (m, C), a line a paradigm.

    Args:
        exact: the closed form, one row a point: `m`, `num_classes`, `paradigm`, `t` and the
            columns of `ROWS`.
        measured: of trained models, means over seeds, one row an evaluation: the same columns
            with `flow_time` for `t`, each of `ROWS` with `_low` and `_high` (NaN with one seed).
        pairs: which (m, C), in this order.
        levels: shares of log C that the panels of the loss mark.
    """
    figure = Figure(figsize=(0.7 + 3.1 * len(pairs), 7.6), layout="constrained")
    panels = figure.subplots(len(ROWS), len(pairs), squeeze=False, sharex="col")
    styles = line_styles({*exact["paradigm"], *measured["paradigm"]})
    for column, (m, num_classes) in zip(panels.T, pairs, strict=True):
        theory, trained = (of_pair(table, m, num_classes) for table in (exact, measured))
        start = _onset(theory, num_classes)
        end = max(theory["t"].max(), trained["flow_time"].max() if len(trained) else 0.0)
        for axes, name in zip(column, ROWS, strict=True):
            axes.set_xscale("log")
            axes.set_xlim(start, end)
            # Where lines meet, dots over dashes over a solid line show all of them.
            for paradigm, style in reversed(styles.items()):
                _line(axes, theory[theory["paradigm"] == paradigm], name, style, paradigm)
                mine = trained[trained["paradigm"] == paradigm]
                _points(axes, mine[mine["flow_time"] > start], name, style, paradigm)
            last = axes is column[-1]
            dress(axes, "time t of the gradient flow" if last else "", ROWS[name])
            if name == "loss":
                _mark_levels(axes, num_classes, levels, theory)
        column[0].set_title(f"m = {m}, C = {num_classes:,}", fontsize=TEXT + 1)
    shared_legend(figure, panels.ravel(), styles)
    return figure


def of_pair(table: pd.DataFrame, m: int, num_classes: int) -> pd.DataFrame:
    """The rows of one (m, C)."""
    return table[(table["m"] == m) & (table["num_classes"] == num_classes)]


def _onset(theory: pd.DataFrame, num_classes: int) -> float:
    """The power of ten before the first loss has begun to fall."""
    moved = theory[(theory["t"] > 0) & (theory["loss"] < _ONSET * math.log(num_classes))]
    return 10.0 ** math.floor(math.log10(moved["t"].min())) if len(moved) else 1.0


def _line(axes: Axes, rows: pd.DataFrame, name: str, style: LineStyle, label: str) -> None:
    if len(rows):
        axes.plot(
            rows["t"],
            rows[name],
            color=style.colour,
            linestyle=style.dashes,
            linewidth=1.6,
            label=label,
            url=label,
        )


def _points(axes: Axes, rows: pd.DataFrame, name: str, style: LineStyle, label: str) -> None:
    """Some of the evaluations, evenly in the logarithm of time; each setting in a shade."""
    for number, (_, setting) in enumerate(rows.groupby("setting", sort=True)):
        ends = {"x": "flow_time", "mean": name, "low": f"{name}_low", "high": f"{name}_high"}
        shown = _spread(setting).assign(**{end: setting[column] for end, column in ends.items()})
        draw(axes, shown, style, label, joined=False, filled=number == 0, legend=False)


def _spread(rows: pd.DataFrame) -> pd.DataFrame:
    if len(rows) <= _MARKERS:
        return rows
    times = np.log(rows["flow_time"].to_numpy(float))
    wanted = np.linspace(times[0], times[-1], _MARKERS)
    return rows.iloc[sorted({int(np.abs(times - each).argmin()) for each in wanted})]


def _mark_levels(
    axes: Axes, num_classes: int, levels: Sequence[float], theory: pd.DataFrame
) -> None:
    top = math.log(num_classes)
    axes.set_yscale("log")
    if len(theory):
        axes.set_ylim(theory["loss"].min() / 1.5, 1.8 * top)
    for share in levels:
        axes.axhline(share * top, color=GREY, linewidth=0.7, linestyle=(0, (1, 2)))
        axes.annotate(
            f"{100 * share:g} %",
            (1, share * top),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            fontsize=SMALL - 1,
            color=GREY,
        )
