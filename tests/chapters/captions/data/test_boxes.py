"""How much of each region lies in a box, on grids that a hand can check."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from chapters.captions.data.boxes import shares_inside


def shares(box: tuple[float, ...], side: int) -> torch.Tensor:
    (found,) = shares_inside(torch.tensor([box], dtype=torch.float64), side)
    return found.reshape(side, side)


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ((0.5, 0, 0.5, 0.5), [[0, 1], [0, 0]]),  # on the edges of a region: upper right
        ((0, 0.25, 0.25, 0.75), [[0.25, 0], [0.5, 0]]),  # at the left edge, down to the bottom
        ((0.75, 0.75, 0.25, 0.25), [[0, 0], [0, 0.25]]),  # in the last corner
    ],
)
def test_shares_of_boxes_by_hand(box, expected):
    assert shares(box, 2).tolist() == expected


@given(st.tuples(*[st.floats(0, 1)] * 4), st.integers(1, 14))
def test_shares_add_up_to_the_area(corners, side):
    (left, right), (top, bottom) = sorted(corners[:2]), sorted(corners[2:])
    found = shares((left, top, right - left, bottom - top), side)
    assert 0 <= found.min() <= found.max() <= 1
    area = (right - left) * (bottom - top)
    assert found.double().mean().item() == pytest.approx(area, abs=1e-6)
