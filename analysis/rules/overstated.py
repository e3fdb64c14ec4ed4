"""How far numbers are overstated that were chosen by themselves."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from scipy.special import chdtr, ndtri, stdtrit

from analysis.rules.statistics import quantiles


@dataclass(frozen=True)
class Optimism:
    """What it costs to choose and to test on the same seeds.

    Attributes:
        false_verdicts: chance of a paired t test at .05 to reject, with equal options, in [0, 1].
        sds: by how much the mean of the best option is overstated on average, in standard
            deviations of one run over seeds.
    """

    false_verdicts: float
    sds: float


@functools.cache
def optimism(num_seeds: int, options_first: int, options_second: int) -> Optimism:
    """How far the best of several equal options misleads where it is tested on the same seeds.

    The null model: all runs of all options are independent normal numbers with one mean and one
    spread, and the score that chooses is the score that is tested (what sets a run of a seed apart
    is seen on validation as on test). Then the mean of the chosen option is the largest of K
    normal numbers, and the spread about it is that of any option: the integrals are exact.

    Args:
        num_seeds: n >= 2.
        options_first: K >= 1 of one paradigm.
        options_second: K >= 1 of the other.
    """
    first, second = (ndtri(quantiles() ** (1 / k)) for k in (options_first, options_second))
    shift = (first[:, None] - second) ** 2 / 2  # of z^2, before it is divided by s^2
    critical = stdtrit(num_seeds - 1, 0.975)
    rejected = chdtr(num_seeds - 1, (num_seeds - 1) * shift / critical**2)
    largest = max(float(first.mean()), float(second.mean()))
    return Optimism(float(rejected.mean()), max(largest, 0.0) / math.sqrt(num_seeds))
