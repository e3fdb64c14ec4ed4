"""Figures 2 and 3 of the paper from settings of a fixed focus, and the incentive against alpha."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.forms import level, listed, span
from analysis.groups import PARADIGMS
from analysis.rules.statistics import CONFIDENCE
from analysis.section.picture import Picture
from chapters.dynamics.figures.focus_panels import Row, panels_figure
from chapters.dynamics.section.focus_settings import Setting, floors, solution
from chapters.dynamics.section.measures import WIDEST_GAP
from chapters.dynamics.task import TASK

CLOSED_M, CLOSED_CLASSES = 20, 20
"""Of the lower row of the paper's figures."""

CLOSED_HORIZON = 2_000.0
"""Gradient-flow time to which the closed form is drawn where nothing was trained: that of the
published 100 epochs of 20 steps at learning rate 1."""

TIMES = (0.05, 0.25, 1.0)
"""Shares of training after which the incentive is shown against alpha."""

_POINTS = 201
_INTERVAL = f"{level(CONFIDENCE)} t interval (from n=2)"
_NOTHING_TRAINED = f"Theorem 1 for m={CLOSED_M}, C={CLOSED_CLASSES}, nothing was trained"


def pictures(settings: Sequence[Setting], closed_row: bool) -> list[Picture]:
    """Figure 2, figure 3, and the slope of the loss against alpha; none without a curve.

    Args:
        settings: one row of panels each.
        closed_row: whether a last row shows Theorem 1 alone, as no linear model was trained.
    """
    curves = pd.concat([setting.curves for setting in settings])
    if curves.empty:
        return []
    rows = [_rows_of(setting) for setting in settings]
    overlaid = any(len(setting.closed_form) for setting in settings)
    said = (
        f" Mean over seeds (n={span(curves['num_seeds'])}); bands: {_INTERVAL}, cut by the frame."
    )
    said += " Dashed: Theorem 1 at the same time of gradient flow." if overlaid else ""
    if closed_row:
        rows.append(_rows_of_theory(sorted(set(curves["alpha"]))))
        said += f" Last row: {_NOTHING_TRAINED}."
    floor = " Dotted: what the population loss tends to." if overlaid or closed_row else ""
    bars = said.replace("bands:", "bars:").replace(" at the same time of gradient flow", "")
    times = listed([f"{100 * time:g}" for time in TIMES])
    losses, incentives, slopes = zip(*rows, strict=True)
    return [
        Picture(
            name="fixed-focus-loss",
            title="Loss under a fixed focus",
            caption=(
                "Cross-entropy loss on the train split while attention on the foreground is held "
                f"at alpha and only the classifier trains (figure 2 of the paper).{said}{floor}"
            ),
            figure=panels_figure(losses, "loss (nats)"),
        ),
        Picture(
            name="fixed-focus-incentive",
            title="Incentive of the focus to improve",
            caption=(
                "L(alpha) - L(min(alpha + .01, 1)) on the train split, for the classifier of each "
                "epoch (figure 3 of the paper); at alpha = 1 it is 0 by definition." + said
            ),
            figure=panels_figure(incentives, "incentive (nats)"),
        ),
        Picture(
            name="fixed-focus-slope",
            title="Incentive against alpha",
            caption=(
                "Slope of the loss, -dL/dalpha, on the train split against alpha, after the first "
                f"{times} % of training: how the incentive depends on alpha, which claims C12 to "
                f"C14 are about. At alpha = 1 the slope need not be 0.{bars}"
            ),
            figure=panels_figure(slopes, "−dL/dα (nats)", band=False),
        ),
    ]


def _rows_of(setting: Setting) -> tuple[Row, Row, Row]:
    """The rows of panels of a setting: loss, incentive, slope."""
    shown = setting.curves if setting.task == TASK else setting.curves[:0]
    floors = _floors(shown, setting.num_classes)
    return _rows(setting.name, "epochs", "epoch", setting.curves, setting.closed_form, floors)


def _rows_of_theory(alphas: Sequence[float]) -> tuple[Row, Row, Row]:
    """The same of Theorem 1, where nothing was trained."""
    times = np.linspace(0, CLOSED_HORIZON, _POINTS)
    table = pd.concat(
        [
            solution(name, CLOSED_CLASSES, times, alpha, CLOSED_M).assign(
                paradigm=name, alpha=alpha, budget_fraction=times / CLOSED_HORIZON
            )
            for name in PARADIGMS
            for alpha in alphas
        ],
        ignore_index=True,
    )
    name, label = f"closed form m={CLOSED_M} C={CLOSED_CLASSES}", "time t of the gradient flow"
    return _rows(name, label, "t", table, table[:0], _floors(table, CLOSED_CLASSES))


def _rows(
    name: str,
    x_label: str,
    x: str,
    curves: pd.DataFrame,
    closed_form: pd.DataFrame,
    floors: pd.DataFrame,
) -> tuple[Row, Row, Row]:
    """Loss and incentive against time, one line an alpha; slopes against alpha, one a time.

    Args:
        name: name of the setting.
        x_label, x: label of the time axis, and its column.
        curves: measured curves; where nothing was trained, Theorem 1.
        closed_form: Theorem 1 beside the measured curves; may be empty.
        floors: of the loss, where it is shown what it tends to.
    """

    def over_time(measure: str, floors: pd.DataFrame) -> Row:
        lines, exact = _lines(curves, measure, x), _lines(closed_form, measure, x)
        return Row(name, x_label, lines, exact, floors)

    none = floors[:0]
    slopes = Row(name, "alpha", _at_times(curves), _at_times(closed_form), none)
    return over_time("loss", floors), over_time("incentive", none), slopes


def _floors(curves: pd.DataFrame, num_classes: int) -> pd.DataFrame:
    """The floors above 0; the axis is already drawn at 0."""
    found = floors(curves, num_classes).query("floor > 0")
    return found.assign(line=_of_alpha(found))


def _of_alpha(table: pd.DataFrame) -> list[str]:
    return [f"α = {alpha:g}" for alpha in table["alpha"]]


def _lines(table: pd.DataFrame, measure: str, x: str) -> pd.DataFrame:
    """The columns that `Row` names, a line an alpha; no interval where the table has none."""
    table = table.sort_values(["alpha", x])
    bounds = {end: table.get(f"{measure}_{end}", np.nan) for end in ("low", "high")}
    named = table.assign(line=_of_alpha(table), x=table[x], mean=table[measure], **bounds)
    return named[["paradigm", "alpha", "line", "x", "mean", "low", "high"]]


def _at_times(table: pd.DataFrame) -> pd.DataFrame:
    """Slopes against alpha, a line a time: at the first point of each alpha not before it."""
    parts = []
    passed = table["budget_fraction"]
    for share in TIMES:
        at = share * (1 - 1e-9)
        # Where evaluations are rare, a much later point would show another time.
        late = table[(passed >= at) & (passed <= at + WIDEST_GAP)]
        first = late.sort_values("budget_fraction").drop_duplicates(["paradigm", "alpha"])
        points = _lines(first, "incentive_slope", "alpha")
        parts.append(points.assign(line=f"after {100 * share:g} % of training"))
    return pd.concat(parts, ignore_index=True)
