"""Theorems 1 and 2 of the paper as tables: a linear model in the linear orthogonal setting.

Each paradigm's formulas are in its own module (`soft`, `hard`, `lvml`); docs/dynamics.md derives
them. Nothing is stepped through time. If alpha is fixed, t(mu) is explicit. If both train, nu
follows from mu by a first integral, and t(mu) is an integral of a smooth positive function. Both
are inverted by SciPy's bracketing root finder.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize.elementwise import find_root

from study.errors import RequestError, unknown
from study.theory.linear_orthogonal import checks
from study.theory.linear_orthogonal.base import Paradigm, State, attention_of, focus_of
from study.theory.linear_orthogonal.checks import Floats
from study.theory.linear_orthogonal.hard import Hard
from study.theory.linear_orthogonal.lvml import LVML
from study.theory.linear_orthogonal.soft import Soft

PARADIGMS: dict[str, Paradigm] = {p.name: p for p in (Soft(), Hard(), LVML())}

INCENTIVE_STEP = 0.01
"""Step in attention over which the incentive is measured (section 3.2)."""

COLUMNS = ["t", "mu", "nu", "alpha", "beta", "loss", "incentive"]

_PANEL = 0.5
"""Width in mu of a panel on which dt/dmu is integrated. Its nearest singularity is about 1 away
from the real line (m = 100), so that 16 nodes are exact to rounding."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)

_REACHABLE = ("loss", "alpha", "beta")

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
    formulas = paradigm_of(paradigm)
    m, num_classes = checks.whole("m", m, 2), checks.whole("num_classes", num_classes, 2)
    t = checks.times(times)
    if alpha is None:
        mu = joint_mu(formulas, m, num_classes, t)
        state, nu = on_trajectory(formulas, m, num_classes, mu)
    else:
        fixed = _one_attention(alpha)
        mu = _fixed_mu(formulas, fixed, num_classes, t)
        state = State(mu, np.full_like(t, fixed), np.full_like(t, 1 - fixed), num_classes)
        with np.errstate(divide="ignore"):  # the two ends of alpha
            nu = np.log((m - 1) * state.alpha / state.background)
    step = np.minimum(INCENTIVE_STEP, state.background)
    columns = [
        t, mu, nu, state.alpha, state.beta, formulas.loss(state), formulas.incentive(state, step),
    ]  # fmt: skip
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


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
    formulas = paradigm_of(paradigm)
    m, num_classes = checks.whole("m", m, 2), checks.whole("num_classes", num_classes, 2)
    if column not in _REACHABLE:
        raise unknown("column to reach", column, _REACHABLE)
    goals = checks.finite(column, values)
    height = _falling(formulas, m, num_classes, column)
    first = {"loss": math.log(num_classes), "alpha": 1 / m, "beta": 1 / num_classes}[column]
    with np.errstate(divide="ignore", invalid="ignore"):  # a NaN is refused below
        odds = np.log1p(-goals) - np.log(goals)
        targets = np.log(goals) if column == "loss" else odds - math.log(1 / first - 1)
    targets = targets.ravel()
    start, end = height(np.zeros(1))[0], height(np.full(1, _LATEST_MU))[0]
    if not ((targets <= start + _ROUNDING) & (targets >= end)).all():
        raise RequestError(
            f"{paradigm} does not reach every {column} asked for: it starts at "
            f"{first:g} and is followed to mu = {_LATEST_MU:g}."
        )
    mu = np.zeros_like(targets)
    ahead = targets < start - _ROUNDING
    zeros = np.zeros(ahead.sum())
    mu[ahead] = _root(
        lambda x, target: target - height(x), zeros, zeros + _LATEST_MU, targets[ahead]
    )
    edges, elapsed = _clock(formulas, m, num_classes, until_mu=mu.max(initial=0.0))
    before = np.searchsorted(edges, mu, side="right") - 1
    rest = _integrate(formulas, m, num_classes, edges[before], mu)
    return (elapsed[before] + rest).reshape(goals.shape)


def loss(paradigm: str, alpha: ArrayLike, mu: ArrayLike, num_classes: int) -> Floats:
    """Population loss in nats; `alpha` in [0, 1] and `mu` broadcast (section 3.1).

    soft log(1 + (C-1) e^(-alpha mu)), hard -alpha log beta + (1 - alpha) log C, lvml -log Z.

    Raises:
        RequestError: an argument is out of its range.
    """
    return paradigm_of(paradigm).loss(_state(alpha, mu, num_classes))


def incentive(paradigm: str, alpha: ArrayLike, mu: ArrayLike, num_classes: int) -> Floats:
    """L(alpha) - L(min(alpha + .01, 1)) at the same mu, in nats; 0 at alpha = 1 (section 3.2).

    Raises:
        RequestError: an argument is out of its range.
    """
    state = _state(alpha, mu, num_classes)
    step = np.minimum(INCENTIVE_STEP, state.background)
    return paradigm_of(paradigm).incentive(state, step)


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


def asymptote(paradigm: str, m: int, num_classes: int, times: ArrayLike) -> pd.DataFrame:
    """Leading order of Theorem 2 for large t: columns t, mu, nu, loss.

    e^mu ~ t. nu ~ 2 log log t + log((m-1)(C-1)/(2C)) (soft), log t + log((m-1) log C / C) (hard),
    log t + log((m-1)(C-1)/C^2) (lvml). Loss ~ (C-1)/t (soft), (2C-1)/t (hard and lvml). The error
    falls as log(t)/t (hard, lvml), but for soft only as 1/log t (mu) and log log t / log^2 t (nu).
    NaN at t <= 1, where the expansion does not hold.

    Raises:
        RequestError: an argument is out of its range.
    """
    formulas = paradigm_of(paradigm)
    m, num_classes = checks.whole("m", m, 2), checks.whole("num_classes", num_classes, 2)
    t = checks.times(times)
    others = num_classes - 1
    late = np.where(t > 1, t, np.nan)
    mu = np.log(late)
    factor = {
        "soft": others / (2 * num_classes),
        "hard": math.log(num_classes) / num_classes,
        "lvml": others / num_classes**2,
    }[formulas.name]
    growth = 2 * np.log(mu) if formulas.name == "soft" else mu
    left = others if formulas.name == "soft" else others + num_classes
    nu = growth + math.log((m - 1) * factor)
    return pd.DataFrame({"t": t, "mu": mu, "nu": nu, "loss": left / late})


def paradigm_of(name: str) -> Paradigm:
    """The formulas of a paradigm.

    Raises:
        RequestError: no such paradigm.
    """
    if not isinstance(name, str) or name not in PARADIGMS:
        raise unknown("paradigm", name, PARADIGMS)
    return PARADIGMS[name]


def on_trajectory(
    formulas: Paradigm, m: int, num_classes: int, mu: Floats
) -> tuple[State, Floats]:
    """The state and nu of Theorem 2 when the classifier has reached mu >= 0."""
    nu = focus_of(formulas.first_integral(mu, num_classes), m)
    alpha, background = attention_of(nu, m)
    return State(mu, alpha, background, num_classes), nu


def _fixed_mu(formulas: Paradigm, alpha: float, num_classes: int, t: Floats) -> Floats:
    alpha_times = alpha * t
    high = formulas.fixed_bound(alpha_times, alpha, num_classes) if alpha else np.zeros_like(t)

    def late(mu: Floats, target: Floats) -> Floats:
        return formulas.fixed_elapsed(mu, alpha, num_classes) - target

    return _root(late, np.zeros_like(t), high, alpha_times)


def joint_mu(formulas: Paradigm, m: int, num_classes: int, t: Floats) -> Floats:
    """mu of Theorem 2 at checked times (T,)."""
    edges, elapsed = _clock(formulas, m, num_classes, until_time=t.max(initial=0.0))
    before = np.clip(np.searchsorted(elapsed, t, side="right") - 1, 0, len(edges) - 2)
    start = edges[before]
    # In the first panel no paradigm is twice as fast as at zero, where mu' = 1 / (m C). So this
    # bracket is tight even for very early times.
    early = np.minimum(_PANEL, 2 * t / (m * num_classes))
    end = np.where(before == 0, early, start + _PANEL)

    def late(mu: Floats, start: Floats, rest: Floats) -> Floats:
        return _integrate(formulas, m, num_classes, start, mu) - rest

    return _root(late, start, end, start, t - elapsed[before])


def _falling(
    formulas: Paradigm, m: int, num_classes: int, column: str
) -> Callable[[Floats], Floats]:
    """A function of mu that falls along Theorem 2: log loss, -nu (alpha) or -mu (beta)."""

    def height(mu: Floats) -> Floats:
        if column == "beta":
            return -mu
        state, nu = on_trajectory(formulas, m, num_classes, mu)
        return -nu if column == "alpha" else np.log(formulas.loss(state))

    return height


def _clock(
    formulas: Paradigm,
    m: int,
    num_classes: int,
    until_time: float = 0.0,
    until_mu: float = 0.0,
) -> tuple[Floats, Floats]:
    """Edges in mu of panels that reach past a time and a mu, and the time at each edge."""
    edges, elapsed = np.zeros(1), np.zeros(1)
    integrate = partial(_integrate, formulas, m, num_classes)
    while elapsed[-1] <= until_time or edges[-1] <= until_mu:
        new = edges[-1] + _PANEL * np.arange(1, 17)
        passed = np.cumsum(integrate(new - _PANEL, new))
        edges, elapsed = np.append(edges, new), np.append(elapsed, elapsed[-1] + passed)
    return edges, elapsed


def _integrate(formulas: Paradigm, m: int, num_classes: int, start: Floats, end: Floats) -> Floats:
    """Time along Theorem 2 from mu = start to mu = end, at most a panel apart."""
    half = (end - start) / 2
    mu = start[..., None] + half[..., None] * (_NODES + 1)
    state, _ = on_trajectory(formulas, m, num_classes, mu)
    return half * (formulas.slowness(state) @ _WEIGHTS)


def _root(function: Callable[..., Floats], low: Floats, high: Floats, *args: Floats) -> Floats:
    """The zero of an increasing function of mu within a bracket, element by element."""
    if not len(low):
        return low
    # Widened, so that rounding does not exclude a root that lies on the bound.
    found = find_root(function, (low, high * (1 + 1e-9)), args=args)
    if not found.success.all():  # the bounds hold by construction
        raise ArithmeticError(f"no root found: {found.status}")
    return found.x


def _state(alpha: ArrayLike, mu: ArrayLike, num_classes: int) -> State:
    num_classes = checks.whole("num_classes", num_classes, 2)
    attention = checks.attention(alpha)
    scale = checks.finite("mu", mu, checks.LEAST_MU)
    try:
        attention, scale = np.broadcast_arrays(attention, scale)
    except ValueError:
        raise RequestError(
            f"alpha and mu must broadcast, got shapes {attention.shape} and {scale.shape}."
        ) from None
    return State(scale, attention, 1 - attention, num_classes)


def _one_attention(alpha: float) -> float:
    values = checks.attention(alpha)
    if values.ndim:
        raise RequestError(f"alpha must be one number, got {values.ndim} dimensions.")
    return float(values)
