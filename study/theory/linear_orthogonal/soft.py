"""Soft attention: L = log(1 + (C - 1) e^(-alpha mu)). Equations (1) and (4) of the paper."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, exprel, log_expit

from study.theory.linear_orthogonal.base import State
from study.theory.linear_orthogonal.checks import Floats


class Soft:
    """Its classifier sees alpha times the foreground, so only the product alpha mu matters."""

    name = "soft"

    def loss(self, state: State) -> Floats:
        """See `Paradigm.loss`."""
        return -log_expit(state.alpha * state.mu - math.log(state.others))

    def incentive(self, state: State, step: Floats) -> Floats:
        """log of (1 + (C-1) e^(-alpha mu)) / (1 + (C-1) e^(-(alpha + step) mu))."""
        shift = math.log(state.others)
        after = expit((state.alpha + step) * state.mu - shift)
        return np.log1p(
            -np.expm1(-step * state.mu) * np.exp(shift - state.alpha * state.mu) * after
        )

    def slope(self, state: State) -> Floats:
        """mu (C-1) / (e^(alpha mu) + C - 1)."""
        return state.mu * self._miss(state)

    def floor(self, state: State) -> Floats:
        """0, but log C at alpha = 0, where nothing can be learned."""
        return np.where(state.alpha > 0, 0.0, math.log(state.num_classes))

    def derivatives(self, state: State) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """See `Paradigm.derivatives`. The loss has slope -miss and curvature miss (1 - miss)."""
        alpha, mu, miss = state.alpha, state.mu, self._miss(state)
        bend = miss * expit(alpha * mu - math.log(state.others))
        first = alpha * state.background  # d alpha / d nu
        second = first * (state.background - alpha)
        return (
            -alpha * miss,
            -first * mu * miss,
            alpha**2 * bend,
            first * (alpha * mu * bend - miss),
            first**2 * mu**2 * bend - second * mu * miss,
        )

    def fixed_elapsed(self, mu: Floats, alpha: float, num_classes: int) -> Floats:
        """alpha t = (e^(alpha mu) - 1) / alpha + (C-1) mu."""
        return mu * (exprel(alpha * mu) + num_classes - 1)

    def fixed_bound(self, alpha_times: Floats, alpha: float, num_classes: int) -> Floats:
        """Each of the two terms alone bounds mu; the exponential is used if alpha^2 t > 1."""
        linear = alpha_times / num_classes
        exponent = alpha * alpha_times
        return np.where(exponent > 1, np.minimum(linear, np.log1p(exponent) / alpha), linear)

    def slowness(self, state: State) -> Floats:
        """(e^(alpha mu) + C - 1) / alpha."""
        return (np.exp(state.alpha * state.mu) + state.others) / state.alpha

    def first_integral(self, mu: Floats, num_classes: int) -> Floats:
        """F = (C-1) mu^2 / (2C)."""
        return (num_classes - 1) / (2 * num_classes) * mu**2

    def _miss(self, state: State) -> Floats:
        """(C-1) / (e^(alpha mu) + C - 1): the probability of the wrong classes."""
        return expit(math.log(state.others) - state.alpha * state.mu)
