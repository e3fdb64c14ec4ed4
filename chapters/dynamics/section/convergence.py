"""The paper's claim about trajectories (C15): does it hold, by theory and by experiment?

Section 4.2, on figure 4: "The LVML model clearly converges faster than both soft and hard
attention. The hard attention model converges to larger value for nu(t) corresponding to a more
confident focus model." No nu converges: all grow without bound, so a horizon is stated.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from analysis.rules.claim import Claim, Evidence, Finding, decided, side
from analysis.section.templates import paragraphs
from chapters.dynamics.section.chapter import PLACE, claim_words
from chapters.dynamics.section.closed_form import HORIZON, LEVELS, NAMES, TIMES, at_time, time_text

DECISIVE = 0.1
"""The level that decides which paradigm converges fastest: nine tenths of the loss are gone.

Below, another thing is measured: how the losses run out. For large t that of soft is (C-1)/t and
those of hard and lvml are (2C-1)/t, for every m (docs/dynamics.md), so that at a level that is
low enough soft is first whatever happened before."""

_NUMBERS = {"decisive": DECISIVE, "first": LEVELS[0], "last": LEVELS[-1], "horizon": HORIZON}
_DECISIVE = f"{100 * DECISIVE:g} %"


def exact_claim(rows: pd.DataFrame, trained: float = math.nan) -> Claim:
    """C15 of the closed form for one (m, C).

    Args:
        rows: of `chapters.dynamics.section.closed_form.convergence`.
        trained: time until which models were trained; NaN: none was.
    """
    m, num_classes = (int(rows[name].iloc[0]) for name in ("m", "num_classes"))
    of_each = rows.set_index("paradigm")
    times, nu = of_each[TIMES].set_axis(LEVELS, axis="columns"), of_each["nu"]
    fastest, largest = paragraphs(
        f"{PLACE}:measured.j2",
        times=times,
        nu=nu,
        horizon=HORIZON,
        then=None if math.isnan(trained) else at_time(m, num_classes, trained)["nu"],
        trained=trained,
        gap=nu_gap(num_classes),
        time=time_text,
    )
    findings = [
        Finding(fastest, [Evidence(times[DECISIVE].idxmin() == "lvml", 0.0)]),
        Finding(largest, [Evidence(nu.idxmax() == "hard", 0.0)]),
    ]
    said = "C15", *claim_words("C15, exact", **_NUMBERS)
    return decided(*said, findings, f"m={m}, C={num_classes}, closed form")


def trained_claim(rows: pd.DataFrame, setting: str, cells: pd.DataFrame) -> Claim:
    """C15 of trained models of one (m, C).

    Args:
        rows: one row per evaluation of a model that was trained to the end: `paradigm`, `seed`,
            `flow_time`, `loss` (nats), `nu` and `num_classes`, by increasing time in each cell.
        setting: names the models.
        cells: all of its cells, one row each: `paradigm`, `seed` and `status`. A seed that any
            of them has is lost to a paradigm without rows of it.
    """
    said = "C15", *claim_words("C15, trained", **_NUMBERS)
    if absent := [name for name in NAMES if name not in set(rows["paradigm"])]:
        lost = cells.loc[cells["status"] == "diverged", "paradigm"].value_counts()
        named = [f"{name} ({lost[name]} diverged)" if name in lost else name for name in absent]
        text = f"no cell was trained to the end: {', '.join(named)}"
        diverged = lost.index.isin(absent).any()
        return Claim(*said, "undecided" if diverged else "not run", text, setting)
    runs = rows.groupby(["seed", "paradigm"])
    end = float(runs["flow_time"].max().min())
    fall = runs.apply(_time_of_fall, end).unstack()
    nu = runs.apply(lambda run: np.interp(end, run["flow_time"], run["nu"])).unstack()
    total = cells["seed"].nunique()

    def above_0(name: str, values: pd.Series) -> Finding:
        return side(name, values, 0, "above", total - len(values), _signed)

    findings = []
    for other in ("soft", "hard"):
        pair = fall.loc[nu[["lvml", other]].dropna().index, ["lvml", other]]
        neither, there = pair.isna().all(axis=1), pair.fillna(end)
        lead = (there[other] - there["lvml"]).mask(neither)
        finding = above_0(f"time of {other} minus that of lvml to {_DECISIVE} of log C", lead)
        if len(lead) and neither.all():
            by = f"{_DECISIVE} by t = {time_text(end)}"
            finding = Finding("", reason=f"neither lvml nor {other} falls to {by}")
        findings.append(finding)
    for other in ("soft", "lvml"):
        name = f"nu of hard minus that of {other} at t = {time_text(end)}"
        findings.append(above_0(name, (nu["hard"] - nu[other]).dropna()))
    return decided(*said, findings, setting)


def nu_gap(num_classes: int) -> float:
    """Limit of nu of hard minus nu of lvml for t -> infinity: log(C log C / (C - 1)) > 0."""
    return math.log(num_classes * math.log(num_classes) / (num_classes - 1))


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


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else '-'}{time_text(abs(value))}"
