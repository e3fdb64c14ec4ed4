"""The paper's claim about trajectories (C15): does it hold, by theory and by experiment?

Section 4.2, on figure 4: "The LVML model clearly converges faster than both soft and hard
attention. The hard attention model converges to larger value for nu(t) corresponding to a more
confident focus model." No nu converges: all grow without bound, so a horizon is stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.forms import listed
from analysis.rules.claim import LOST, Claim, Evidence, Finding, Verdict, decided, side
from chapters.dynamics.section.closed_form import HORIZON, LEVELS, NAMES, TIMES, at_time, time_text
from chapters.dynamics.section.trained_trajectories import lost_seeds

DECISIVE = 0.1
"""The level that decides which paradigm converges fastest: nine tenths of the loss are gone.

Below, another thing is measured: how the losses run out. For large t that of soft is (C-1)/t and
those of hard and lvml are (2C-1)/t, for every m (docs/dynamics.md), so that at a level that is
low enough soft is first whatever happened before."""

_STATEMENT = (
    "Marginal likelihood (lvml) converges faster than soft and hard; hard reaches the largest nu."
)
_EXACT_TEST = (
    "Closed form (Theorem 2), so there is no interval. Holds where lvml is the first whose loss "
    f"has fallen to {DECISIVE:.0%} of log C, the loss at the start, and nu of hard is the largest "
    f"at t = {HORIZON:,.0f}, the horizon of the published scripts. The paper names no measure: "
    f"at {DECISIVE:.0%} nine tenths of the loss are gone; {LEVELS[0]:.0%} and {LEVELS[-1]:.0%} "
    "stand beside it. A level that is low enough would measure how the losses run out instead: "
    "for large t soft's is (C-1)/t, hard's and lvml's (2C-1)/t, so soft ends below both for "
    "every m and C."
).replace("%", " %")
_TRAINED_TEST = (
    "The same of trained models, a value a seed: the time at which the loss on test mosaics falls "
    f"to {DECISIVE:.0%} of log C (log loss interpolated between evaluations), soft and hard minus "
    "lvml; and nu of hard minus that of soft and lvml at the last time that all have. Holds where "
    "all four 95 % t intervals over common seeds lie above 0, does not hold where one lies below, "
    "each at a quarter of the level. A loss that does not get there counts with the last time, "
    f"which makes the lead smaller than it is. {LOST}"
).replace("10%", "10 %")


def exact_claim(rows: pd.DataFrame, trained: float = math.nan) -> Claim:
    """C15 of the closed form for one (m, C).

    Args:
        rows: of `chapters.dynamics.section.closed_form.convergence`.
        trained: time until which models were trained; NaN: none was.
    """
    m, num_classes = (int(rows[name].iloc[0]) for name in ("m", "num_classes"))
    of_each = rows.set_index("paradigm")
    at_end = None if math.isnan(trained) else at_time(m, num_classes, trained)["nu"]
    findings = [_fastest(of_each[TIMES]), _largest(of_each["nu"], num_classes, trained, at_end)]
    setting = f"m={m}, C={num_classes}, closed form"
    return decided("C15", _STATEMENT, _EXACT_TEST, findings, setting)


def trained_claim(rows: pd.DataFrame, setting: str, cells: pd.DataFrame) -> Claim:
    """C15 of trained models of one (m, C).

    Args:
        rows: one row an evaluation of a model that was trained to the end: `paradigm`, `seed`,
            `flow_time`, `loss` (nats), `nu` and `num_classes`, by increasing time in each cell.
        setting: names the models.
        cells: all of its cells, one row each: `paradigm`, `seed` and `status`. A seed that any
            of them has is lost to a paradigm without rows of it.
    """
    if absent := [name for name in NAMES if name not in set(rows["paradigm"])]:
        lost = lost_seeds(cells)
        said = [f"{name} ({lost[name]} diverged)" if name in lost else name for name in absent]
        text = f"no cell was trained to the end: {', '.join(said)}"
        verdict: Verdict = "undecided" if lost.keys() & absent else "not run"
        return Claim("C15", _STATEMENT, _TRAINED_TEST, verdict, text, setting)
    runs = rows.groupby(["seed", "paradigm"])
    end = float(runs["flow_time"].max().min())
    fall = runs.apply(_time_of_fall, end).unstack()
    nu = runs.apply(lambda run: np.interp(end, run["flow_time"], run["nu"])).unstack()
    total = cells["seed"].nunique()
    findings = []
    for other in ("soft", "hard"):
        pair = fall.loc[nu[["lvml", other]].dropna().index, ["lvml", other]]
        there = pair.fillna(end)
        lead = (there[other] - there["lvml"]).mask(pair.isna().all(axis=1))
        name = f"time of {other} minus that of lvml to {_shares([DECISIVE])} of log C"
        finding = side(name, lead, 0, "above", total - len(lead), _signed)
        if len(lead) and lead.isna().all():
            by = f"{_shares([DECISIVE])} by t = {time_text(end)}"
            finding = Finding("", reason=f"neither lvml nor {other} falls to {by}")
        findings.append(finding)
    for other in ("soft", "lvml"):
        gap = (nu["hard"] - nu[other]).dropna()
        name = f"nu of hard minus that of {other} at t = {time_text(end)}"
        findings.append(side(name, gap, 0, "above", total - len(gap), _signed))
    return decided("C15", _STATEMENT, _TRAINED_TEST, findings, setting)


def nu_gap(num_classes: int) -> float:
    """Limit of nu of hard minus nu of lvml for t -> infinity: log(C log C / (C - 1)) > 0."""
    return math.log(num_classes * math.log(num_classes) / (num_classes - 1))


def _fastest(times: pd.DataFrame) -> Finding:
    first = times.idxmin()
    each = [f"{name} {', '.join(map(time_text, own))}" for name, own in times.iterrows()]
    firsts = [
        f"{name} at {_shares([s for s, won in zip(LEVELS, first, strict=True) if won == name])}"
        for name in NAMES
        if name in set(first)
    ]
    text = f"times to {_shares(LEVELS)} of log C: {'; '.join(each)} (first: {', '.join(firsts)})"
    return Finding(text, [Evidence(first.iloc[LEVELS.index(DECISIVE)] == "lvml", 0.0)])


def _largest(
    nu: pd.Series, num_classes: int, trained: float, nu_trained: pd.Series | None
) -> Finding:
    text = f"nu at t = {time_text(HORIZON)}: {_falling(nu)}"
    if nu_trained is not None:
        text += f" (at t = {time_text(trained)}, where training ends: {_falling(nu_trained)})"
    text += (
        f"; for t to infinity hard minus lvml goes to {nu_gap(num_classes):.2f}, hard minus "
        "soft grows without bound"
    )
    return Finding(text, [Evidence(nu.idxmax() == "hard", 0.0)])


def _falling(nu: pd.Series) -> str:
    ordered = nu.sort_values(ascending=False)
    return ", ".join(f"{name} {value:.2f}" for name, value in ordered.items())


def _time_of_fall(run: pd.DataFrame, end: float) -> float:
    """When the loss of one cell first falls to the decisive level; NaN: not by the end."""
    times, loss = run["flow_time"].to_numpy(float), run["loss"].to_numpy(float)
    target = DECISIVE * math.log(run["num_classes"].iloc[0])
    at = int(np.argmax(loss <= target))
    if loss[at] > target:
        return math.nan
    last = slice(max(at - 1, 0), at + 1)
    fallen = -np.log(np.maximum(loss[last], 1e-300))
    found = float(np.interp(-math.log(target), fallen, times[last]))
    return found if found <= end else math.nan


def _shares(levels: Sequence[float]) -> str:
    """``50, 10 and 1 %``."""
    return f"{listed([f'{100 * level:g}' for level in levels])} %"


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else '-'}{time_text(abs(value))}"
