"""The one-dimensional task of appendix A.5."""

from __future__ import annotations

import numpy as np
import pytest

from study.errors import RequestError
from study.theory.linear_orthogonal.one_dimensional import (
    MEANS,
    STANDARD_DEVIATION,
    sample_base,
    sample_mosaics,
)

COUNT = 20_000
SIGMAS = 5  # a correct sample misses so many standard errors once in a million


def assert_normal(values: np.ndarray, mean: float) -> None:
    error = STANDARD_DEVIATION / np.sqrt(len(values))
    assert abs(values.mean() - mean) < SIGMAS * error
    assert abs(values.std() - STANDARD_DEVIATION) < SIGMAS * error / np.sqrt(2)


def test_base_segments_follow_their_class() -> None:
    values, classes = sample_base(COUNT, 0)
    assert values.shape == classes.shape == (COUNT,)
    assert values.dtype == np.float64
    assert classes.dtype == np.int64
    for k, mean in enumerate(MEANS):
        assert abs((classes == k).mean() - 1 / 3) < SIGMAS * np.sqrt(2 / 9 / COUNT)
        assert_normal(values[classes == k], mean)


def test_mosaics_have_one_foreground_and_one_background() -> None:
    segments, labels, index = sample_mosaics(COUNT, 0)
    assert segments.shape == (COUNT, 2)
    assert labels.shape == index.shape == (COUNT,)
    assert labels.dtype == index.dtype == np.int64
    rows = np.arange(COUNT)
    assert_normal(segments[rows, 1 - index], MEANS[0])
    for k in (1, 2):
        assert_normal(segments[rows, index][labels == k], MEANS[k])
        for position in (0, 1):  # independent and uniform: the swap symmetry
            share = ((labels == k) & (index == position)).mean()
            assert abs(share - 1 / 4) < SIGMAS * np.sqrt(3 / 16 / COUNT)


def test_samples_depend_on_the_seed_alone() -> None:
    for sample in (sample_base, sample_mosaics):
        for first, again in zip(sample(50, 7), sample(50, 7), strict=True):
            np.testing.assert_array_equal(first, again)
        assert not np.array_equal(sample(50, 7)[0], sample(50, 8)[0])
    assert len(sample_base(1, 0)[0]) == len(sample_mosaics(1, 0)[0]) == 1


@pytest.mark.parametrize("sample", [sample_base, sample_mosaics])
def test_impossible_requests_are_refused(sample) -> None:
    with pytest.raises(RequestError, match="count must be an integer >= 1"):
        sample(0, 0)
    with pytest.raises(RequestError, match="seed must be an integer >= 0"):
        sample(1, -1)
