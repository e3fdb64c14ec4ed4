"""How a linear model grows (section 4 and figure 4 of the paper), and why: the curvature.

Figures of one column a (m, C) and one row a quantity, over the time of the gradient flow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

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
    label,
    line_styles,
    own_settings,
    shared_legend,
)

TRAJECTORY = {
    "mu": "classifier \N{GREEK SMALL LETTER MU}",
    "nu": "focus \N{GREEK SMALL LETTER NU}",
    "loss": "loss (nats)",
}
CURVATURE = {
    "eigenvalue_max": "largest eigenvalue",
    "eigenvalue_min": "smallest eigenvalue",
    "condition_number": "condition number",
    "rate": "rate |∇L|² / L",
}
"""Column -> the axis of its row of panels."""

LARGEST = 100
"""Condition number at which the axis is cut."""

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
            columns of `TRAJECTORY`.
        measured: of trained models, means over seeds, one row an evaluation: the same columns
            with `flow_time` for `t`, those of `TRAJECTORY` with `_low` and `_high` (NaN with one
            seed).
        pairs: which (m, C), in this order.
        levels: shares of log C that the panels of the loss mark.
    """
    styles = line_styles({*exact["paradigm"], *measured["paradigm"]})
    figure, columns = _panels(TRAJECTORY, pairs, 3.1, 7.6)
    for pair, column in zip(pairs, columns, strict=True):
        theory, trained = of_pair(exact, *pair), of_pair(measured, *pair)
        start = _onset(theory, pair[1])
        column["loss"].set_xlim(start, max([*theory["t"], *trained["flow_time"]]))
        later = trained[trained["flow_time"] > start]
        for name, axes in column.items():
            # Where lines meet, dots over dashes over a solid line show all of them.
            for paradigm, style in reversed(styles.items()):
                of_theory, mine = (t[t["paradigm"] == paradigm] for t in (theory, later))
                if len(of_theory):
                    _line(axes, of_theory["t"], of_theory[name], style, paradigm)
                _points(axes, mine, name, style, paradigm)
        _mark_levels(column["loss"], pair[1], levels, theory)
    shared_legend(figure, styles)
    return figure


@own_settings()
def curvature_figure(table: pd.DataFrame, pairs: Sequence[Pair]) -> Figure:
    """Eigenvalues, condition number and local rate against time: one column a (m, C).

    Args:
        table: as `chapters.dynamics.linear_orthogonal.curvature.along` gives it, at times > 0,
            with `m`, `num_classes` and `paradigm`.
        pairs: which (m, C), in this order.
    """
    styles = line_styles(table["paradigm"])
    figure, columns = _panels(CURVATURE, pairs, 3.6, 8.8)
    for pair, column in zip(pairs, columns, strict=True):
        mine = of_pair(table, *pair)
        for name, axes in column.items():
            for paradigm, style in reversed(styles.items()):
                rows = mine[mine["paradigm"] == paradigm]
                values = _through_poles(rows) if name == "condition_number" else rows[name]
                _line(axes, rows["t"], values, style, paradigm)
            if name.startswith("eigenvalue"):
                axes.axhline(0, color=GREY, linewidth=0.7)
            else:
                axes.set_yscale("log")
        column["condition_number"].set(
            xlim=(mine["t"].min(), mine["t"].max()), ylim=(0.9, LARGEST)
        )
    shared_legend(figure, styles)
    return figure


def of_pair(table: pd.DataFrame, m: int, num_classes: int) -> pd.DataFrame:
    """The rows of one (m, C)."""
    return table[(table["m"] == m) & (table["num_classes"] == num_classes)]


def _panels(
    rows: Mapping[str, str], pairs: Sequence[Pair], width: float, height: float
) -> tuple[Figure, list[dict[str, Axes]]]:
    """Panels against the logarithm of time, by column and row; a column is so many inches wide."""
    figure = Figure(figsize=(0.7 + width * len(pairs), height))
    panels = figure.subplots(len(rows), len(pairs), squeeze=False, sharex="col")
    for column, (m, num_classes) in zip(panels.T, pairs, strict=True):
        column[0].set_xscale("log")
        for axes, y_label in zip(column, rows.values(), strict=True):
            title = f"m = {m}, C = {num_classes:,}" if axes is column[0] else ""
            x_label = "time t of the gradient flow" if axes is column[-1] else ""
            label(axes, x_label, y_label, title, fontsize=TEXT + 1)
    return figure, [dict(zip(rows, column, strict=True)) for column in panels.T]


def _onset(theory: pd.DataFrame, num_classes: int) -> float:
    """The power of ten before the first loss has begun to fall."""
    moved = theory[(theory["t"] > 0) & (theory["loss"] < _ONSET * math.log(num_classes))]
    return 10.0 ** math.floor(math.log10(moved["t"].min())) if len(moved) else 1.0


def _line(axes: Axes, x: pd.Series, y: pd.Series, style: LineStyle, name: str) -> None:
    look: dict[str, Any] = {"color": style.colour, "linestyle": style.dashes, "linewidth": 1.6}
    axes.plot(x, y, label=name, url=name, **look)


def _points(axes: Axes, rows: pd.DataFrame, name: str, style: LineStyle, paradigm: str) -> None:
    """Some of the evaluations, evenly in the logarithm of time; those of one setting are full."""
    for number, (_, setting) in enumerate(rows.groupby("setting", sort=True)):
        ends = {"flow_time": "x", name: "mean", f"{name}_low": "low", f"{name}_high": "high"}
        shown = _spread(setting)[[*ends]].rename(columns=ends).assign(filled=number == 0)
        draw(axes, shown, style._replace(dashes=""), paradigm)


def _spread(rows: pd.DataFrame) -> pd.DataFrame:
    if len(rows) <= _MARKERS:
        return rows
    times = np.log(rows["flow_time"].to_numpy(float))
    wanted = np.linspace(times[0], times[-1], _MARKERS)
    return rows.iloc[np.unique(np.abs(np.subtract.outer(wanted, times)).argmin(axis=1))]


def _mark_levels(
    axes: Axes, num_classes: int, levels: Sequence[float], theory: pd.DataFrame
) -> None:
    top = math.log(num_classes)
    axes.set_yscale("log")
    if len(theory):
        axes.set_ylim(theory["loss"].min() / 1.5, 1.8 * top)
    for share in levels:
        axes.axhline(share * top, color=GREY, linewidth=0.7, linestyle=(0, (1, 2)))
        place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "ha": "right"}
        text = f"{100 * share:g} %"
        axes.text(1, share * top, text, va="bottom", fontsize=SMALL - 1, color=GREY, **place)


def _through_poles(rows: pd.DataFrame) -> pd.Series:
    """Condition numbers that leave the frame on both sides of where an eigenvalue passes 0."""
    negative = rows["eigenvalue_min"] < 0
    passes = negative != negative.shift(fill_value=negative.iloc[0])
    beside = passes | passes.shift(-1, fill_value=False)
    values = rows["condition_number"]
    return values.mask(beside | ~np.isfinite(values), 10 * LARGEST)
