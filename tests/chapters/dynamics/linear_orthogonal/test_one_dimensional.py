"""The one-dimensional task of appendix A.5."""

from __future__ import annotations

import numpy as np
from scipy.stats import binomtest, kstest

from chapters.dynamics.linear_orthogonal.one_dimensional import (
    MEANS,
    STANDARD_DEVIATION,
    sample_base,
    sample_mosaics,
)

COUNT = 20_000
LEAST_P = 1e-6  # of a correct sample, once in a million


def assert_normal(values: np.ndarray, mean: float) -> None:
    assert kstest(values, "norm", (mean, STANDARD_DEVIATION)).pvalue > LEAST_P


def assert_share(where: np.ndarray, share: float) -> None:
    assert binomtest(int(where.sum()), len(where), share).pvalue > LEAST_P


def test_base_segments_follow_their_class() -> None:
    values, classes = sample_base(COUNT, 0)
    for k, mean in enumerate(MEANS):
        assert_share(classes == k, 1 / 3)
        assert_normal(values[classes == k], mean)


def test_mosaics_have_one_foreground_and_one_background() -> None:
    segments, labels, index = sample_mosaics(COUNT, 0)
    rows = np.arange(COUNT)
    assert_normal(segments[rows, 1 - index], MEANS[0])
    for k in (1, 2):
        assert_normal(segments[rows, index][labels == k], MEANS[k])
        for position in (0, 1):  # independent and uniform: the swap symmetry
            assert_share((labels == k) & (index == position), 1 / 4)
    np.testing.assert_array_equal(segments, sample_mosaics(COUNT, 0)[0])
    assert (segments != sample_mosaics(COUNT, 1)[0]).all()
