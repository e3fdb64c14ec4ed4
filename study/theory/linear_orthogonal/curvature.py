"""Gradient and Hessian of the population losses in the plane of Theorem 2 (open question 3).

The plane has the coordinates p = sqrt(C-1) mu and q = sqrt(C) nu. They have unit length in the
space of all weights, since sum_k |s_k - (1/C) sum s_k'|^2 = C - 1 and |sum s_k|^2 = C. So the flow
in the plane is the flow of the whole network, and the Hessian here is that of the whole network
restricted to the plane.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from study.errors import RequestError
from study.theory.linear_orthogonal import checks
from study.theory.linear_orthogonal.base import Paradigm, State, attention_of
from study.theory.linear_orthogonal.checks import Floats
from study.theory.linear_orthogonal.flow import joint_mu, on_trajectory, paradigm_of

COLUMNS = [
    "t", "mu", "nu", "loss", "gradient_norm", "eigenvalue_min", "eigenvalue_max",
    "condition_number", "rate",
]  # fmt: skip


def along(paradigm: str, m: int, num_classes: int, times: ArrayLike) -> pd.DataFrame:
    """The curvature of a population loss along its own trajectory of Theorem 2.

    Args:
        paradigm: soft, hard or lvml.
        m: segments of a mosaic, >= 2.
        num_classes: C, >= 2.
        times: (T,) gradient-flow times, >= 0, not decreasing.

    Returns:
        One row a time, columns t, mu, nu, loss (nats), gradient_norm, eigenvalue_min and
        eigenvalue_max of the Hessian, condition_number |largest| / |smallest| by absolute value
        (inf if the smallest is 0), rate = |gradient|^2 / loss = -d log(loss) / dt.

    Raises:
        RequestError: an argument is out of its range.
    """
    formulas = paradigm_of(paradigm)
    m, num_classes = checks.whole("m", m, 2), checks.whole("num_classes", num_classes, 2)
    t = checks.times(times)
    mu = joint_mu(formulas, m, num_classes, t)
    state, nu = on_trajectory(formulas, m, num_classes, mu)
    return _table(formulas, state, nu, t)


def at(paradigm: str, m: int, num_classes: int, mu: ArrayLike, nu: ArrayLike) -> pd.DataFrame:
    """The curvature at given states, to compare paradigms that are equally far.

    Args:
        paradigm: soft, hard or lvml.
        m: segments of a mosaic, >= 2.
        num_classes: C, >= 2.
        mu: (K,) scales of the classifier.
        nu: (K,) scales of the focus.

    Returns:
        One row a state, the columns of `along` without t.

    Raises:
        RequestError: an argument is out of its range.
    """
    formulas, state, nus = _given(paradigm, m, num_classes, mu, nu)
    return _table(formulas, state, nus, None)


def gradient(paradigm: str, m: int, num_classes: int, mu: ArrayLike, nu: ArrayLike) -> Floats:
    """(K, 2) dL/dp and dL/dq at the states (K,) mu, nu. Arguments and errors as for `at`."""
    formulas, state, _ = _given(paradigm, m, num_classes, mu, nu)
    return _gradient(formulas, state)


def hessian(paradigm: str, m: int, num_classes: int, mu: ArrayLike, nu: ArrayLike) -> Floats:
    """(K, 2, 2) second derivatives in (p, q) at the states (K,) mu, nu; otherwise as `at`."""
    formulas, state, _ = _given(paradigm, m, num_classes, mu, nu)
    pp, pq, qq = _hessian(formulas, state)
    return np.stack([np.stack([pp, pq], axis=-1), np.stack([pq, qq], axis=-1)], axis=-2)


def _table(formulas: Paradigm, state: State, nu: Floats, t: Floats | None) -> pd.DataFrame:
    loss = formulas.loss(state)
    squared = (_gradient(formulas, state) ** 2).sum(axis=1)
    smallest, largest, low, high = _eigenvalues(*_hessian(formulas, state))
    with np.errstate(divide="ignore"):
        condition = np.abs(largest) / np.abs(smallest)
    columns = [state.mu, nu, loss, np.sqrt(squared), low, high, condition, squared / loss]
    table = pd.DataFrame(dict(zip(COLUMNS[1:], columns, strict=True)))
    if t is not None:
        table.insert(0, "t", t)
    return table


def _gradient(formulas: Paradigm, state: State) -> Floats:
    by_mu, by_nu, *_ = formulas.derivatives(state)
    p, q = math.sqrt(state.others), math.sqrt(state.num_classes)
    return np.stack([by_mu / p, by_nu / q], axis=-1)


def _hessian(formulas: Paradigm, state: State) -> tuple[Floats, Floats, Floats]:
    _, _, mu_mu, mu_nu, nu_nu = formulas.derivatives(state)
    p, q = math.sqrt(state.others), math.sqrt(state.num_classes)
    return mu_mu / p**2, mu_nu / (p * q), nu_nu / q**2


def _eigenvalues(pp: Floats, pq: Floats, qq: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Eigenvalues of symmetric 2 x 2 matrices: smallest, largest by absolute value, min, max."""
    middle, spread = (pp + qq) / 2, np.hypot((pp - qq) / 2, pq)
    largest = middle + np.copysign(spread, middle)
    # The other one from the determinant, as the difference of near numbers would be rounding.
    safe = np.where(largest == 0, 1.0, largest)
    smallest = np.where(largest == 0, 0.0, (pp / safe) * qq - (pq / safe) * pq)
    return smallest, largest, np.minimum(smallest, largest), np.maximum(smallest, largest)


def _given(
    paradigm: str, m: int, num_classes: int, mu: ArrayLike, nu: ArrayLike
) -> tuple[Paradigm, State, Floats]:
    formulas = paradigm_of(paradigm)
    m, num_classes = checks.whole("m", m, 2), checks.whole("num_classes", num_classes, 2)
    mus, nus = checks.finite("mu", mu, checks.LEAST_MU), checks.finite("nu", nu)
    if mus.ndim != 1 or mus.shape != nus.shape:
        raise RequestError(
            f"mu and nu must be one-dimensional and equally long, got shapes {mus.shape} "
            f"and {nus.shape}."
        )
    alpha, background = attention_of(nus, m)
    return formulas, State(mus, alpha, background, num_classes), nus
