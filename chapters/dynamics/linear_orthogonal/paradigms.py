"""The population losses of the three paradigms, their derivatives and their gradient flows.

Each paradigm has the methods

    loss            L, nats
    incentive       L(alpha) - L(alpha + step) at the same mu, nats; alpha + step <= 1
    floor           the loss as mu goes to infinity at fixed alpha, nats
    drive           -dL / d mu = (C - 1) d mu / dt, > 0 where alpha is
    slope           -dL / d alpha, nats per unit of attention
    curvature       d^2 L / d mu^2, d^2 L / d mu d alpha and d^2 L / d alpha^2
    fixed_mu        mu of a classifier that trains from zero at fixed alpha (Theorem 1), where
                    alpha t = progress
    first_integral  F(mu), mu >= 0. If both train (Theorem 2), d nu / d mu = (1 - alpha) times a
                    function of mu alone, so that nu + (e^nu - 1) / (m - 1) = F(mu) holds along
                    the trajectory from zero. It gives nu, and t is an integral.

docs/dynamics.md derives the formulas from equations (1) to (6) of the paper.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, gammainc, log_expit, spence

from chapters.dynamics.linear_orthogonal.state import Floats, State, grown, root
from study.errors import unknown

_NEAR = 0.5
"""Below this mu hard's first integral is integrated numerically, since its terms cancel to two
digits or less."""

# The integrand has no singularity within pi of the real line, so this is exact to rounding.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


class Soft:
    """L = log(1 + (C - 1) e^(-alpha mu)); equations (1) and (4).

    The classifier sees alpha times the foreground, so only the product alpha mu matters.
    """

    def loss(self, state: State) -> Floats:
        return -log_expit(state.alpha * state.mu - math.log(state.others))

    def incentive(self, state: State, step: Floats) -> Floats:
        """log of (1 + (C-1) e^(-alpha mu)) / (1 + (C-1) e^(-(alpha + step) mu))."""
        shift = math.log(state.others)
        after = expit((state.alpha + step) * state.mu - shift)
        return np.log1p(
            -np.expm1(-step * state.mu) * np.exp(shift - state.alpha * state.mu) * after
        )

    def floor(self, state: State) -> Floats:
        """0, but log C at alpha = 0, where nothing can be learned."""
        return np.where(state.alpha > 0, 0.0, math.log(state.num_classes))

    def drive(self, state: State) -> Floats:
        return state.alpha * self._miss(state)

    def slope(self, state: State) -> Floats:
        return state.mu * self._miss(state)

    def curvature(self, state: State) -> tuple[Floats, Floats, Floats]:
        """The loss has slope -miss in alpha mu, and curvature miss (1 - miss)."""
        alpha, mu, miss = state.alpha, state.mu, self._miss(state)
        bend = miss * expit(alpha * mu - math.log(state.others))
        return alpha**2 * bend, alpha * mu * bend - miss, mu**2 * bend

    def fixed_mu(self, progress: Floats, alpha: float, num_classes: int) -> Floats:
        """alpha t = (e^(alpha mu) - 1) / alpha + (C-1) mu."""
        total = alpha * progress
        product = grown(total, num_classes - 1)
        return np.where(total > 1e-200, product / (alpha or 1.0), progress / num_classes)

    def first_integral(self, mu: Floats, num_classes: int) -> Floats:
        """F = (C-1) mu^2 / (2C)."""
        return (num_classes - 1) / (2 * num_classes) * mu**2

    def _miss(self, state: State) -> Floats:
        """(C-1) / (e^(alpha mu) + C - 1): the probability of the wrong classes."""
        return expit(math.log(state.others) - state.alpha * state.mu)


class Hard:
    """L = -alpha log beta + (1 - alpha) log C; equations (2) and (5).

    A share 1 - alpha of the classifier's inputs is background with random labels.
    """

    def loss(self, state: State) -> Floats:
        classify = -log_expit(state.mu - math.log(state.others))
        return state.alpha * classify + state.background * math.log(state.num_classes)

    def incentive(self, state: State, step: Floats) -> Floats:
        """step log(C beta), since the loss is linear in alpha."""
        return step * state.gain

    def floor(self, state: State) -> Floats:
        return state.background * math.log(state.num_classes)

    def drive(self, state: State) -> Floats:
        return state.alpha * state.miss

    def slope(self, state: State) -> Floats:
        """log(C beta)."""
        return state.gain

    def curvature(self, state: State) -> tuple[Floats, Floats, Floats]:
        return state.alpha * state.beta * state.miss, -state.miss, 0 * state.mu

    def fixed_mu(self, progress: Floats, alpha: float, num_classes: int) -> Floats:
        """alpha t = e^mu - 1 + (C-1) mu."""
        return grown(progress, num_classes - 1)

    def first_integral(self, mu: Floats, num_classes: int) -> Floats:
        """F = (1/C) integral from 0 to mu of (e^x + C - 1) log(C beta(x)) dx.

        It is explicit with the dilogarithm Li2; SciPy's spence(1 + x) is Li2(-x):

            C F = (e^mu + C - 1) log(C beta)
                  + (C - 1) [mu (log C - 1) - Li2(-(C-1) e^-mu) + Li2(-(C-1))]
        """
        others, far = num_classes - 1, np.maximum(mu, _NEAR)
        dilogarithms = spence(1.0 + others) - spence(1 + others * np.exp(-far))
        total = (np.exp(far) + others) * _gain(far, num_classes)
        total += others * (far * (math.log(num_classes) - 1) + dilogarithms)
        integral = np.asarray(total / num_classes)
        near = mu < _NEAR
        half = mu[near] / 2
        x = half[..., None] * (_NODES + 1)
        speed = np.expm1(x) / num_classes + 1
        integral[near] = half * ((speed * _gain(x, num_classes)) @ _WEIGHTS)
        return integral


class LVML:
    """L = -log Z, Z = alpha beta + (1 - alpha) / C; equations (3) and (6).

    Its flow is that of hard with the posterior responsibility gamma = alpha beta / Z of the
    foreground in place of its attention: mu' = gamma beta e^-mu, and nu' = (gamma - alpha) / C.
    """

    def loss(self, state: State) -> Floats:
        """-log Z, from 1 - Z = alpha (1 - beta) + (1 - alpha) (1 - 1/C)."""
        chance = state.others / state.num_classes
        rest = state.alpha * state.miss + state.background * chance
        return _minus_log(state.evidence, rest)

    def incentive(self, state: State, step: Floats) -> Floats:
        """log(Z(alpha + step) / Z(alpha))."""
        return np.log1p(step * state.lift / state.evidence)

    def floor(self, state: State) -> Floats:
        """-log(alpha + (1 - alpha) / C)."""
        rest = state.background * (state.others / state.num_classes)
        return _minus_log(state.alpha + state.background / state.num_classes, rest)

    def drive(self, state: State) -> Floats:
        return state.alpha * state.beta / state.evidence * state.miss

    def slope(self, state: State) -> Floats:
        """(beta - 1/C) / Z."""
        return state.lift / state.evidence

    def curvature(self, state: State) -> tuple[Floats, Floats, Floats]:
        beta, miss, evidence, drive = state.beta, state.miss, state.evidence, self.drive(state)
        mixed = -beta * miss / evidence / evidence / state.num_classes
        return drive * (beta - miss + drive), mixed, self.slope(state) ** 2

    def fixed_mu(self, progress: Floats, alpha: float, num_classes: int) -> Floats:
        """alpha t = A (e^mu - 1) + (B + A (C-1)) mu + B (C-1) (1 - e^-mu).

        A = alpha + (1 - alpha) / C, B = (1 - alpha) (C-1) / C. The growing terms bound mu.
        """
        others = num_classes - 1
        spread = (1 - alpha) / num_classes
        a, b = alpha + spread, spread * others

        def late(mu: Floats, progress: Floats) -> Floats:
            late = a * np.expm1(mu) + (b + a * others) * mu - b * others * np.expm1(-mu)
            return late - progress

        high = np.minimum(progress / (a * num_classes + b), np.log1p(progress / a))
        return root(late, np.zeros_like(progress), high, progress)

    def first_integral(self, mu: Floats, num_classes: int) -> Floats:
        """F = (C-1) / C^2 [e^mu - 1 - mu + (C-1) (e^-mu - 1 + mu)].

        With the incomplete gamma function P(2, mu) = 1 - (1 + mu) e^-mu nothing cancels.
        """
        others, gamma = num_classes - 1, gammainc(2, mu)
        total = np.exp(mu) * gamma + others * (-mu * np.expm1(-mu) - gamma)
        return others / num_classes**2 * total


Paradigm = Soft | Hard | LVML

PARADIGMS: dict[str, Paradigm] = {"soft": Soft(), "hard": Hard(), "lvml": LVML()}


def paradigm_of(name: str) -> Paradigm:
    """The formulas of a paradigm.

    Raises:
        RequestError: no such paradigm.
    """
    if name not in PARADIGMS:
        raise unknown("paradigm", name, PARADIGMS)
    return PARADIGMS[name]


def _gain(mu: Floats, num_classes: int) -> Floats:
    return State(mu, np.ones(1), np.zeros(1), num_classes).gain


def _minus_log(z: Floats, rest: Floats) -> Floats:
    """-log z, given rest = 1 - z with full relative accuracy."""
    return np.where(z < 0.5, -np.log(z), -np.log1p(-np.minimum(rest, 0.5)))
