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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.rules.crossed import CrossedMean
from analysis.rules.statistics import MIN_SEEDS, ROUNDING, mcnemar, on_logit_scale

GAP = 0.1
"""The least gap at which seeds fall apart, in the unit of the values: 10 points of shares."""

_SPREAD = ("low", "high", "seed_se", "image_se", "background_se")

_WIDER = 3.0
"""A gap is large beside seeds that lie at most a third as far apart."""


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


def share_mean(found: CrossedMean, by_seed: ArrayLike, floor: float = -math.inf) -> CrossedMean:
    """The mean of shares, with its interval on the logit scale; without where seeds fall apart.

    Args:
        found: the mean of the shares, with a symmetric interval.
        by_seed: (n,) the share of each seed.
        floor: see `apart`.
    """
    if apart(by_seed, floor) is not None:
        return without_spread(found)
    low, high = on_logit_scale(found.mean, found.low, found.high)
    return replace(found, low=low, high=high)


def without_spread(found: CrossedMean) -> CrossedMean:
    """A mean over seeds that fall apart: of two laws, it has neither interval nor spreads."""
    unknown: dict[str, Any] = dict.fromkeys(_SPREAD, math.nan)
    return replace(found, **unknown)


def learned(first: ArrayLike, second: ArrayLike, floor: float = -math.inf) -> dict[str, float]:
    """How often two paradigms learned, which decides nothing; empty: neither's seeds fall apart.

    What parts the seeds is sought among the runs of both, so it does not depend on whose run is
    whose.

    Args:
        first: (n,) one number a seed.
        second: (n,) those of the same seeds.
        floor: see `apart`.

    Returns:
        `above`: a run has learned if its measure is above this; `learned_first` and
        `learned_second`, how many runs have; `given_first` and `given_second`, their means (NaN:
        none has); `p_learned`, two-sided, by McNemar's exact test, that both learn equally often.
    """
    sides = np.array([first, second], np.float64)
    *of_each, of_both = (apart(values, floor) for values in (*sides, sides.ravel()))
    if np.isnan(sides).any() or of_each == [None, None]:
        return {}
    above = floor if floor in (*of_each, of_both) else _middle(np.sort(sides.ravel()))
    one, other = sides > above
    return {
        "above": above,
        "learned_first": one.sum(),
        "learned_second": other.sum(),
        "given_first": sides[0][one].mean() if one.any() else math.nan,
        "given_second": sides[1][other].mean() if other.any() else math.nan,
        "p_learned": mcnemar((one & ~other).sum(), (other & ~one).sum()),
    }


def _middle(ordered: NDArray[np.float64]) -> float:
    """The middle of the largest gap."""
    place = int(np.diff(ordered).argmax())
    return float(ordered[place : place + 2].mean())
