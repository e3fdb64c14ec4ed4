"""What the three paradigms share in the linear orthogonal setting (section 4).

The weights are w_k = mu [s_k - (1/C) sum s_k'] and u = nu sum s_k. Background segments have zero
mean and are orthogonal to all s_k, so their scores and logits are 0. Everything follows from

    alpha = e^nu / (e^nu + m - 1)    attention on the foreground
    beta  = e^mu / (e^mu + C - 1)    probability of the true class at the foreground
    1 / C                            the same at a background segment

Differences such as 1 - alpha and beta - 1/C are computed without subtraction: small ones decide
the loss at late times and the incentive at early times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, log_expit

from study.theory.linear_orthogonal.checks import Floats


@dataclass(frozen=True, eq=False)
class State:
    """A point of the plane of Theorems 1 and 2; the arrays broadcast.

    Attributes:
        mu: scale of the classifier, > -700.
        alpha: attention on the foreground, in [0, 1].
        background: 1 - alpha, attention on all background segments together.
        num_classes: C.
    """

    mu: Floats
    alpha: Floats
    background: Floats
    num_classes: int

    @property
    def others(self) -> int:
        """C - 1."""
        return self.num_classes - 1

    @property
    def beta(self) -> Floats:
        """e^mu / (e^mu + C - 1)."""
        return expit(self.mu - math.log(self.others))

    @property
    def miss(self) -> Floats:
        """1 - beta."""
        return expit(math.log(self.others) - self.mu)

    @property
    def lift(self) -> Floats:
        """beta - 1/C."""
        return -np.expm1(-self.mu) * self.beta * (self.others / self.num_classes)

    @property
    def gain(self) -> Floats:
        """log(C beta), nats."""
        near = np.log1p(self.num_classes * np.maximum(self.lift, -0.9 / self.num_classes))
        far = math.log(self.num_classes) + log_expit(self.mu - math.log(self.others))
        return np.where(self.num_classes * self.lift > -0.9, near, far)

    @property
    def evidence(self) -> Floats:
        """Z = alpha beta + (1 - alpha) / C, the likelihood of the true class."""
        return self.alpha * self.beta + self.background / self.num_classes


class Paradigm(Protocol):
    """The population loss of a paradigm, its derivatives and its two gradient flows.

    The elapsed time is t as a function of mu. It is explicit if alpha is fixed (Theorem 1). If
    both train (Theorem 2), d nu / d mu = (1 - alpha) times a function of mu alone, so that

        nu + (e^nu - 1) / (m - 1) = F(mu)

    holds along the trajectory from zero: a first integral. It gives nu, and t is an integral.
    """

    name: str

    def loss(self, state: State) -> Floats:
        """Population loss, nats."""
        ...

    def incentive(self, state: State, step: Floats) -> Floats:
        """L(alpha) - L(alpha + step) at the same mu, nats; alpha + step <= 1."""
        ...

    def slope(self, state: State) -> Floats:
        """-dL / d alpha at fixed mu, nats per unit of attention."""
        ...

    def floor(self, state: State) -> Floats:
        """The loss as mu goes to infinity at fixed alpha, nats."""
        ...

    def derivatives(self, state: State) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """L_mu, L_nu, L_mu_mu, L_mu_nu, L_nu_nu."""
        ...

    def fixed_elapsed(self, mu: Floats, alpha: float, num_classes: int) -> Floats:
        """alpha t at which a classifier that trains from zero at fixed alpha reaches mu."""
        ...

    def fixed_bound(self, alpha_times: Floats, alpha: float, num_classes: int) -> Floats:
        """An upper bound of the mu reached at alpha t, whose exponentials do not overflow."""
        ...

    def slowness(self, state: State) -> Floats:
        """dt / d mu."""
        ...

    def first_integral(self, mu: Floats, num_classes: int) -> Floats:
        """F(mu), mu >= 0."""
        ...


def attention_of(nu: Floats, m: int) -> tuple[Floats, Floats]:
    """alpha and 1 - alpha."""
    shift = math.log(m - 1)
    return expit(nu - shift), expit(shift - nu)


def focus_of(integral: Floats, m: int) -> Floats:
    """The nu >= 0 at which nu + (e^nu - 1) / (m - 1) has the given value >= 0.

    Newton's method from above converges, since the function is convex and increasing. Both terms
    are positive, so each alone bounds nu.
    """
    nu = np.minimum(integral, np.log1p((m - 1) * integral))
    for _ in range(100):
        excess = nu + np.expm1(nu) / (m - 1) - integral
        correction = excess / (1 + np.exp(nu) / (m - 1))
        nu = np.maximum(nu - correction, 0.0)
        if (np.abs(correction) <= 1e-15 * nu).all():
            break
    return nu


def exp_remainder(x: Floats) -> Floats:
    """e^x - 1 - x, with full relative accuracy even near 0."""
    small = np.clip(x, -1, 1)
    series = np.zeros_like(small)
    for k in range(20, 1, -1):  # x^2/2 (1 + x/3 (1 + x/4 (...)))
        series = (1 + series) * small / k
    series = series * small
    return np.where(np.abs(x) < 1, series, np.expm1(x) - x)
