"""When the attention on the foreground rises over training: curves of single seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.rules.statistics import ROUNDING
from study.terminal import counted

SMALLEST_RISE = 0.05
"""Least gain of mean foreground attention (a fraction) that counts as a rise: five points, well
above what a mean over thousands of instances moves by chance."""

FEWEST_POINTS = 5
"""Evaluations that a curve needs: with fewer, interpolation alone would place half its rise."""

LATEST_START = 0.1
"""Share of the cut by which a curve must begin: a rise before its first point is not seen."""


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
    if math.isnan(rise + x.sum()):
        return math.nan, math.nan
    if rise < SMALLEST_RISE - ROUNDING:
        return math.inf, math.nan
    target = y[0] + rise / 2
    after = int(np.argmax(y >= target))  # >= 1, as the rise is above 0
    around = slice(after - 1, after + 1)
    gain = y[-1] - np.interp(0.5, x, y)
    return float(np.interp(target, y[around], x[around])), float(gain / rise)


def rises(
    evaluations: pd.DataFrame, paradigms: Sequence[str], seeds: Sequence[int], column: str
) -> pd.DataFrame | str:
    """The rises of several paradigms on the same seeds, on one time axis.

    Args:
        evaluations: rows of one split within the cut: `paradigm`, `seed`, `budget_fraction`,
            `foreground_attention_mean` (fraction) and `column`.
        paradigms: those that are read.
        seeds: likewise, at least one.
        column: the time axis, e.g. `compute_flops`; its largest value is the cut.

    Returns:
        One row a (paradigm, seed): `half` and `late_gain`, see `half_rise`, and `gap`, the widest
        between two evaluations of any curve, a fraction of the cut: what happens within it is not
        resolved. Or, as text, why a curve does not show a rise.
    """
    every = pd.MultiIndex.from_product([paradigms, seeds], names=["paradigm", "seed"])
    rows = evaluations.sort_values([column, "budget_fraction"]).set_index([*every.names])
    rows = rows[rows.index.isin(every)]
    curves = rows.groupby(level=every.names)
    times = curves[column]
    fewest = times.size().reindex(every, fill_value=0).min()
    cut, first = times.max().max(), times.first().max()
    if fewest < FEWEST_POINTS:
        return (
            f"a curve has {counted(fewest, 'evaluation')} within the cut, {FEWEST_POINTS} are "
            "needed to say when it rises"
        )
    if first > (LATEST_START + ROUNDING) * cut:
        return (
            f"a curve begins at {100 * first / cut:.0f} % of the cut, and it takes one that "
            f"begins within the first {100 * LATEST_START:g} % to say when it rises"
        )
    x, y = rows[[column, "foreground_attention_mean"]].to_numpy(np.float64).T
    found = {key: half_rise(x[own] / cut, y[own]) for key, own in curves.indices.items()}
    table = pd.DataFrame(found, index=["half", "late_gain"]).T
    return table.assign(gap=times.diff().max() / cut)
