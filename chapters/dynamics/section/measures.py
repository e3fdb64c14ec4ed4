"""Curves of a fixed focus as the claims measure them: a number per seed beside a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise

import numpy as np
from numpy.typing import NDArray

from analysis.forms import points
from analysis.rules.claim import TOO_FEW, Finding, Role, Side, evidence, lost_text
from analysis.rules.statistics import MIN_SEEDS, ROUNDING, t_interval
from chapters.dynamics.section.focus import Focus

WIDEST_GAP = 0.1
"""Largest share of the epochs between two evaluations of a curve: the distance of the default
evaluations. Rarer ones do not resolve the beginning and the last fifth."""

BELOW_ONE = 1 - 2 * ROUNDING
"""The largest alpha that is not 1."""

Values = NDArray[np.float64]


def share_text(share: float) -> str:
    """.05 -> ``5 %``, .123 -> ``12.3 %``."""
    return f"{round(100 * share, 1) + 0.0:.1f}".removesuffix(".0") + " %"


def signed_text(share: float) -> str:
    """.123 -> ``+12.3 %``."""
    return f"{points(share)} %"


def _nats(value: float) -> str:
    return f"{value + 0.0:.3g}"


@dataclass(frozen=True)
class Curves:
    """Curves of one measure and paradigm, for the seeds that are done at all alphas.

    Attributes:
        alphas: (A,) sorted.
        times: (T,) shares of the epochs, sorted.
        values: (A, S, T), S seeds.
        lost: how many seeds of the setting have no curve, because a run diverged or failed.
    """

    alphas: Sequence[float]
    times: Values
    values: Values
    lost: int

    @property
    def final(self) -> Values:
        """(A, S) values at the end of training; NaN where there is none."""
        return self.values[..., -1] if self.times[-1] == 1 else self.values[..., 0] * math.nan

    def at(self, time: float) -> Values:
        """(A, S) values at a time, by linear interpolation between evaluations."""
        found = [np.interp(time, self.times, curve) for each in self.values for curve in each]
        return np.reshape(found, self.values.shape[:2])

    def first_drop(self, until: float) -> Values:
        """(A, S) from the first value to the one at the first evaluation not before `until`."""
        after = int(np.argmax(self.times >= until - ROUNDING))
        return self.values[..., 0] - self.values[..., after]

    def mean(self, start: float = 0.0, end: float = 1.0) -> Values:
        """(A, S) means over the evaluations from `start` to `end`."""
        inside = (self.times >= start - ROUNDING) & (self.times <= end + ROUNDING)
        return self.values[..., inside].mean(axis=-1)

    @property
    def too_coarse(self) -> list[Finding]:
        """Why they are too coarse to show when things happen; empty where they are not."""
        gap = float(np.diff(self.times, append=1.0).max())
        if not self.values.size:
            return []  # no seed, which is reported elsewhere
        if self.times[0] > ROUNDING:
            begins = share_text(self.times[0])
            reason = f"a curve begins at {begins} of the epochs, not at the start"
        elif gap > WIDEST_GAP + ROUNDING:
            needed = f"{share_text(WIDEST_GAP)} are needed"
            reason = f"the evaluations lie up to {share_text(gap)} of the epochs apart, {needed}"
        else:
            return []
        return [Finding("", reason=reason)]

    def beside(
        self,
        name: str,
        values: Values,
        threshold: float,
        claimed: Side,
        form: Callable[[float], str] = share_text,
        role: Role = "both",
        places: Sequence[str] = (),
    ) -> Finding:
        """Compares numbers of its seeds with a threshold.

        Args:
            name: what was measured.
            values: (S,) one number per seed, or (A, S), a test each.
            threshold: in the unit of `values`.
            claimed: the claimed side.
            form: formats a value.
            role: how the tests count.
            places: names of the rows of `values`; by default the alphas.
        """
        rows = np.atleast_2d(values)
        places = places or [f"alpha {alpha:g}" for alpha in self.alphas]
        wheres = [f" at {each}" for each in places] if values.ndim > 1 else [""]
        texts = [_estimate(row, form) + where for row, where in zip(rows, wheres, strict=True)]
        n = rows.shape[1]
        return Finding(
            f"{name}: {', '.join(texts)} (n={n}){lost_text(self.lost)}",
            [evidence(row, threshold, claimed, self.lost) for row in rows],
            TOO_FEW if n < MIN_SEEDS else "",
            role=role,
        )

    def steps(
        self, what: str, means: Values, claimed: Side, negligible: float = 0.0
    ) -> list[Finding]:
        """Whether an incentive falls or rises from each alpha to the next.

        Args:
            what: name of the incentive.
            means: (A, S) incentives, in nats.
            claimed: whether each step is below or above 0.
            negligible: no step is tested where both ends are below this share of the largest.
        """
        levels = np.array([t_interval(row)[0] for row in means])
        largest = np.fmax.reduce(levels)
        shown = Finding(self.beside(what, means, 0, "above", _nats).text)
        if not largest > 0:
            return [shown, Finding("", reason="no incentive is above 0")]
        # An unknown one is tested, and so decides nothing.
        tested = ~(np.maximum(levels[1:], levels[:-1]) < negligible * largest)
        places = [*compress((f"{a:g} to {b:g}" for a, b in pairwise(self.alphas)), tested)]
        changes = np.diff(means, axis=0)[tested] / largest
        name = "steps as shares of the largest"
        return [shown, self.beside(name, changes, 0, claimed, signed_text, places=places)]


def within(
    focus: Focus, paradigms: Collection[str], low: float = 0.0, high: float = BELOW_ONE
) -> list[float]:
    """The alphas but 0 from low to high at which all paradigms have cells, sorted."""
    cells = focus.chosen[focus.chosen["paradigm"].isin(paradigms)]
    inside = cells["alpha"].between(low - ROUNDING, high + ROUNDING) & (cells["alpha"] > 0)
    counts = cells[inside].groupby("alpha")["paradigm"].nunique()
    return [float(alpha) for alpha in counts.index[counts == len(paradigms)]]


def curves_of(
    focus: Focus, measure: str, alphas: Sequence[float], *paradigms: str
) -> list[Curves]:
    """The curves of each paradigm for the seeds that all of them have at all of the alphas.

    Args:
        focus: of one setting, which has all paradigms at all alphas.
        measure: a column of its runs.
        alphas: sorted, at least one.
        paradigms: at least one.
    """
    runs = focus.runs
    runs = runs[runs["alpha"].isin(alphas) & runs["paradigm"].isin(paradigms)]
    cells = runs.groupby("seed")["cell_id"].transform("nunique")
    runs = runs[cells == len(alphas) * len(paradigms)]
    num_seeds = runs["seed"].nunique()
    found = []
    for name in paradigms:
        mine = runs[runs["paradigm"] == name]
        table = mine.pivot(index=["alpha", "seed"], columns="budget_fraction", values=measure)
        times = table.columns.to_numpy(float) if num_seeds else np.array([0.0, 1.0])
        values = table.to_numpy(float).reshape(len(alphas), num_seeds, len(times))
        found.append(Curves(alphas, times, values, focus.cells["seed"].nunique() - num_seeds))
    return found


def ratio(top: Values, bottom: Values) -> Values:
    """The quotient, NaN where the denominator is no basis for a share."""
    return top / np.where(bottom > 0, bottom, np.nan)


def _estimate(values: Values, form: Callable[[float], str]) -> str:
    """``1.2 % [1.0 to 1.4]``, mean and 95 % interval."""
    if not len(values):
        return "no seed"
    mean, low, high = t_interval(values)
    if math.isnan(mean):
        return "not known"
    if math.isnan(low):
        return form(mean)
    low_text, high_text = (form(bound).removesuffix(" %") for bound in (low, high))
    return f"{form(mean)} [{low_text} to {high_text}]"
