"""Figures 2 and 3 of the paper from settings of a fixed focus, and the incentive against alpha."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from analysis.groups import PARADIGMS
from analysis.section.picture import Picture
from chapters.dynamics.figures.focus_panels import panels_figure
from chapters.dynamics.section.chapter import picture
from chapters.dynamics.section.focus import LINE, MEASURES, Focus, closed_form, final, theorem
from chapters.dynamics.section.measures import WIDEST_GAP
from chapters.dynamics.task import TASK

CLOSED_M, CLOSED_CLASSES = 20, 20
"""Of the lower row of the paper's figures."""

CLOSED_HORIZON = 2_000.0
"""Gradient-flow time to which the closed form is drawn where nothing was trained: that of the
published 100 epochs of 20 steps at learning rate 1."""

TIMES = (0.05, 0.25, 1.0)
"""Shares of training after which the incentive is shown against alpha."""

_ALONE = f"closed form m={CLOSED_M} C={CLOSED_CLASSES}", TASK, CLOSED_M, 0, CLOSED_CLASSES
"""The columns of `SETTING` there."""

_POINTS = 201
_DRAWN = ["setting", "paradigm", "line", "what", "x", "mean", "low", "high"]


def pictures(focus: Focus) -> list[Picture]:
    """Figure 2, figure 3, and the slope of the loss against alpha; none without a curve.

    Where no linear model was trained, a last row shows Theorem 1 alone.
    """
    if focus.curves.empty:
        return []
    curves = focus.curves.assign(time=focus.curves["epoch"])
    beside = closed_form(focus)
    beside = beside.assign(time=beside["epoch"])
    labels = dict.fromkeys(focus.settings["setting"], "epochs")
    alone = not focus.settings["task"].eq(TASK).any()
    if alone:
        curves = pd.concat([curves, _theory(curves["alpha"].unique())])
        labels[_ALONE[0]] = "time t of the gradient flow"
    floors = final(curves).query("task == @TASK and floor > 0")
    losses, incentives, _ = (
        pd.concat([_lines(curves, name, "measured"), _lines(beside, name, "closed form")])
        for name in MEASURES
    )
    floors = _lines(floors.assign(loss=floors["floor"]), "loss", "floor")
    slopes = pd.concat([_at_times(curves, "measured"), _at_times(beside, "closed form")])
    said: dict[str, Any] = {
        "curves": focus.curves,
        "overlaid": len(beside) > 0,
        "theory": (CLOSED_M, CLOSED_CLASSES) if alone else None,
        "times": TIMES,
    }
    of_alpha = dict.fromkeys(labels, "alpha")
    figures = {
        "fixed-focus-loss": panels_figure(pd.concat([losses, floors]), "loss (nats)", labels),
        "fixed-focus-incentive": panels_figure(incentives, "incentive (nats)", labels),
        "fixed-focus-slope": panels_figure(slopes, "−dL/dα (nats)", of_alpha, band=False),
    }
    return [picture(kind, figure, **said) for kind, figure in figures.items()]


def _theory(alphas: Iterable[float]) -> pd.DataFrame:
    """Curves of Theorem 1, where nothing was trained."""
    times = np.linspace(0, CLOSED_HORIZON, _POINTS)
    points = itertools.product(PARADIGMS, sorted(alphas), times)
    table = pd.DataFrame([(*_ALONE, *point) for point in points], columns=[*LINE, "flow_time"])
    share = table["flow_time"] / CLOSED_HORIZON
    return theorem(table).assign(time=table["flow_time"], budget_fraction=share)


def _lines(table: pd.DataFrame, measure: str, what: str, x: str = "time") -> pd.DataFrame:
    """What `panels_figure` draws, a line per alpha; no interval where the table has none."""
    return table.assign(
        what=what,
        line=[f"α = {alpha:g}" for alpha in table["alpha"]],
        x=table[x],
        mean=table[measure],
        low=table.get(f"{measure}_low", np.nan),
        high=table.get(f"{measure}_high", np.nan),
    ).sort_values(["alpha", "x"])[_DRAWN]


def _at_times(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """Slopes against alpha, a line per time: at the first point of each line not before it."""
    parts = []
    passed = table["budget_fraction"]
    for share in TIMES:
        at = share * (1 - 1e-9)
        # Where evaluations are rare, a much later point would show another time.
        late = table[(passed >= at) & (passed <= at + WIDEST_GAP)].sort_values("budget_fraction")
        first = late.drop_duplicates(["setting", "paradigm", "alpha"])
        points = _lines(first, "incentive_slope", what, "alpha")
        parts.append(points.assign(line=f"after {100 * share:g} % of training"))
    return pd.concat(parts)
