"""The one-dimensional focus-classify task of appendix A.5 (figure 5): m = 2, two classes.

The paper shows a background distribution D_0 between two foreground distributions D_1 and D_2,
without numbers. Here they are normal with means 0, -3, 3 and standard deviation .5, so that they
hardly overlap.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chapters.dynamics.linear_orthogonal.state import Floats

MEANS = (0.0, -3.0, 3.0)
"""Of D_0 (background), D_1 and D_2 (the foreground of class 1 and 2)."""

STANDARD_DEVIATION = 0.5

_BASE, _MOSAICS = 0, 1  # independent random streams


def sample_base(count: int, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """Draws single segments: D_0, D_1, D_2 with equal probability.

    Args:
        count: how many.
        seed: of the random numbers, >= 0.

    Returns:
        values (count,) float64, and classes (count,) int64 in {0, 1, 2}, 0 = background.
    """
    random = np.random.default_rng([seed, _BASE])
    classes = random.integers(0, 3, count)
    return _draw(random, classes), classes


def sample_mosaics(count: int, seed: int) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Draws mosaics of two segments: a foreground at a uniform position, and a background.

    Args:
        count: how many.
        seed: of the random numbers, >= 0.

    Returns:
        segments (count, 2) float64, labels (count,) int64 in {1, 2}, and foreground_index
        (count,) int64 in {0, 1}. Swapping the two segments of every mosaic leaves the distribution
        unchanged, which is the symmetry of the figure.
    """
    random = np.random.default_rng([seed, _MOSAICS])
    labels = random.integers(1, 3, count)
    foreground_index = random.integers(0, 2, count)
    classes = np.zeros((count, 2), dtype=np.int64)
    classes[np.arange(count), foreground_index] = labels
    return _draw(random, classes), labels, foreground_index


def _draw(random: np.random.Generator, classes: NDArray[np.int64]) -> Floats:
    return random.normal(np.take(MEANS, classes), STANDARD_DEVIATION)
