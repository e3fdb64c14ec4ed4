"""How far numbers are overstated that were chosen by themselves, or decided with few seeds."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtr, chdtri, ndtr, ndtri, stdtrit

from analysis.statistics import quantiles


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

    Raises:
        ValueError: a number is too small.
    """
    if num_seeds < 2 or min(options_first, options_second) < 1:
        raise ValueError(
            f"need num_seeds >= 2 and options >= 1, got {num_seeds}, {options_first} and "
            f"{options_second}"
        )
    first, second = (ndtri(quantiles() ** (1 / k)) for k in (options_first, options_second))
    shift = (first[:, None] - second) ** 2 / 2  # of z^2, before it is divided by s^2
    critical = stdtrit(num_seeds - 1, 0.975)
    rejected = chdtr(num_seeds - 1, (num_seeds - 1) * shift / critical**2)
    largest = max(float(first.mean()), float(second.mean()))
    return Optimism(float(rejected.mean()), max(largest, 0.0) / math.sqrt(num_seeds))


@functools.cache
def exaggeration(num_seeds: int, level: float, effect: float = math.sqrt(0.5)) -> float:
    """Factor by which a decided difference is overstated on average (type M error).

    Of small effects, only lucky estimates are decided. This is the mean of |difference| where a
    paired t test rejects, over the true difference.

    Args:
        num_seeds: n >= 2.
        level: of the two-sided test, in (0, 1); divide by the number of tests of the family.
        effect: the true difference > 0, in standard deviations of the pairs. The default is one
            standard deviation of a run over seeds, where two paradigms' runs have nothing in
            common but the seed's number: then pairs vary by sqrt(2) times as much.

    Raises:
        ValueError: a number is out of range.

    Source: Gelman & Carlin, Beyond power calculations, Perspectives on Psychological Science 9
    (2014).
    """
    if num_seeds < 2 or not 0 < level < 1 or not effect > 0:
        raise ValueError(
            "need num_seeds >= 2, level in (0, 1) and effect > 0, got "
            f"{num_seeds}, {level!r} and {effect!r}"
        )
    n = num_seeds
    spread = np.sqrt(chdtri(n - 1, quantiles()) / (n - 1))
    edge = stdtrit(n - 1, 1 - level / 2) * spread  # of |z|, z ~ N(shift, 1)
    shift = effect * math.sqrt(n)
    above, below = ndtr(shift - edge), ndtr(-shift - edge)
    tails = np.exp(-((edge - shift) ** 2) / 2) + np.exp(-((edge + shift) ** 2) / 2)
    total = shift * (above - below) + tails / math.sqrt(2 * math.pi)
    return float(total.mean() / (above + below).mean() / shift)
