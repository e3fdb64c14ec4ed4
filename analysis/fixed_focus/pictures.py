"""Figures 2 and 3 of the paper from settings of a fixed focus, and the incentive against alpha."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.figures.fixed_focus import Row, curves_figure, slopes_figure
from analysis.fixed_focus.curves import Setting, floors, solution
from analysis.fixed_focus.measures import WIDEST_GAP
from analysis.groups import LINEAR_ORTHOGONAL, PARADIGMS
from analysis.section.picture import Picture
from analysis.statistics import CONFIDENCE
from analysis.words import level, number

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
_WHAT = {
    "loss": "loss",
    "incentive": "incentive for .01 more attention",
    "incentive_slope": "slope of the loss, -dL/dalpha",
}


def pictures(settings: Sequence[Setting], closed_row: bool) -> list[Picture]:
    """Figure 2, figure 3, and the slope of the loss against alpha; none without a curve.

    Args:
        settings: a row of panels each.
        closed_row: whether a last row shows Theorem 1 alone, for want of trained linear models.
    """
    curves = pd.concat([setting.curves for setting in settings])
    if curves.empty:
        return []
    alphas = sorted(set(curves["alpha"])) if closed_row else []
    counts = sorted(set(curves["num_seeds"]))
    seeds = f"n={counts[0]}" if len(counts) == 1 else f"n={counts[0]} to {counts[-1]}"
    trained = f"train split, mean over {seeds} seeds"
    last_row = f"; last row: {_NOTHING_TRAINED}" if alphas else ""
    overlaid = any(len(setting.closed_form()) for setting in settings)
    said = f" Mean over seeds ({seeds}); bands: {_INTERVAL}, cut by the frame."
    said += " Dashed: Theorem 1 at the same time of gradient flow." if overlaid else ""
    said += f" Last row: {_NOTHING_TRAINED}." if alphas else ""
    floor = " Dotted: what the population loss tends to." if overlaid or alphas else ""

    def rows(measure: str) -> list[Row]:
        closed = [_closed_row(alphas, measure)] if alphas else []
        return [*(_curve_row(setting, measure) for setting in settings), *closed]

    slopes = [*map(_slope_row, settings), *([_closed_slope_row(alphas)] if alphas else [])]
    return [
        Picture(
            name="fixed-focus-loss",
            title="Loss under a fixed focus",
            caption=(
                "Cross-entropy loss on the train split while attention on the foreground is held "
                f"at alpha and only the classifier trains (figure 2 of the paper).{said}{floor}"
            ),
            alt=_alt("loss", settings),
            figure=curves_figure(
                rows("loss"), PARADIGMS, "loss (nats)", f"{trained}, band: {_INTERVAL}{last_row}"
            ),
            wide=True,
        ),
        Picture(
            name="fixed-focus-incentive",
            title="Incentive of the focus to improve",
            caption=(
                "L(alpha) - L(min(alpha + .01, 1)) on the train split, for the classifier of each "
                "epoch (figure 3 of the paper); at alpha = 1 it is 0 by definition." + said
            ),
            alt=_alt("incentive", settings),
            figure=curves_figure(
                rows("incentive"),
                PARADIGMS,
                "incentive (nats)",
                f"L(α) − L(min(α + .01, 1)); {trained}, band: {_INTERVAL}{last_row}",
            ),
            wide=True,
        ),
        Picture(
            name="fixed-focus-slope",
            title="Incentive against alpha",
            caption=(
                "Slope of the loss, -dL/dalpha, on the train split against alpha, after the first "
                f"{_listed([f'{100 * time:g}' for time in TIMES])} % of training: how the "
                "incentive depends on alpha, which claims C12 to C14 are about. At alpha = 1 the "
                "slope need not be 0."
                + said.replace("bands:", "bars:").replace(" at the same time of gradient flow", "")
            ),
            alt=_alt("incentive_slope", settings),
            figure=slopes_figure(
                slopes,
                PARADIGMS,
                "−dL/dα (nats)",
                f"{trained}, bar: {_INTERVAL}; at the first evaluation not before the time "
                f"named{last_row}",
            ),
            wide=True,
        ),
    ]


def closed_form(alphas: Sequence[float]) -> pd.DataFrame:
    """Theorem 1 where nothing was trained: `paradigm`, `alpha`, `t`, `mu` and the measures."""
    times = np.linspace(0, CLOSED_HORIZON, _POINTS)
    parts = [
        solution(name, CLOSED_CLASSES, times, alpha, CLOSED_M).assign(paradigm=name, alpha=alpha)
        for name in PARADIGMS
        for alpha in alphas
    ]
    return pd.concat(parts, ignore_index=True)


def _curve_row(setting: Setting, measure: str) -> Row:
    linear = measure == "loss" and setting.task == LINEAR_ORTHOGONAL
    return Row(
        name=setting.name,
        x_label="epochs",
        lines=_lines(setting.curves, measure, "epoch"),
        closed_form=_lines(setting.closed_form(), measure, "epoch"),
        floors=_floors(setting.curves, setting.num_classes, linear),
    )


def _closed_row(alphas: Sequence[float], measure: str) -> Row:
    table = closed_form(alphas)
    return Row(
        name=f"closed form m={CLOSED_M} C={CLOSED_CLASSES}",
        x_label="time t of the gradient flow",
        lines=_lines(table, measure, "t"),
        closed_form=_lines(table.iloc[:0], measure, "t"),
        floors=_floors(table, CLOSED_CLASSES, measure == "loss"),
    )


def _slope_row(setting: Setting) -> Row:
    curves, exact = setting.curves, setting.closed_form()
    return Row(
        name=setting.name,
        x_label="alpha",
        lines=_at_times(curves, "budget_fraction", 1.0),
        closed_form=_at_times(exact, "budget_fraction", 1.0),
        floors=_floors(curves, setting.num_classes, False),
    )


def _closed_slope_row(alphas: Sequence[float]) -> Row:
    table = closed_form(alphas)
    return Row(
        name=f"closed form m={CLOSED_M} C={CLOSED_CLASSES}",
        x_label="alpha",
        lines=_at_times(table, "t", CLOSED_HORIZON),
        closed_form=_at_times(table.iloc[:0], "t", CLOSED_HORIZON),
        floors=_floors(table, CLOSED_CLASSES, False),
    )


def _lines(table: pd.DataFrame, measure: str, x: str) -> pd.DataFrame:
    """The columns that `Row` names, a line an alpha; no interval where the table has none."""
    table = table.sort_values(["alpha", x])
    bounds = {end: table.get(f"{measure}_{end}", np.nan) for end in ("low", "high")}
    named = table.assign(
        line=[f"α = {alpha:g}" for alpha in table["alpha"]], x=table[x], mean=table[measure]
    )
    return named.assign(**bounds)[["paradigm", "alpha", "line", "x", "mean", "low", "high"]]


def _at_times(table: pd.DataFrame, x: str, end: float) -> pd.DataFrame:
    """Slopes against alpha, a line a time: at the first point of each alpha not before it."""
    parts = []
    for share in TIMES:
        at = share * end * (1 - 1e-9)
        # A point that comes much later, where evaluations are rare, shows another time.
        late = table[(table[x] >= at) & (table[x] <= at + WIDEST_GAP * end)]
        first = late.loc[late.groupby(["paradigm", "alpha"])[x].idxmin()]
        points = _lines(first, "incentive_slope", "alpha")
        parts.append(points.assign(line=f"after {100 * share:g} % of training"))
    return pd.concat(parts, ignore_index=True)


def _floors(table: pd.DataFrame, num_classes: int, wanted: bool) -> pd.DataFrame:
    """Above 0, where the axis is drawn already."""
    found = floors(table if wanted else table.iloc[:0], num_classes)
    found = found[found["floor"] > 0]
    return found.assign(line=[f"α = {alpha:g}" for alpha in found["alpha"]])


def _alt(measure: str, settings: Sequence[Setting]) -> str:
    """The last value of every line, in words."""
    sentences = []
    for setting in settings:
        for name in PARADIGMS:
            rows = setting.final[setting.final["paradigm"] == name].to_dict("records")
            values = [f"{number(row[measure])} at alpha {row['alpha']:g}" for row in rows]
            if values:
                sentences.append(f"{setting.name}, {name}: {', '.join(values)}.")
    return f"Lines of the {_WHAT[measure]}. At the end of training: " + " ".join(sentences)


def _listed(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
