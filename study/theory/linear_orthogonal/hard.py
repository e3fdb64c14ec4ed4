"""Hard attention: L = -alpha log beta + (1 - alpha) log C. Equations (2) and (5) of the paper."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_expit, spence

from study.theory.linear_orthogonal.base import State
from study.theory.linear_orthogonal.checks import Floats

_NEAR = 0.5
"""Below this mu the first integral is integrated numerically, since its terms cancel to two digits
or less."""

# The integrand has no singularity within pi of the real line, so this is exact to rounding.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


class Hard:
    """A share 1 - alpha of its classifier's inputs is background with random labels."""

    name = "hard"

    def loss(self, state: State) -> Floats:
        """See `Paradigm.loss`."""
        classify = -log_expit(state.mu - math.log(state.others))
        return state.alpha * classify + state.background * math.log(state.num_classes)

    def incentive(self, state: State, step: Floats) -> Floats:
        """step log(C beta), since the loss is linear in alpha."""
        return step * state.gain

    def slope(self, state: State) -> Floats:
        """log(C beta)."""
        return state.gain + 0 * state.alpha  # broadcast to the shape of alpha and mu

    def floor(self, state: State) -> Floats:
        """(1 - alpha) log C."""
        return state.background * math.log(state.num_classes)

    def derivatives(self, state: State) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """See `Paradigm.derivatives`."""
        alpha, miss = state.alpha, state.miss
        first = alpha * state.background  # d alpha / d nu
        second = first * (state.background - alpha)
        return (
            -alpha * miss,
            -first * state.gain,
            alpha * state.beta * miss,
            -first * miss,
            -second * state.gain,
        )

    def fixed_elapsed(self, mu: Floats, alpha: float, num_classes: int) -> Floats:
        """alpha t = e^mu - 1 + (C-1) mu."""
        return np.expm1(mu) + (num_classes - 1) * mu

    def fixed_bound(self, alpha_times: Floats, alpha: float, num_classes: int) -> Floats:
        """Each of the two terms alone bounds mu."""
        return np.minimum(alpha_times / num_classes, np.log1p(alpha_times))

    def slowness(self, state: State) -> Floats:
        """(e^mu + C - 1) / alpha."""
        return (np.exp(state.mu) + state.others) / state.alpha

    def first_integral(self, mu: Floats, num_classes: int) -> Floats:
        """F = (1/C) integral from 0 to mu of (e^x + C - 1) log(C beta(x)) dx.

        It is explicit with the dilogarithm Li2; near 0, where its terms cancel, it is integrated
        numerically.
        """
        near = mu < _NEAR
        integral = np.array(_with_dilogarithm(np.maximum(mu, _NEAR), num_classes))
        integral[near] = _integrated(mu[near], num_classes)
        return integral


def _integrated(mu: Floats, num_classes: int) -> Floats:
    """F of `Hard.first_integral` for 0 <= mu <= _NEAR."""
    x = mu[..., None] * ((_NODES + 1) / 2)
    gain = State(x, np.ones(1), np.zeros(1), num_classes).gain
    return mu / 2 * (((np.expm1(x) / num_classes + 1) * gain) @ _WEIGHTS)


def _with_dilogarithm(mu: Floats, num_classes: int) -> Floats:
    """F of `Hard.first_integral` for mu >= _NEAR. SciPy's spence(1 + x) is Li2(-x).

    C F = (e^mu + C - 1) log(C beta)
          + (C - 1) [mu (log C - 1) - Li2(-(C-1) e^-mu) + Li2(-(C-1))]
    """
    others = num_classes - 1
    gain = State(mu, np.ones(1), np.zeros(1), num_classes).gain
    mixed = mu * (math.log(num_classes) - 1)
    dilogarithms = spence(1.0 + others) - spence(1 + others * np.exp(-mu))
    total = (np.exp(mu) + others) * gain + others * (mixed + dilogarithms)
    return total / num_classes
