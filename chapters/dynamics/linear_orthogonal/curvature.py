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

from chapters.dynamics.linear_orthogonal.flow import at_times, checked, checked_times
from chapters.dynamics.linear_orthogonal.paradigms import Paradigm
from chapters.dynamics.linear_orthogonal.state import Floats, State


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
    formulas, m, num_classes = checked(paradigm, m, num_classes)
    t = checked_times(times)
    state, nu = at_times(formulas, m, num_classes, t)
    loss = formulas.loss(state)
    gradient, hessian = derivatives(formulas, state)
    squared = (gradient**2).sum(axis=1)
    smallest, largest = eigenvalues(hessian)
    with np.errstate(divide="ignore"):
        condition = np.abs(largest) / np.abs(smallest)
    return pd.DataFrame(
        {
            "t": t,
            "mu": state.mu,
            "nu": nu,
            "loss": loss,
            "gradient_norm": np.sqrt(squared),
            "eigenvalue_min": np.minimum(smallest, largest),
            "eigenvalue_max": np.maximum(smallest, largest),
            "condition_number": condition,
            "rate": squared / loss,
        }
    )


def derivatives(formulas: Paradigm, state: State) -> tuple[Floats, Floats]:
    """(K, 2) dL/dp, dL/dq and (K, 2, 2) the second derivatives in (p, q) at K states."""
    alpha, background = state.alpha, state.background
    first = alpha * background  # d alpha / d nu
    second = first * (background - alpha)
    by_nu = -first * formulas.slope(state)
    mu_mu, mu_alpha, alpha_alpha = formulas.curvature(state)
    nu_nu = first**2 * alpha_alpha - second * formulas.slope(state)
    mixed = first * mu_alpha
    lengths = np.array([math.sqrt(state.others), math.sqrt(state.num_classes)])
    gradient = np.stack([-formulas.drive(state), by_nu], axis=-1) / lengths
    hessian = np.stack([mu_mu, mixed, mixed, nu_nu], axis=-1).reshape(-1, 2, 2)
    return gradient, hessian / np.outer(lengths, lengths)


def eigenvalues(matrices: Floats) -> tuple[Floats, Floats]:
    """Those of (K, 2, 2) symmetric matrices: (K,) the smallest and largest by absolute value."""
    pp, pq, qq = matrices[:, 0, 0], matrices[:, 0, 1], matrices[:, 1, 1]
    middle, spread = (pp + qq) / 2, np.hypot((pp - qq) / 2, pq)
    largest = middle + np.copysign(spread, middle)
    # The other one from the determinant, as the difference of near numbers would be rounding.
    safe = np.where(largest == 0, 1.0, largest)
    return np.where(largest == 0, 0.0, (pp / safe) * qq - (pq / safe) * pq), largest
