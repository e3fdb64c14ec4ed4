"""The paper's claim about trajectories (C15): does it hold, by theory and by experiment?

Section 4.2, on figure 4: "The LVML model clearly converges faster than both soft and hard
attention. The hard attention model converges to larger value for nu(t) corresponding to a more
confident focus model." No nu converges: all grow without bound, so a horizon is stated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.groups import PARADIGMS, paradigm_order
from analysis.linear_orthogonal.measured import lost_seeds
from analysis.section.claim import LOST, Claim, Evidence, Finding, Verdict, decided, side
from analysis.words import known, listed, number

NAMES = tuple(paradigm_order(PARADIGMS))
"""Of the paradigms of section 4, in the order of tables."""

LEVELS = (0.5, 0.1, 0.01)
"""Shares of log C, the loss at the start, at which the time is taken."""

DECISIVE = 0.1
"""The level that decides which paradigm converges fastest: nine tenths of the loss are gone.

Below, another thing is measured: how the losses run out. For large t that of soft is (C-1)/t and
those of hard and lvml are (2C-1)/t, for every m (see `study.theory`), so that at a level that is
low enough soft is first whatever happened before."""

HORIZON = 4e5
"""Gradient-flow time to which the published scripts integrate."""

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


@dataclass(frozen=True)
class Exact:
    """What the closed form says of one (m, C).

    Attributes:
        m: segments a mosaic.
        num_classes: C.
        times: paradigm -> the times at which the loss reaches each of `LEVELS`; NaN: it does not.
        nu: paradigm -> nu at `HORIZON`.
        trained: time until which models were trained, NaN: none was.
        nu_trained: paradigm -> nu at that time.
    """

    m: int
    num_classes: int
    times: Mapping[str, Sequence[float]]
    nu: Mapping[str, float]
    trained: float = math.nan
    nu_trained: Mapping[str, float] | None = None


def setting_text(m: int, num_classes: int, source: str) -> str:
    """``m=20, C=20, closed form``."""
    return f"m={m}, C={num_classes}, {source}"


def time_text(time: float) -> str:
    """Three significant digits, as people write them: ``53.7``, ``1,270``, ``400,000``."""
    if not known(time) or abs(time) < 1_000:
        return number(time)
    return f"{float(f'{time:.3g}'):,.0f}"


def exact_claim(exact: Exact) -> Claim:
    """C15 of the closed form for one (m, C)."""
    setting = setting_text(exact.m, exact.num_classes, "closed form")
    findings = [_fastest(exact), _largest(exact)]
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
    absent = [name for name in NAMES if name not in set(rows["paradigm"])]
    if absent:
        diverged = lost_seeds(cells)
        missing = ", ".join(
            f"{name} ({diverged[name]} diverged)" if name in diverged else name for name in absent
        )
        text = f"no cell was trained to the end: {missing}"
        verdict: Verdict = "undecided" if diverged.keys() & set(absent) else "not run"
        return Claim("C15", _STATEMENT, _TRAINED_TEST, verdict, text, setting)
    end = float(rows.groupby(["paradigm", "seed"])["flow_time"].max().min())
    of_cells: dict[tuple[str, int], pd.DataFrame] = {}
    for _, cell in rows.groupby(["paradigm", "seed"]):
        of_cells[str(cell["paradigm"].iloc[0]), int(cell["seed"].iloc[0])] = cell
    falls = {cell: _time_of_fall(part, end) for cell, part in of_cells.items()}
    nus = {
        cell: float(np.interp(end, part["flow_time"], part["nu"]))
        for cell, part in of_cells.items()
    }
    findings, total = [], cells["seed"].nunique()
    for other in ("soft", "hard"):
        seeds = _common(of_cells, "lvml", other)
        leads = [_lead(falls["lvml", s], falls[other, s], end) for s in seeds]
        if all(math.isnan(lead) for lead in leads):
            text = (
                f"neither lvml nor {other} falls to {_shares([DECISIVE])} by t = {time_text(end)}"
            )
            findings.append(Finding("", reason=text))
            continue
        name = f"time of {other} minus that of lvml to {_shares([DECISIVE])} of log C"
        findings.append(side(name, leads, 0, "above", total - len(seeds), _signed))
    for other in ("soft", "lvml"):
        seeds = _common(of_cells, "hard", other)
        gaps = [nus["hard", seed] - nus[other, seed] for seed in seeds]
        name = f"nu of hard minus that of {other} at t = {time_text(end)}"
        findings.append(side(name, gaps, 0, "above", total - len(seeds), _signed))
    return decided("C15", _STATEMENT, _TRAINED_TEST, findings, setting)


def nu_gap(num_classes: int) -> float:
    """Limit of nu of hard minus nu of lvml for t -> infinity: log(C log C / (C - 1)) > 0."""
    return math.log(num_classes * math.log(num_classes) / (num_classes - 1))


def _fastest(exact: Exact) -> Finding:
    decisive = LEVELS.index(DECISIVE)
    first = [_first(exact.times, level) for level in range(len(LEVELS))]
    each = "; ".join(
        f"{name} {', '.join(time_text(t) for t in exact.times[name])}" for name in NAMES
    )
    text = f"times to {_shares(LEVELS)} of log C: {each}"
    won = {
        name: [level for level, winner in zip(LEVELS, first, strict=True) if winner == name]
        for name in NAMES
    }
    firsts = [f"{name} at {_shares(places)}" for name, places in won.items() if places]
    text += f" (first: {', '.join(firsts)})" if firsts else ""
    if not first[decisive]:
        return Finding("", reason=text)
    return Finding(text, [Evidence(first[decisive] == "lvml", 0.0)])


def _largest(exact: Exact) -> Finding:
    def falling(nu: Mapping[str, float]) -> str:
        return ", ".join(f"{name} {nu[name]:.2f}" for name in sorted(nu, key=nu.__getitem__)[::-1])

    text = f"nu at t = {time_text(HORIZON)}: {falling(exact.nu)}"
    if exact.nu_trained:
        text += f" (at t = {time_text(exact.trained)}, where training ends: "
        text += f"{falling(exact.nu_trained)})"
    text += (
        f"; for t to infinity hard minus lvml goes to {nu_gap(exact.num_classes):.2f}, hard minus "
        "soft grows without bound"
    )
    largest = all(exact.nu["hard"] > exact.nu[other] for other in ("soft", "lvml"))
    return Finding(text, [Evidence(largest, 0.0)])


def _first(times: Mapping[str, Sequence[float]], level: int) -> str:
    """The paradigm that reaches the level first; empty: none does."""
    reached = {name: times[name][level] for name in NAMES if known(times[name][level])}
    return min(reached, key=reached.__getitem__, default="")


def _time_of_fall(cell: pd.DataFrame, end: float) -> float:
    """When the loss of one cell first falls to the decisive level; NaN: not by the end."""
    times, loss = cell["flow_time"].to_numpy(float), cell["loss"].to_numpy(float)
    target = DECISIVE * math.log(cell["num_classes"].iloc[0])
    below = np.flatnonzero(loss <= target)
    if len(below) == 0:
        return math.nan
    at, found = int(below[0]), float(times[below[0]])
    if at > 0 and loss[at] > 0:
        before, after = math.log(loss[at - 1]), math.log(loss[at])
        share = (before - math.log(target)) / (before - after)
        found = float(times[at - 1] + share * (times[at] - times[at - 1]))
    return found if found <= end else math.nan


def _lead(mine: float, other: float, end: float) -> float:
    """How much later the other gets there; one that does not counts as there at the end."""
    if math.isnan(mine) and math.isnan(other):
        return math.nan
    return (end if math.isnan(other) else other) - (end if math.isnan(mine) else mine)


def _common(cells: Mapping[tuple[str, int], pd.DataFrame], first: str, second: str) -> list[int]:
    """Seeds common to both paradigms."""
    seeds = [{seed for name, seed in cells if name == each} for each in (first, second)]
    return sorted(seeds[0] & seeds[1])


def _shares(levels: Sequence[float]) -> str:
    """``50, 10 and 1 %``."""
    return f"{listed([f'{100 * level:g}' for level in levels])} %"


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else '-'}{time_text(abs(value))}"
