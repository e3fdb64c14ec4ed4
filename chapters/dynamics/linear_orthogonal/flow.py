"""Theorems 1 and 2 of the paper as tables: a linear model in the linear orthogonal setting.

Nothing is stepped through time. If alpha is fixed, mu is the root of an explicit equation. If both
train, nu follows from mu by a first integral, and t(mu) is an integral of a smooth positive
function, which SciPy's bracketing root finder inverts. docs/dynamics.md derives both.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from chapters.dynamics.linear_orthogonal.paradigms import Paradigm, paradigm_of
from chapters.dynamics.linear_orthogonal.state import (
    Floats,
    State,
    attention_of,
    finite,
    grown,
    root,
    whole,
)
from study.errors import RequestError, unknown

INCENTIVE_STEP = 0.01
"""Step in attention over which the incentive is measured (section 3.2)."""

_PANEL = 0.5
"""Width in mu of a panel on which dt/dmu is integrated. Its nearest singularity is about 1 away
from the real line (m = 100), so that 16 nodes are exact to rounding."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)

_LATEST = 1e300
"""The latest time that is accepted: e^mu grows as t, and must stay finite."""

LEAST_MU = -500.0
"""The least mu that is accepted: C e^-mu must stay finite."""

_LATEST_MU = 600.0
"""How far `time_to` looks; the time there, about e^mu, is still finite."""

_ROUNDING = 1e-12
"""Tolerance for a start value (log C, 1/m, 1/C) as a caller computes it."""


def trajectory(
    paradigm: str,
    m: int,
    num_classes: int,
    times: ArrayLike,
    alpha: float | None = None,
) -> pd.DataFrame:
    """The gradient flow of the population loss from zero weights, exact to rounding.

    Args:
        paradigm: soft, hard or lvml.
        m: segments of a mosaic, >= 2.
        num_classes: C, >= 2.
        times: (T,) gradient-flow times, >= 0, not decreasing.
        alpha: attention on the foreground in [0, 1], held fixed (Theorem 1). None: the focus
            trains, too, from alpha = 1/m (Theorem 2).

    Returns:
        One row a time, in the order of `times`, columns t, mu, nu (scales of the classifier and
        of the focus), alpha, beta (attention and probability of the true class at the
        foreground), loss and incentive (nats; the incentive is L(alpha) - L(min(alpha + .01, 1))
        at the same mu). If alpha is fixed, nu is the one that gives it: -inf at 0, inf at 1.

    Raises:
        RequestError: an argument is out of its range.
    """
    formulas, m, num_classes = checked(paradigm, m, num_classes)
    t = checked_times(times)
    if alpha is None:
        state, nu = at_times(formulas, m, num_classes, t)
    else:
        fixed = float(finite("alpha", alpha, 0, 1))
        mu = formulas.fixed_mu(fixed * t, fixed, num_classes)
        state = State(mu, np.full_like(t, fixed), np.full_like(t, 1 - fixed), num_classes)
        with np.errstate(divide="ignore"):  # the two ends of alpha
            nu = np.log((m - 1) * state.alpha / state.background)
    step = np.minimum(INCENTIVE_STEP, state.background)
    return pd.DataFrame(
        {
            "t": t,
            "mu": state.mu,
            "nu": nu,
            "alpha": state.alpha,
            "beta": state.beta,
            "loss": formulas.loss(state),
            "incentive": formulas.incentive(state, step),
        }
    )


def time_to(paradigm: str, m: int, num_classes: int, column: str, values: ArrayLike) -> Floats:
    """The times at which the joint gradient flow of Theorem 2 reaches given values of a column.

    Args:
        paradigm: soft, hard or lvml.
        m: segments of a mosaic, >= 2.
        num_classes: C, >= 2.
        column: loss (the paradigm's own, which falls from log C), alpha (rises from 1/m) or beta
            (rises from 1/C).
        values: of that column, any shape.

    Returns:
        Gradient-flow times in the shape of `values`, exact to rounding.

    Raises:
        RequestError: an argument is out of its range, or a value is never reached.
    """
    formulas, m, num_classes = checked(paradigm, m, num_classes)
    starts = {"loss": math.log(num_classes), "alpha": 1 / m, "beta": 1 / num_classes}
    if column not in starts:
        raise unknown("column to reach", column, starts)
    goals, start = finite(column, values), starts[column]

    def height(mu: Floats) -> Floats:
        """Of what falls along the trajectory: log loss, -nu (alpha) or -mu (beta)."""
        if column == "beta":
            return -mu
        state, nu = on_trajectory(formulas, m, num_classes, mu)
        return -nu if column == "alpha" else np.log(formulas.loss(state))

    with np.errstate(divide="ignore", invalid="ignore"):  # a NaN is refused below
        odds = np.log1p(-goals) - np.log(goals)
        targets = np.log(goals) if column == "loss" else odds - math.log(1 / start - 1)
    targets = targets.ravel()
    highest, lowest = height(np.array([0.0, _LATEST_MU]))
    if not ((targets <= highest + _ROUNDING) & (targets >= lowest)).all():
        raise RequestError(
            f"{paradigm} does not reach every {column} asked for: it starts at "
            f"{start:g} and is followed to mu = {_LATEST_MU:g}."
        )
    mu = np.zeros_like(targets)
    ahead = targets < highest - _ROUNDING
    low = mu[ahead]
    mu[ahead] = root(lambda x, goal: goal - height(x), low, low + _LATEST_MU, targets[ahead])
    edges, elapsed = _clock(formulas, m, num_classes, until_mu=mu.max(initial=0.0))
    before = np.searchsorted(edges, mu, side="right") - 1
    rest = _integrate(formulas, m, num_classes, edges[before], mu)
    return (elapsed[before] + rest).reshape(goals.shape)


def incentive_slope(paradigm: str, alpha: ArrayLike, mu: ArrayLike, num_classes: int) -> Floats:
    """-dL / d alpha at fixed mu, in nats per unit of attention (section 3.2).

    Raises:
        RequestError: an argument is out of its range.
    """
    return paradigm_of(paradigm).slope(_state(alpha, mu, num_classes))


def floor(paradigm: str, alpha: ArrayLike, num_classes: int) -> Floats:
    """The limit of the loss as t goes to infinity at fixed alpha, in nats.

    soft 0 (log C at alpha = 0), hard (1 - alpha) log C, lvml -log(alpha + (1 - alpha) / C).

    Raises:
        RequestError: an argument is out of its range.
    """
    return paradigm_of(paradigm).floor(_state(alpha, 0.0, num_classes))


def checked(paradigm: str, m: int, num_classes: int) -> tuple[Paradigm, int, int]:
    """The formulas of a paradigm, m >= 2 and C >= 2.

    Raises:
        RequestError: no such paradigm, or a number is too small.
    """
    return paradigm_of(paradigm), whole("m", m, 2), whole("num_classes", num_classes, 2)


def checked_times(times: ArrayLike) -> Floats:
    """(T,) float64 in [0, 1e300], not decreasing.

    Raises:
        RequestError: they are not.
    """
    array = finite("times", times, 0, _LATEST)
    if array.ndim != 1 or (np.diff(array) < 0).any():
        raise RequestError("times must be one-dimensional and must not decrease. Sort them.")
    return array


def on_trajectory(
    formulas: Paradigm, m: int, num_classes: int, mu: Floats
) -> tuple[State, Floats]:
    """The state and nu of Theorem 2 when the classifier has reached mu >= 0."""
    nu = grown((m - 1) * formulas.first_integral(mu, num_classes), m - 1)
    return State(mu, *attention_of(nu, m), num_classes), nu


def at_times(formulas: Paradigm, m: int, num_classes: int, t: Floats) -> tuple[State, Floats]:
    """The state and nu of Theorem 2 at checked times (T,)."""
    edges, elapsed = _clock(formulas, m, num_classes, until_time=t.max(initial=0.0))
    before = np.clip(np.searchsorted(elapsed, t, side="right") - 1, 0, len(edges) - 2)
    start = edges[before]
    # In the first panel no paradigm is twice as fast as at zero, where mu' = 1 / (m C). So this
    # bracket is tight even for very early times.
    early = np.minimum(_PANEL, 2 * t / (m * num_classes))
    end = np.where(before == 0, early, start + _PANEL)

    def late(mu: Floats, start: Floats, rest: Floats) -> Floats:
        return _integrate(formulas, m, num_classes, start, mu) - rest

    mu = root(late, start, end, start, t - elapsed[before])
    return on_trajectory(formulas, m, num_classes, mu)


def _clock(
    formulas: Paradigm,
    m: int,
    num_classes: int,
    until_time: float = 0.0,
    until_mu: float = 0.0,
) -> tuple[Floats, Floats]:
    """Edges in mu of panels that reach past a time and a mu, and the time at each edge."""
    edges, elapsed = np.zeros(1), np.zeros(1)
    while elapsed[-1] <= until_time or edges[-1] <= until_mu:
        new = edges[-1] + _PANEL * np.arange(1, 17)
        passed = np.cumsum(_integrate(formulas, m, num_classes, new - _PANEL, new))
        edges, elapsed = np.append(edges, new), np.append(elapsed, elapsed[-1] + passed)
    return edges, elapsed


def _integrate(formulas: Paradigm, m: int, num_classes: int, start: Floats, end: Floats) -> Floats:
    """Time along Theorem 2 from mu = start to mu = end, at most a panel apart."""
    half = (end - start) / 2
    mu = start[..., None] + half[..., None] * (_NODES + 1)
    state, _ = on_trajectory(formulas, m, num_classes, mu)
    return half * ((state.others / formulas.drive(state)) @ _WEIGHTS)


def _state(alpha: ArrayLike, mu: ArrayLike, num_classes: int) -> State:
    num_classes = whole("num_classes", num_classes, 2)
    held, scale = np.broadcast_arrays(finite("alpha", alpha, 0, 1), finite("mu", mu, LEAST_MU))
    return State(scale, held, 1 - held, num_classes)
