"""Curves of a fixed focus as the claims measure them: a number a seed beside a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.fixed_focus.curves import Setting
from analysis.section.claim import TOO_FEW, Finding, Side, evidence, lost_text
from analysis.statistics import CONFIDENCE, MIN_SEEDS, ROUNDING, t_interval
from analysis.words import span

WIDEST_GAP = 0.1
"""Largest share of the epochs between two evaluations of a curve: the distance of the default
evaluations. Rarer ones do not resolve the beginning and the last fifth."""

Values = NDArray[np.float64]
Form = Callable[[float], str]


@dataclass(frozen=True)
class Curves:
    """Curves of one measure and paradigm at several alphas, for the seeds common to all of them.

    Attributes:
        of: alpha -> (seeds, evaluations), index the seeds, columns the budget fractions.
        num_all: how many seeds the setting has.
    """

    of: Mapping[float, pd.DataFrame]
    num_all: int

    @property
    def lost(self) -> int:
        """How many seeds of the setting have no curve, because a run diverged or failed."""
        return self.num_all - len(next(iter(self.of.values())))

    def on(self, seeds: set[int]) -> Curves:
        """The curves of these seeds."""
        return replace(
            self, of={alpha: each.loc[sorted(seeds)] for alpha, each in self.of.items()}
        )

    @property
    def alphas(self) -> list[float]:
        return list(self.of)

    def final(self, alpha: float) -> Values:
        """(seeds,) values at the end of training; NaN where there is none."""
        curve = self.of[alpha]
        if 1.0 not in curve:
            return np.full(len(curve), np.nan)
        return curve[1.0].to_numpy(np.float64)

    def at(self, alpha: float, fraction: float) -> Values:
        """(seeds,) values at a time, by linear interpolation between evaluations."""
        curve = self.of[alpha]
        times = curve.columns.to_numpy(np.float64)
        rows = curve.to_numpy(np.float64)
        return np.array([np.interp(fraction, times, row) for row in rows], np.float64)

    def first_drop(self, alpha: float, until: float) -> Values:
        """(seeds,) from the first value to the one at the first evaluation not before `until`."""
        curve = self.of[alpha]
        if curve.empty:
            return np.empty(0)
        after = int(np.argmax(curve.columns.to_numpy(np.float64) >= until - ROUNDING))
        return (curve.iloc[:, 0] - curve.iloc[:, after]).to_numpy(np.float64)

    def mean(self, alpha: float, start: float = 0.0, end: float = 1.0) -> Values:
        """(seeds,) means over the evaluations from `start` to `end`."""
        curve = self.of[alpha]
        times = curve.columns.to_numpy(np.float64)
        inside = (times >= start - ROUNDING) & (times <= end + ROUNDING)
        return curve.loc[:, inside].mean(axis=1, skipna=False).to_numpy(np.float64)


def within(
    setting: Setting,
    paradigms: Sequence[str],
    low: float = 0.0,
    high: float = 1.0,
    with_one: bool = False,
) -> list[float]:
    """The alphas from low to high at which all paradigms have cells, sorted.

    0 is never among them, and 1 only with `with_one`.
    """
    highest = 1.0 if with_one else 1 - 2 * ROUNDING
    return [
        alpha
        for alpha in setting.alphas(paradigms)
        if alpha > 0 and low - ROUNDING <= alpha <= min(high, highest) + ROUNDING
    ]


def curves_of(setting: Setting, paradigm: str, measure: str, alphas: Sequence[float]) -> Curves:
    """The curves of the seeds that are done at all of the alphas, at least one alpha."""
    of = {alpha: setting.seeds_of(paradigm, alpha, measure) for alpha in alphas}
    seeds = set.intersection(*(set(curve.index) for curve in of.values()))
    return Curves(of, setting.cells["seed"].nunique()).on(seeds)


def on_common_seeds(curves: Mapping[str, Curves]) -> dict[str, Curves]:
    """The curves of the seeds that all paradigms have."""
    seeds = set.intersection(
        *(set(curve.index) for each in curves.values() for curve in each.of.values())
    )
    return {name: each.on(seeds) for name, each in curves.items()}


def too_coarse(curves: Curves) -> str:
    """Why curves are too coarse to show when things happen; empty where they are not."""
    for curve in curves.of.values():
        times = curve.columns.to_numpy(np.float64)
        if not len(times):
            continue  # no seed, which is reported elsewhere
        if times[0] > ROUNDING:
            return f"a curve begins at {share_text(times[0])} of the epochs, not at the start"
        gap = float(np.diff(times, append=1.0).max())
        if gap > WIDEST_GAP + ROUNDING:
            return (
                f"the evaluations lie up to {share_text(gap)} of the epochs apart, "
                f"{share_text(WIDEST_GAP)} are needed"
            )
    return ""


def steps(
    what: str,
    means: Mapping[float, Values],
    claimed: Side,
    lost: int,
    negligible: float = 0.0,
) -> list[Finding]:
    """Whether an incentive falls or rises from each alpha to the next.

    Args:
        what: name of the incentive.
        means: alpha -> (seeds,) incentives, in nats.
        claimed: whether each step is below or above 0.
        lost: seeds that are not among them.
        negligible: no step is tested where both ends are below this share of the largest.
    """
    levels = {
        alpha: float(values.mean()) if len(values) else math.nan for alpha, values in means.items()
    }
    largest = max(levels.values())
    shown = Finding(beside_each(what, means, 0, "above", lost, _nats).text)
    if not largest > 0:
        return [replace(shown, reason="no incentive is above 0")]
    changes = {
        f"{a:g} to {b:g}": (means[b] - means[a]) / largest
        for a, b in pairwise(means)
        if max(levels[a], levels[b]) >= negligible * largest
    }
    name = "steps as shares of the largest"
    return [shown, beside_each(name, changes, 0, claimed, lost, signed_text, place="")]


def beside(
    name: str,
    values: Values,
    threshold: float,
    claimed: Side,
    lost: int = 0,
    form: Form | None = None,
) -> Finding:
    """Compares one number a seed with a threshold.

    Args:
        name: what was measured.
        values: (n,) one number a seed.
        threshold: in the unit of `values`.
        claimed: the claimed side.
        lost: further seeds, which have none.
        form: formats a value; by default a share, in per cent.
    """
    text = f"{name}: {_estimate(values, form or share_text)} (n={len(values)})"
    test = evidence(values, threshold, claimed, lost)
    return Finding(text + lost_text(lost), [test], _few([len(values)]))


def beside_each(
    name: str,
    values: Mapping[float, Values] | Mapping[str, Values],
    threshold: float,
    claimed: Side,
    lost: int = 0,
    form: Form | None = None,
    place: str = "alpha ",
) -> Finding:
    """Compares numbers at several alphas with one threshold, a test each.

    Args:
        values: alpha, or the name of a place -> (n,) one number a seed.
        place: text before each alpha or name.
        name, threshold, claimed, lost, form: see `beside`.
    """
    tests = [evidence(each, threshold, claimed, lost) for each in values.values()]
    counts = [len(each) for each in values.values()]
    texts = [
        f"{_estimate(each, form or share_text)} at {place}{where}"
        for where, each in zip(map(_place, values), values.values(), strict=True)
    ]
    text = f"{name}: {', '.join(texts)} (n={span(counts)})" + lost_text(lost)
    return Finding(text, tests, _few(counts))


def ratio(top: Values, bottom: Values) -> Values:
    """The quotient, NaN where the denominator is no basis for a share."""
    known = bottom > 0
    return np.where(known, top / np.where(known, bottom, 1.0), np.nan)


def _estimate(values: Values, form: Form) -> str:
    """``1.2 % [1.0 to 1.4]``, mean and 95 % interval."""
    if not len(values):
        return "no seed"
    mean, low, high = t_interval(values, CONFIDENCE)
    if math.isnan(mean):
        return "not known"
    if math.isnan(low):
        return form(mean)
    low_text, high_text = (form(bound).removesuffix(" %") for bound in (low, high))
    return f"{form(mean)} [{low_text} to {high_text}]"


def _place(where: float | str) -> str:
    return where if isinstance(where, str) else f"{where:g}"


def _few(counts: Sequence[int]) -> str:
    return TOO_FEW if min(counts, default=0) < MIN_SEEDS else ""


def share_text(share: float) -> str:
    """.05 -> ``5 %``, .123 -> ``12.3 %``."""
    text = f"{round(100 * share, 1) + 0.0:.1f}"
    return f"{text.removesuffix('.0')} %"


def signed_text(share: float) -> str:
    """.123 -> ``+12.3 %``."""
    return f"{round(100 * share, 1) + 0.0:+.1f} %"


def _nats(value: float) -> str:
    return f"{value + 0.0:.3g}"
