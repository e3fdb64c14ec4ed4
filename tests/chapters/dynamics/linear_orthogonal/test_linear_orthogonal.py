"""Theorems 1 and 2: against mpmath, and by their identities."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

from chapters.dynamics import linear_orthogonal as lo
from study.errors import RequestError
from tests.chapters.dynamics.linear_orthogonal import theory_by_hand as reference

NAMES = ("soft", "hard", "lvml")
PAIRS = ((2, 2), (100, 1000), (2, 1000))
TIMES = [0.0, 1e-9, 1e-3, 1.0, 50.0, 1e3, 3e4, 4e5]

of_each = pytest.mark.parametrize("paradigm", NAMES)


@pytest.mark.parametrize(
    ("m", "num_classes", "alpha"),
    [*((*pair, None) for pair in PAIRS), (100, 1000, 1e-3), *((2, 2, a) for a in (0.0, 0.3, 1.0))],
)
@of_each
def test_both_theorems_equal_an_independent_solution(paradigm, m, num_classes, alpha):
    """Every column, to a relative 1e-12."""
    table = lo.trajectory(paradigm, m, num_classes, TIMES, alpha=alpha)
    rows = reference.flow(paradigm, m, num_classes, TIMES, alpha)
    for found, row in zip(table.to_dict("records"), rows, strict=True):
        for name, want in row.items():
            if not want or not mpmath.isfinite(want):
                assert found[name] == want, name
            else:
                assert abs(found[name] / want - 1) < 1e-12, name


@pytest.mark.parametrize("alpha", [None, 0.0, 1e-300, 0.5, 1.0])
@of_each
def test_any_time_is_finite_without_a_warning(paradigm, alpha):
    """The loss falls to its floor."""
    times = [0.0, 1e-300, 1e-20, 1e12, 1e12, 1e100, 1e300]
    for m, num_classes in ((2, 2), (100, 1000), (10**6, 10**6)):
        table = lo.trajectory(paradigm, m, num_classes, times, alpha=alpha)
        assert np.isfinite(table.drop(columns="nu")).all(axis=None)
        assert table["mu"].is_monotonic_increasing
        assert (table["mu"] >= 0).all()
        assert lo.trajectory(paradigm, m, num_classes, [], alpha=alpha).empty
        if alpha != 1e-300:
            floor = lo.floor(paradigm, 1.0 if alpha is None else alpha, num_classes)
            assert table["loss"].iloc[-1] == pytest.approx(float(floor), rel=1e-12, abs=1e-200)
    if alpha == 1e-300:  # mu' = alpha / C as long as mu is small
        assert table["mu"].iloc[-1] == pytest.approx(1e-6, rel=1e-6)


# --- slope ----------------------------------------------------------------------------------


@of_each
def test_the_slope_keeps_its_digits(paradigm):
    """Loss and incentive are columns of trajectories, see above."""
    alphas = (0.0, 1e-9, 0.3, 0.995, 1 - 1e-12, 1.0)
    mus = (-5.0, -1e-3, 0.0, 1e-12, 1e-3, 1.0, 8.0, 30.0)
    with mpmath.mp.workdps(60):
        for c, alpha, mu in itertools.product((2, 20, 1000), alphas, mus):

            def loss(a: mpmath.mpf, mu: float = mu, c: int = c) -> mpmath.mpf:
                return reference.loss(paradigm, a, mpmath.mpf(mu), c)

            found = float(lo.incentive_slope(paradigm, alpha, mu, c))
            want = -mpmath.diff(loss, mpmath.mpf(alpha), h=1e-25)
            assert abs(found - want) <= 1e-12 * abs(want) + mpmath.mpf("1e-20")


# --- when -----------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["loss", "alpha", "beta"])
@of_each
def test_time_to_inverts_the_trajectory(paradigm, column):
    for m, num_classes in ((2, 2), (5, 3), (100, 1000)):
        times = np.array([0.0, 1.0, 40.0, 900.0, 2e5])
        values = lo.trajectory(paradigm, m, num_classes, times)[column].to_numpy()
        again = lo.time_to(paradigm, m, num_classes, column, values[:, None])[:, 0]
        assert again[0] == 0
        np.testing.assert_allclose(again[2:], times[2:], rtol=1e-7)
        # Early, a value hardly moves with time: its last digit is worth more than one of time.
        there = lo.trajectory(paradigm, m, num_classes, again)[column]
        np.testing.assert_allclose(there, values, rtol=1e-13)


# --- requests -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"m": 1}, "m must be an integer >= 2, got 1"),
        ({"alpha": -0.1}, r"alpha must be .*\[0, 1\], got -0.1"),
        ({"times": [math.inf]}, "times must be finite"),
        ({"times": [1.0, 0.5]}, "times must .*not decrease"),
        ({"times": [[1.0]]}, "times must be one-dimensional"),
        ({"paradigm": "hard-sampled"}, "unknown paradigm .*'hard-sampled'.*: soft, hard, lvml"),
    ],
)  # fmt: skip
def test_impossible_requests_are_refused(change, message):
    arguments = {"paradigm": "soft", "m": 5, "num_classes": 3, "times": [0.0, 1.0], **change}
    with pytest.raises(RequestError, match=message):
        lo.trajectory(**arguments)


@pytest.mark.parametrize(
    ("column", "value"),
    [("loss", 2.0), ("loss", 0.0), ("loss", -1.0), ("alpha", 0.1), ("alpha", 1.0), ("beta", 0.2),
     ("beta", math.nan), ("nu", 1.0)],
)  # fmt: skip
def test_what_is_never_reached_has_no_time(column, value):
    with pytest.raises(RequestError):
        lo.time_to("soft", 5, 3, column, value)
