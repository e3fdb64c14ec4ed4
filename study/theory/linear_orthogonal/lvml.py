"""Marginal likelihood: L = -log Z, Z = alpha beta + (1 - alpha) / C. Equations (3) and (6).

Its flow is that of `Hard` with the posterior responsibility gamma = alpha beta / Z of the
foreground in place of its attention: mu' = gamma beta e^-mu, and nu' = (gamma - alpha) / C.
"""

from __future__ import annotations

import numpy as np

from study.theory.linear_orthogonal.base import State, exp_remainder
from study.theory.linear_orthogonal.checks import Floats


class LVML:
    """The exact negative log-likelihood of the model with a hidden foreground."""

    name = "lvml"

    def loss(self, state: State) -> Floats:
        """-log Z, from 1 - Z = alpha (1 - beta) + (1 - alpha) (1 - 1/C)."""
        chance = state.others / state.num_classes
        rest = state.alpha * state.miss + state.background * chance
        return _minus_log(state.evidence, rest)

    def incentive(self, state: State, step: Floats) -> Floats:
        """log(Z(alpha + step) / Z(alpha))."""
        return np.log1p(step * state.lift / state.evidence)

    def slope(self, state: State) -> Floats:
        """(beta - 1/C) / Z."""
        return state.lift / state.evidence

    def floor(self, state: State) -> Floats:
        """-log(alpha + (1 - alpha) / C)."""
        rest = state.background * (state.others / state.num_classes)
        return _minus_log(state.alpha + state.background / state.num_classes, rest)

    def derivatives(self, state: State) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """See `Paradigm.derivatives`."""
        alpha, beta, miss = state.alpha, state.beta, state.miss
        gamma = alpha * beta / state.evidence
        pull = alpha * state.background * state.lift / state.evidence  # gamma - alpha
        return (
            -gamma * miss,
            -pull,
            gamma * miss * (beta - miss + gamma * miss),
            -gamma * miss * state.background / state.evidence / state.num_classes,
            pull * (alpha - state.background + pull),
        )

    def fixed_elapsed(self, mu: Floats, alpha: float, num_classes: int) -> Floats:
        """alpha t = A (e^mu - 1) + (B + A (C-1)) mu + B (C-1) (1 - e^-mu).

        A = alpha + (1 - alpha) / C, B = (1 - alpha) (C-1) / C.
        """
        others = num_classes - 1
        a, b = _coefficients(alpha, num_classes)
        return a * np.expm1(mu) + (b + a * others) * mu - b * others * np.expm1(-mu)

    def fixed_bound(self, alpha_times: Floats, alpha: float, num_classes: int) -> Floats:
        """The growing terms bound mu."""
        a, b = _coefficients(alpha, num_classes)
        return np.minimum(alpha_times / (a * num_classes + b), np.log1p(alpha_times / a))

    def slowness(self, state: State) -> Floats:
        """(e^mu + C - 1) / gamma."""
        odds = state.background / (state.alpha * state.num_classes)
        total = np.exp(state.mu) + state.others
        return total * (1 + odds * (1 + state.others * np.exp(-state.mu)))

    def first_integral(self, mu: Floats, num_classes: int) -> Floats:
        """F = (C-1) / C^2 [e^mu - 1 - mu + (C-1) (e^-mu - 1 + mu)]."""
        others = num_classes - 1
        total = exp_remainder(mu) + others * exp_remainder(-mu)
        return others / num_classes**2 * total


def _coefficients(alpha: float, num_classes: int) -> tuple[float, float]:
    """A and B of `LVML.fixed_elapsed`."""
    spread = (1 - alpha) / num_classes
    return alpha + spread, spread * (num_classes - 1)


def _minus_log(z: Floats, rest: Floats) -> Floats:
    """-log z, given rest = 1 - z with full relative accuracy."""
    return np.where(z < 0.5, -np.log(z), -np.log1p(-np.minimum(rest, 0.5)))
