"""Overlaps of a kernel with the labels, and scores of heads."""

from __future__ import annotations

import numpy as np
import pytest

from study.theory.attention_paths import head_scores, overlaps


def test_overlaps_of_a_kernel_that_a_hand_can_check() -> None:
    kernel = np.diag([1.0, 3.0, 2.0])
    np.testing.assert_allclose(overlaps(kernel, [0, -3, 4]), [0.6, 0.8, 0], atol=1e-15)
    with pytest.raises(ValueError, match="must not all be 0"):
        overlaps(kernel, [0, 0, 0])


def test_squares_of_overlaps_sum_to_one() -> None:
    random = np.random.default_rng(0)
    factor = random.normal(size=(9, 4))
    found = overlaps(factor @ factor.T, random.normal(size=9))
    assert np.sum(found**2) == pytest.approx(1)


def test_scores_that_a_hand_can_check() -> None:
    """Paths (0,0), (0,1), (1,0), (1,1); only (0,0) with itself and with (1,1) has weight."""
    order_parameter = np.zeros((4, 4))
    order_parameter[0, 0] = 2
    order_parameter[0, 3] = order_parameter[3, 0] = -1
    first, second = head_scores(order_parameter, (2, 2))
    np.testing.assert_allclose(first, [1, 0.5])
    np.testing.assert_allclose(second, [1, 0.5])


def test_equal_paths_make_equal_heads() -> None:
    for scores in head_scores(np.eye(12), (2, 3, 2)):
        np.testing.assert_allclose(scores, scores[0])


def test_scores_refuse_what_is_no_order_parameter() -> None:
    with pytest.raises(ValueError, match="make 4 paths, but the features have 3"):
        head_scores(np.eye(3), (2, 2))
    with pytest.raises(ValueError, match="square"):
        head_scores(np.ones((4, 3)), (2, 2))
    with pytest.raises(ValueError, match="no head is used"):
        head_scores(np.zeros((4, 4)), (2, 2))
