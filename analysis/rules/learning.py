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
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.rules.crossed import CrossedMean, Part, crossed_mean
from analysis.rules.statistics import MIN_SEEDS, ROUNDING, mcnemar, on_logit_scale

GAP = 0.1
"""The least gap at which seeds fall apart, in the unit of the values: 10 points of shares."""

_WIDER = 3.0
"""A gap is large beside seeds that lie at most a third as far apart."""


class Learned(NamedTuple):
    """How often two paradigms learned, where the seeds of either fall apart; it decides nothing.

    Attributes:
        above: a run has learned if its measure is above this.
        learned_first: how many of the first paradigm's runs have.
        learned_second: how many of the second's.
        given_first: their mean; NaN: none has.
        given_second: likewise.
        p_learned: two-sided, by McNemar's exact test, that both learn equally often.
    """

    above: float
    learned_first: int
    learned_second: int
    given_first: float
    given_second: float
    p_learned: float


def apart(values: ArrayLike, floor: float = -math.inf) -> float | None:
    """A value between seeds that learned and those that did not; None: they do not fall apart.

    Args:
        values: (n,) one a seed; where one is NaN, nothing is known.
        floor: what a run must exceed to have learned, see
            `analysis.digest.measures.Measure.floor`; by default it is not known.
    """
    ordered = np.sort(np.asarray(values, np.float64))
    n = len(ordered)
    if n < 2 or np.isnan(ordered).any():
        return None
    gaps = np.diff(ordered)
    if ((ordered[:-1] <= floor) & (floor < ordered[1:]) & (gaps >= GAP - ROUNDING)).any():
        return floor
    sides = np.split(ordered, [gaps.argmax() + 1])
    rest = max(np.ptp(side) for side in sides if 2 * len(side) >= n)
    is_large = gaps.max() >= max(GAP, _WIDER * rest) - ROUNDING
    return _middle(ordered) if n >= MIN_SEEDS and is_large else None


def share_mean(
    values: ArrayLike,
    weights: NDArray[np.float64] | None = None,
    floor: float = -math.inf,
    confidence: float = 0.95,
    backgrounds: Part | None = None,
) -> CrossedMean:
    """The mean of shares, with an interval on the logit scale; none where seeds fall apart.

    Args:
        values: (n, I) shares of the images with each seed; (n,) one share a seed.
        weights: (I,) instances of each image; by default equal.
        floor: see `apart`.
        confidence: of the interval, in (0, 1).
        backgrounds: see `analysis.rules.crossed.crossed_mean`.
    """
    shares = np.asarray(values, np.float64)
    shares = shares if shares.ndim == 2 else shares[:, None]
    found = crossed_mean(shares, weights, confidence, backgrounds)
    low, high = on_logit_scale(found.mean, found.low, found.high)
    if apart(np.average(shares, axis=1, weights=weights), floor) is not None:
        low = high = math.nan
    return replace(found, low=low, high=high)


def learned(first: ArrayLike, second: ArrayLike, floor: float = -math.inf) -> Learned | None:
    """Which runs of two paradigms learned; None where the seeds of neither fall apart.

    What parts the seeds is sought among the runs of both, so it does not depend on whose run is
    whose.

    Args:
        first: (n,) one number a seed.
        second: (n,) those of the same seeds.
        floor: see `apart`.
    """
    sides = np.array([first, second], np.float64)
    *of_each, of_both = (apart(values, floor) for values in (*sides, sides.ravel()))
    if np.isnan(sides).any() or of_each == [None, None]:
        return None
    above = floor if floor in (*of_each, of_both) else _middle(np.sort(sides.ravel()))
    one, other = sides > above
    return Learned(
        above,
        learned_first=one.sum(),
        learned_second=other.sum(),
        given_first=sides[0][one].mean() if one.any() else math.nan,
        given_second=sides[1][other].mean() if other.any() else math.nan,
        p_learned=mcnemar((one & ~other).sum(), (other & ~one).sum()),
    )


def _middle(ordered: NDArray[np.float64]) -> float:
    """The middle of the largest gap."""
    place = int(np.diff(ordered).argmax())
    return float(ordered[place : place + 2].mean())
