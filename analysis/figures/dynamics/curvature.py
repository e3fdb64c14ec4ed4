"""Curvature of the population loss along its trajectory: why a paradigm is fast or slow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.dynamics.trajectories import Pair, of_pair
from analysis.figures.style import (
    GREY,
    TEXT,
    dress,
    line_styles,
    own_settings,
    shared_legend,
)

ROWS = {
    "eigenvalue_max": "largest eigenvalue",
    "eigenvalue_min": "smallest eigenvalue",
    "condition_number": "condition number",
    "rate": "rate |∇L|² / L",
}
"""Column -> the axis of its row of panels."""

LARGEST = 100
"""Condition number at which the axis is cut."""


@own_settings()
def curvature_figure(table: pd.DataFrame, pairs: Sequence[Pair]) -> Figure:
    """Eigenvalues, condition number and local rate against time: one column a (m, C).

    Args:
        table: as `study.theory.linear_orthogonal.curvature.along` gives it, at times > 0, with
            `m`, `num_classes` and `paradigm`.
        pairs: which (m, C), in this order.
    """
    figure = Figure(figsize=(0.7 + 3.6 * len(pairs), 8.8), layout="constrained")
    panels = figure.subplots(len(ROWS), len(pairs), squeeze=False, sharex="col")
    styles = line_styles(table["paradigm"])
    for column, (m, num_classes) in zip(panels.T, pairs, strict=True):
        mine = of_pair(table, m, num_classes)
        for axes, name in zip(column, ROWS, strict=True):
            axes.set_xscale("log")
            axes.set_xlim(mine["t"].min(), mine["t"].max())
            for paradigm, style in reversed(styles.items()):
                rows = mine[mine["paradigm"] == paradigm]
                values = _through_poles(rows) if name == "condition_number" else rows[name]
                axes.plot(
                    rows["t"],
                    values,
                    color=style.colour,
                    linestyle=style.dashes,
                    linewidth=1.6,
                    label=paradigm,
                    url=paradigm,
                )
            if name in ("condition_number", "rate"):
                axes.set_yscale("log")
                if name == "condition_number":
                    axes.set_ylim(0.9, LARGEST)
            else:
                axes.axhline(0, color=GREY, linewidth=0.7)
            last = axes is column[-1]
            dress(axes, "time t of the gradient flow" if last else "", ROWS[name])
        column[0].set_title(f"m = {m}, C = {num_classes:,}", fontsize=TEXT + 1)
    shared_legend(figure, panels.ravel(), styles)
    return figure


def _through_poles(rows: pd.DataFrame) -> pd.Series:
    """Condition numbers that leave the frame on both sides of where an eigenvalue passes 0."""
    negative = rows["eigenvalue_min"].to_numpy() < 0
    passes = negative[1:] != negative[:-1]
    beside = np.append(passes, False) | np.insert(passes, 0, False)
    values = rows["condition_number"]
    return values.mask(beside | ~np.isfinite(values), 10 * LARGEST)
