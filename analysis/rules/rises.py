"""When the attention on the foreground rises over training: curves of single seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.rules.statistics import ROUNDING
from study.terminal import counted

SMALLEST_RISE = 0.05
"""Least gain of mean foreground attention (a fraction) that counts as a rise: five points, well
above what a mean over thousands of instances moves by chance."""

FEWEST_POINTS = 5
"""Evaluations that a curve needs: with fewer, interpolation alone would place half its rise."""

LATEST_START = 0.1
"""Share of the cut by which a curve must begin: a rise before its first point is not seen."""


@dataclass(frozen=True, eq=False)
class Rises:
    """The rises of n curves, one a seed.

    Attributes:
        half: (n,) see `half_rise`.
        late_gain: (n,) likewise.
        gap: widest gap between two evaluations of a curve, as a fraction of the cut: what happens
            within it is not resolved.
    """

    half: NDArray[np.float64]
    late_gain: NDArray[np.float64]
    gap: float

    @property
    def rose(self) -> NDArray[np.bool_]:
        """(n,) whether each curve rises by `SMALLEST_RISE` or more."""
        return np.isfinite(self.half)


def half_rise(time: ArrayLike, attention: ArrayLike) -> tuple[float, float]:
    """When a curve makes half of its rise, and what share of it comes in the last half.

    The rise is from the first value to the largest, so a curve that falls again has still risen.

    Args:
        time: (n,) increasing, as fractions of the cut in [0, 1], n >= 1.
        attention: (n,) the mean attention on the foreground at these times, fractions.

    Returns:
        The first time at which half of the rise is made, by linear interpolation; and the gain
        from time 0.5 to the end as a share of the rise (negative where it falls). A curve that
        rises by less than `SMALLEST_RISE` gives infinity (half of its rise lies at the cut or
        beyond) and NaN (an unseen rise has no share). Both are NaN where a value is NaN.
    """
    x, y = np.asarray(time, np.float64), np.asarray(attention, np.float64)
    rise = float(y.max() - y[0])
    if math.isnan(rise) or np.isnan(x).any():
        return math.nan, math.nan
    if rise < SMALLEST_RISE - ROUNDING:
        return math.inf, math.nan
    target = y[0] + rise / 2
    after = int(np.argmax(y >= target))  # >= 1, as the rise is above 0
    part = (target - y[after - 1]) / (y[after] - y[after - 1])
    half = x[after - 1] + part * (x[after] - x[after - 1])
    return float(half), float((y[-1] - np.interp(0.5, x, y)) / rise)


def rises(
    evaluations: Mapping[str, pd.DataFrame], seeds: Sequence[int], column: str
) -> dict[str, Rises] | str:
    """The rises of several paradigms on the same seeds, on one time axis.

    Args:
        evaluations: paradigm -> rows of one split within the cut: `seed`, `budget_fraction`,
            `foreground_attention_mean` (fraction) and `column`.
        seeds: n of them, in the order of the result, n >= 1.
        column: the time axis, e.g. `compute_flops`; the largest value of all curves is the cut.

    Returns:
        Paradigm -> its rises; or, as text, why a curve does not show them.
    """
    curves = {name: _curves(rows, seeds, column) for name, rows in evaluations.items()}
    every = [curve for each in curves.values() for curve in each]
    fewest = min(curve.shape[1] for curve in every)
    if fewest < FEWEST_POINTS:
        return (
            f"a curve has {counted(fewest, 'evaluation')} within the cut, {FEWEST_POINTS} are "
            "needed to say when it rises"
        )
    cut = max(curve[0, -1] for curve in every)
    if not cut > 0:
        return f"{column} is not known"
    latest = max(curve[0, 0] for curve in every) / cut
    if latest > LATEST_START + ROUNDING:
        return (
            f"a curve begins at {100 * latest:.0f} % of the cut, and it takes one that begins "
            f"within the first {100 * LATEST_START:g} % to say when it rises"
        )
    found = {}
    for name, each in curves.items():
        half, late_gain = np.array([half_rise(time / cut, a_z) for time, a_z in each]).T
        gap = max(float(np.diff(time).max()) for time, _ in each) / float(cut)
        found[name] = Rises(half, late_gain, gap)
    return found


def _curves(rows: pd.DataFrame, seeds: Sequence[int], column: str) -> list[NDArray[np.float64]]:
    """(2, n) time and attention of each seed, in the order of time."""
    names = [column, "foreground_attention_mean"]
    ordered = rows[["seed", "budget_fraction", *names]].sort_values([column, "budget_fraction"])
    numbers = ordered[names].to_numpy(np.float64)
    places = ordered.groupby("seed").indices
    return [numbers[places.get(seed, [])].T for seed in seeds]
