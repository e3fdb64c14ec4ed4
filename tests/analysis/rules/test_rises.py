"""Half of a rise, and what share of it comes late."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.rules.rises import SMALLEST_RISE, half_rise

TIMES = np.linspace(0, 1, 11)


@pytest.mark.parametrize(
    ("curve", "half"),
    [
        (0.2 + 0.98 * SMALLEST_RISE * TIMES, math.inf),  # does not rise
        (np.where(TIMES == 0.4, math.nan, TIMES), math.nan),
    ],
)
def test_what_does_not_rise_or_is_not_known_has_no_half(curve, half):
    assert half_rise(TIMES, curve) == pytest.approx((half, math.nan), nan_ok=True)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_half_of_a_rise_lies_where_the_curve_has_its_half(values):
    time, curve = np.linspace(0, 1, len(values)), np.array(values)
    half, late = half_rise(time, curve)
    assert 0 <= half <= 1 or half == math.inf
    if curve.max() - curve[0] >= SMALLEST_RISE:
        level = (curve[0] + curve.max()) / 2
        gained = curve[-1] - np.interp(0.5, time, curve)
        assert late == pytest.approx(gained / (curve.max() - curve[0]))
        assert np.interp(half, time, curve) == pytest.approx(level, abs=1e-6)
        assert (curve[time < half - 1e-12] < level).all()
