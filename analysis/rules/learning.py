"""Seeds that learn and seeds that do not.

Where some runs of a paradigm learn and others stay where a guess is, a mean over seeds is of two
laws, and no t interval holds. Then it has none, and how often a run learns is told beside it. What
decides a pair is its usual two tests, which need no law of a run where both sides have the same.

A run has *learned* if its measure is beyond a guess by the margin that its modality declares.
Seeds *fall apart* where some have learned, others have not, and a gap lies between the two. So do
seeds with a gap that is large beside how far the larger side lies apart, whatever it is between.
Seeds on one side of the margin, or on both without a gap (as soft attention's SAIF may be), do
not fall apart.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.rules.crossed import CrossedMean
from analysis.rules.statistics import MIN_SEEDS, ROUNDING, mcnemar, on_logit_scale

GAP = 0.1
"""The least gap at which seeds fall apart, in the unit of the values: 10 points of shares."""

_SPREAD = ("low", "high", "seed_se", "image_se", "background_se")

_WIDER, _WIDEST = 3.0, 10.0
"""A gap is large beside seeds that lie at most a third as far apart; of values of any unit, for
which there is no least gap, a tenth: so do six seeds of one law in at most .3 % of studies, be it
normal, lognormal with a spread of .5, or Student's t with three degrees of freedom."""


class Scale(NamedTuple):
    """What is known of the values of a measure.

    Attributes:
        floor: what a run must exceed to have learned; -inf: it is not known.
        sign: 1, or -1 where less is better: then a run has learned that is below.
        is_share: whether they are fractions.
    """

    floor: float = -math.inf
    sign: int = 1
    is_share: bool = True


SHARES = Scale()


def apart(values: ArrayLike, scale: Scale = SHARES) -> float | None:
    """A value between seeds that learned and those that did not; None: they do not fall apart.

    Args:
        values: (n,) one a seed; where one is NaN, nothing is known.
        scale: of the values.
    """
    found = _apart(scale.sign * np.asarray(values, np.float64), scale)
    return None if found is None else scale.sign * found


def _apart(values: NDArray[np.float64], scale: Scale) -> float | None:
    """The same where more is better."""
    floor = scale.floor
    gap, wider = (GAP, _WIDER) if scale.is_share else (2 * ROUNDING, _WIDEST)
    ordered = np.sort(values)
    n = len(ordered)
    if n < 2 or np.isnan(ordered).any():
        return None
    gaps = np.diff(ordered)
    if ((ordered[:-1] <= floor) & (floor < ordered[1:]) & (gaps >= gap - ROUNDING)).any():
        return floor
    sides = np.split(ordered, [gaps.argmax() + 1])
    rest = max(np.ptp(side) for side in sides if 2 * len(side) >= n)
    is_large = gaps.max() >= max(gap, wider * rest) - ROUNDING
    return _middle(ordered) if n >= MIN_SEEDS and is_large else None


def seed_mean(found: CrossedMean, by_seed: ArrayLike, scale: Scale = SHARES) -> CrossedMean:
    """The mean over seeds, of shares with its interval on the logit scale.

    Where seeds fall apart, it is without.

    Args:
        found: the mean, with a symmetric interval.
        by_seed: (n,) the value of each seed.
        scale: of the values.
    """
    if apart(by_seed, scale) is not None:
        return without_spread(found)
    if not scale.is_share:
        return found
    low, high = on_logit_scale(found.mean, found.low, found.high)
    return replace(found, low=low, high=high)


def without_spread(found: CrossedMean) -> CrossedMean:
    """A mean over seeds that fall apart: of two laws, it has neither interval nor spreads."""
    unknown: dict[str, Any] = dict.fromkeys(_SPREAD, math.nan)
    return replace(found, **unknown)


def learned(first: ArrayLike, second: ArrayLike, scale: Scale = SHARES) -> dict[str, float]:
    """How often two paradigms learned, which decides nothing; empty: neither's seeds fall apart.

    What parts the seeds is sought among the runs of both, so it does not depend on whose run is
    whose.

    Args:
        first: (n,) one number a seed.
        second: (n,) those of the same seeds.
        scale: of the values.

    Returns:
        `above`: a run has learned if its measure is beyond this; `learned_first` and
        `learned_second`, how many runs have; `given_first` and `given_second`, their means (NaN:
        none has); `p_learned`, two-sided, by McNemar's exact test, that both learn equally often.
    """
    sides = scale.sign * np.array([first, second], np.float64)
    *of_each, of_both = (_apart(values, scale) for values in (*sides, sides.ravel()))
    if np.isnan(sides).any() or of_each == [None, None]:
        return {}
    told = scale.floor in (*of_each, of_both)
    above = scale.floor if told else _middle(np.sort(sides.ravel()))
    one, other = sides > above
    return {
        "above": scale.sign * above,
        "learned_first": one.sum(),
        "learned_second": other.sum(),
        "given_first": scale.sign * sides[0][one].mean() if one.any() else math.nan,
        "given_second": scale.sign * sides[1][other].mean() if other.any() else math.nan,
        "p_learned": mcnemar((one & ~other).sum(), (other & ~one).sum()),
    }


def _middle(ordered: NDArray[np.float64]) -> float:
    """The middle of the largest gap."""
    place = int(np.diff(ordered).argmax())
    return float(ordered[place : place + 2].mean())
