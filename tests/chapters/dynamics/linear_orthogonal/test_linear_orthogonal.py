"""Theorems 1 and 2: against mpmath, against automatic differentiation, and by their identities."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
import torch
from torch import Tensor

from chapters.dynamics import linear_orthogonal as lo
from chapters.dynamics.linear_orthogonal.paradigms import paradigm_of
from chapters.dynamics.linear_orthogonal.state import State, attention_of
from study import paradigms
from study.errors import RequestError
from tests.chapters.paths import theory_by_hand as reference

NAMES = ("soft", "hard", "lvml")
PAIRS = ((2, 2), (100, 1000), (2, 1000))
TIMES = [0.0, 1e-9, 1e-3, 1.0, 50.0, 1e3, 3e4, 4e5]
BACKGROUND_AXES = 8

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
    times = [0.0, 1e-300, 1e-20, 1e12, 1e12, 1e100, 1e300]
    for m, num_classes in ((2, 2), (100, 1000), (10**6, 10**6)):
        table = lo.trajectory(paradigm, m, num_classes, times, alpha=alpha)
        assert np.isfinite(table.drop(columns="nu")).all(axis=None)
        assert table["mu"].is_monotonic_increasing
        assert (table["mu"] >= 0).all()
        assert lo.trajectory(paradigm, m, num_classes, [], alpha=alpha).empty
    if alpha == 1e-300:  # mu' = alpha / C as long as mu is small
        assert table["mu"].iloc[-1] == pytest.approx(1e-6, rel=1e-6)


# --- the population loss --------------------------------------------------------------------


def population(m: int, num_classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Every class at every position, background drawn twice with opposite signs.

    Returns:
        segments (B, m, C + 8), labels (B,), foreground positions (B,). The mean of a background
        segment is exactly 0, and at the states of the theorems nothing else of it counts.
    """
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(num_classes).repeat_interleave(m)
    position = torch.arange(m).repeat(num_classes)
    size = (len(labels), m)
    axis = num_classes + torch.randint(BACKGROUND_AXES, size, generator=random)
    segments = torch.zeros(*size, num_classes + BACKGROUND_AXES, dtype=torch.float64)
    segments.scatter_(2, axis[..., None], 1.0)
    both = torch.cat([segments, -segments])
    labels, position = labels.repeat(2), position.repeat(2)
    rows = torch.arange(len(labels))
    both[rows, position] = 0.0
    both[rows, position, labels] = 1.0
    return both, labels, position


def directions(num_classes: int) -> tuple[Tensor, Tensor]:
    """D (C, C + 8) with rows s_k - mean, and sum_k s_k (C + 8,)."""
    eye = torch.eye(num_classes, num_classes + BACKGROUND_AXES, dtype=torch.float64)
    return eye - eye.mean(dim=0), eye.sum(dim=0)


def population_loss(
    paradigm: str, m: int, num_classes: int, alpha: float | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """(W, u) -> loss, by the paradigm that trains networks."""
    segments, labels, position = population(m, num_classes)
    attention = None
    if alpha is not None:
        attention = torch.full(segments.shape[:2], (1 - alpha) / (m - 1), dtype=torch.float64)
        attention[torch.arange(len(labels)), position] = alpha

    def loss(w: Tensor, u: Tensor) -> Tensor:
        return paradigms.get(paradigm).loss(
            lambda x: x @ u, lambda x: x @ w.T, segments, labels, attention=attention
        )

    return loss


def at(alpha: float, mu: float, num_classes: int) -> State:
    """A point of the plane."""
    return State(np.array(mu), np.array(alpha), np.array(1 - alpha), num_classes)


def random_states(count: int) -> list[tuple[float, float]]:
    """(mu, nu), the first of them zero."""
    random = np.random.default_rng(1)
    return [(0.0, 0.0), *((random.uniform(0, 6), random.uniform(-2, 5)) for _ in range(count))]


@pytest.mark.parametrize(
    ("m", "num_classes", "alpha"),
    [(2, 2, None), (5, 3, None), (20, 20, None), *((5, 3, a) for a in (0.0, 0.05, 0.9, 1.0))],
)
@of_each
def test_the_theorems_are_the_gradient_of_the_population_loss(paradigm, m, num_classes, alpha):
    """All components: along the two directions as printed, and 0 in every other one."""
    d, s = directions(num_classes)
    value = population_loss(paradigm, m, num_classes, alpha)
    for mu, nu in random_states(5):
        w, u = (mu * d).requires_grad_(), (nu * s).requires_grad_()
        loss = value(w, u)
        a = float(attention_of(np.array(nu), m)[0]) if alpha is None else alpha
        printed = [float(x) for x in reference.speed(paradigm, a, mu, num_classes)]
        (by_w,) = torch.autograd.grad(loss, w, retain_graph=True)
        torch.testing.assert_close(-by_w, printed[0] * d, rtol=0, atol=1e-9)
        if alpha is None:
            (by_u,) = torch.autograd.grad(loss, u)
            torch.testing.assert_close(-by_u, printed[1] * s, rtol=0, atol=1e-9)
        found = paradigm_of(paradigm).loss(at(a, mu, num_classes))
        assert loss.item() == pytest.approx(float(found), abs=1e-12)


# --- loss, incentive, floor -----------------------------------------------------------------


@of_each
def test_loss_incentive_and_slope_keep_their_digits(paradigm):
    alphas = (0.0, 1e-9, 0.3, 0.995, 1 - 1e-12, 1.0)
    mus = (-5.0, -1e-3, 0.0, 1e-12, 1e-3, 1.0, 8.0, 30.0)
    with mpmath.mp.workdps(60):
        for c, alpha, mu in itertools.product((2, 20, 1000), alphas, mus):

            def loss(a: mpmath.mpf, mu: float = mu, c: int = c) -> mpmath.mpf:
                return reference.loss(paradigm, a, mpmath.mpf(mu), c)

            a, step = mpmath.mpf(alpha), min(lo.INCENTIVE_STEP, 1 - alpha)
            state, formulas = at(alpha, mu, c), paradigm_of(paradigm)
            for found, want in (
                (formulas.loss(state), loss(a)),
                (formulas.incentive(state, np.array(step)), loss(a) - loss(a + mpmath.mpf(step))),
                (lo.incentive_slope(paradigm, alpha, mu, c), -mpmath.diff(loss, a, h=1e-25)),
            ):
                assert abs(float(found) - want) <= 1e-12 * abs(want) + mpmath.mpf("1e-20")


@of_each
def test_the_loss_falls_to_its_floor(paradigm):
    for (m, num_classes), alpha in itertools.product(PAIRS, (None, 0.0, 0.05, 1.0)):
        loss = lo.trajectory(paradigm, m, num_classes, [1e300], alpha=alpha)["loss"].item()
        floor = lo.floor(paradigm, 1.0 if alpha is None else alpha, num_classes)
        assert loss == pytest.approx(float(floor), rel=1e-12, abs=1e-200)


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
