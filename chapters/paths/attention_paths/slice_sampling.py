"""Elliptical slice sampling of the order parameters.

    f = sum_pi g^pi . V^0 Phi^pi,    g^pi = V^{1 h1}' ... V^{L hL}' a / sqrt(N_1 ... N_L N_a)

V^{lh} is N_{l+1} x N_l, where N_{L+1} = N_a. Prior: the entries of V^0 are N(0, 1), as sigma_0 is
part of the features Phi; those of V^{lh} are N(0, sigma_l^2), those of a N(0, sigma_a^2).
Posterior: the prior times exp(-sum (f - y)^2 / 2T). The order parameter is
U^{pi pi'} = g^pi . g^pi' (arXiv 2405.15926).

With V^0 integrated out the network is a Gaussian process given U, and U has a prior of few
coordinates (`NestedFactors`). Elliptical slice sampling leaves the posterior as it is, whatever
distribution its ellipses are drawn from. So this one is chosen for speed: a Student t fitted to
the warm-up of its own chain and fixed from then on (Nishihara, Murray and Adams, JMLR 15, 2014;
Murray, Adams and MacKay, AISTATS 2010). At the paper's size an evaluation then gives about a
hundred times as many effective draws as with ellipses of the prior.

It is made for few paths. Four (14 coordinates) mix within seconds; eight in three layers (50) did
not within minutes: R-hat was 1.2 after 10,000 steps of warm-up, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, inv
from scipy.special import digamma, polygamma

from chapters.paths.attention_paths.action import Architecture, times_blocks
from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.attention_paths.features import pair_kernels
from chapters.paths.attention_paths.regression import Regression, weighed

DEGREES_OF_FREEDOM = 5.0
"""Of the Student t. With tails lighter than the posterior's, a chain stays out in them: a normal
distribution gave a hundredth of the effective draws."""

OVERDISPERSION = 2.0
"""A chain starts at the prior's mean plus a normal of so many of its standard deviations."""

WINDOWS = 5
"""Of the warm-up, each twice as long as the one before; the ellipses are refitted after each."""

ROUNDING = 1e-15
"""Radians below which a point on an ellipse is the one that the ellipse began at."""

MOST_ENTRIES = 2**26
"""Of path-path kernels that are multiplied out once, as U changes: half a gibibyte."""


class NestedFactors:
    """The prior of the order parameters U_a, U_L, ..., U_1 = U in few coordinates.

    From the readout down, with independent standard normal G_l of N_l rows,

        U_l = (sigma_l^2 / N_l) (G_l B_l)' (G_l B_l),   B_l = I (x) R_{l+1},
        U_{l+1} = R_{l+1}' R_{l+1},

    and the same with one column for U_a = sigma_a^2 |G_a|^2 / N_a. Only G_l' G_l enters, so the
    triangular factor T_l of G_l = Q T_l replaces G_l, and R_l = sigma_l T_l B_l / sqrt(N_l) is
    again triangular. By Bartlett's decomposition the entries of T_l are independent: those above
    the diagonal standard normal, the i-th on it (from 0) chi with N_l - i degrees of freedom. A
    network of any width thus has at most 1 + sum_l D_l (D_l + 1) / 2 coordinates: these entries,
    in the logarithm on the diagonal. Where N_l is less than the columns of G_l, T_l has N_l rows
    and U_l no full rank.

    Attributes:
        prior_mean: (d,) means of the coordinates under the prior.
        prior_deviation: (d,) their standard deviations; they are independent.
    """

    def __init__(self, architecture: Architecture) -> None:
        self._layers = []
        degrees, rows = [], 1
        for heads, width, variance in zip(
            (1, *architecture.heads[::-1]),
            architecture.widths[::-1],
            architecture.variances[::-1],
            strict=True,
        ):
            columns = heads * rows
            rows = int(min(width, columns))
            above = np.triu_indices(rows, 1, columns)
            entries = [np.concatenate([np.arange(rows), each]) for each in above]
            self._layers.append(((rows, columns), tuple(entries), math.sqrt(variance / width)))
            degrees += [width - np.arange(rows), np.zeros(len(above[0]))]
        self._degrees = np.concatenate(degrees)  # of freedom; 0 above the diagonal
        self._on = self._degrees > 0
        half = self._degrees[self._on] / 2
        self.prior_mean, self.prior_deviation = np.zeros((2, len(self._on)))
        self.prior_mean[self._on] = (digamma(half) + math.log(2)) / 2
        self.prior_deviation[:] = 1
        self.prior_deviation[self._on] = np.sqrt(polygamma(1, half)) / 2

    def log_prior(self, point: Floats) -> float:
        """The log density of coordinates (d,), up to a constant.

        A chi variable t with k degrees of freedom has the density t^(k-1) exp(-t^2/2), and its
        logarithm t^k exp(-t^2/2).
        """
        entries = self._entries(point)
        return float(self._degrees @ point - entries @ entries / 2)

    def order_parameters(self, point: Floats) -> tuple[Floats, float]:
        """U (D, D) and U_a of coordinates (d,)."""
        entries, factors = self._entries(point), [np.ones((1, 1))]
        start = 0
        for shape, at, scale in self._layers:
            triangle = np.zeros(shape)
            triangle[at] = entries[start : start + len(at[0])]
            start += len(at[0])
            factors.append(scale * times_blocks(triangle, factors[-1]))
        return factors[-1].T @ factors[-1], float(factors[1][0, 0] ** 2)

    def _entries(self, point: Floats) -> Floats:
        """Those of T_a, T_L, ..., T_1."""
        return np.exp(point, where=self._on, out=point.copy())


class PathKernels:
    """The path-path kernels between two sets of inputs, to be weighed by U.

    Args:
        left: (A, D, F) features.
        right: (B, D, F) features.
    """

    def __init__(self, left: Floats, right: Floats) -> None:
        self._left, self._right = left, right
        paths, size = left.shape[1:]
        self._pairs = np.triu_indices(paths)
        entries = len(left) * len(right)
        self._kernels: Floats | None = None
        self.setup_flops, self.flops = 0, 2 * entries * paths * size
        if entries * len(self._pairs[0]) <= MOST_ENTRIES:
            self._kernels = pair_kernels(left, right)
            self.setup_flops = 2 * entries * paths**2 * size
            self.flops = 2 * self._kernels.size

    def weighed(self, order_parameter: Floats) -> Floats:
        """(A, B) sum U C, of a symmetric (D, D) U; a new array."""
        if self._kernels is None:
            return weighed(self._left, self._right, order_parameter)
        flat = order_parameter[self._pairs] @ self._kernels
        return flat.reshape(len(self._left), len(self._right))


class GaussianProcess:
    """The network given U: evidence and predictor of the labels, as functions of U.

    Args:
        features: (P, D, F), of the training inputs.
        labels: (P,).
        temperature: T; infinite: the prior.
        at: (Q, D, F) features of the inputs to predict at.
    """

    def __init__(self, features: Floats, labels: Floats, temperature: float, at: Floats) -> None:
        self._labels, self._temperature = labels, temperature
        self._within, self._across = PathKernels(features, features), PathKernels(at, features)
        self._own = np.einsum("qaf,qbf->qab", at, at)
        inputs = len(features)
        self.setup_flops = self._within.setup_flops + self._across.setup_flops + 2 * at.size
        self.evidence_flops = self._within.flops + inputs**3 // 3 + 2 * inputs**2
        self.prediction_flops = self.evidence_flops + self._across.flops
        self.prediction_flops += len(at) * inputs * (inputs + 4)

    def log_evidence(self, order_parameter: Floats) -> float:
        """log p(Y | U) up to a constant: -(ln det (K + T) + Y' (K + T)^-1 Y) / 2.

        Minus infinity if K + T is not positive definite in float64.
        """
        if math.isinf(self._temperature):
            return 0.0
        try:
            return -self._regression(order_parameter).action / 2
        except LinAlgError:
            return -math.inf

    def predict(self, order_parameter: Floats) -> tuple[Floats, Floats]:
        """k*' (K + T)^-1 Y and k** - k*' (K + T)^-1 k*, each (Q,).

        Raises:
            LinAlgError: K + T is not positive definite in float64.
        """
        prior = np.tensordot(self._own, order_parameter)
        if math.isinf(self._temperature):
            return np.zeros_like(prior), prior
        across = self._across.weighed(order_parameter)
        return self._regression(order_parameter).predict(across, prior)

    def _regression(self, order_parameter: Floats) -> Regression:
        return Regression(self._within.weighed(order_parameter), self._labels, self._temperature)


class Reference:
    """The Student t distribution that ellipses are drawn from.

    Args:
        centre: (d,).
        scale: (d, d), its scale matrix.
    """

    def __init__(self, centre: Floats, scale: Floats) -> None:
        self._centre, self._factor = centre, cholesky(scale, lower=True)
        self._inverse = inv(self._factor)

    @classmethod
    def fitted(cls, points: Floats) -> Reference:
        """To (n, d) points; the fewer they are, the less their correlations count."""
        count, dimension = points.shape
        covariance = np.cov(points.T)
        trust = count / (count + 2 * dimension)
        covariance *= trust + (1 - trust) * np.eye(dimension)
        # A chain that stood still gives no ellipses: a hair keeps them open.
        return cls(points.mean(axis=0), covariance + 1e-10 * np.eye(dimension))

    def whitened(self, point: Floats) -> Floats:
        """Where the distribution is round, with its centre at 0."""
        return self._inverse @ (point - self._centre)

    def point(self, whitened: Floats) -> Floats:
        """The inverse of `whitened`."""
        return self._centre + self._factor @ whitened

    def log_density(self, whitened: Floats) -> float:
        """Up to a constant."""
        power = (DEGREES_OF_FREEDOM + len(self._centre)) / 2
        return -power * math.log1p(whitened @ whitened / DEGREES_OF_FREEDOM)

    def ellipse(self, whitened: Floats, random: np.random.Generator) -> Floats:
        """The other axis of an ellipse through a whitened point.

        A t variable is a normal one of random scale. Given the point, the scale is inverse gamma;
        given the scale, the axis is normal.
        """
        shape = (DEGREES_OF_FREEDOM + len(whitened)) / 2
        rate = (DEGREES_OF_FREEDOM + whitened @ whitened) / 2
        scale = math.sqrt(rate / random.gamma(shape))
        return scale * random.standard_normal(len(whitened))


class Draw(NamedTuple):
    """What is recorded of one state of a chain.

    Attributes:
        mean: (Q,), E[f] at the inputs asked for, given the state.
        variance: (Q,), of f given the state.
        order_parameter: U (D, D).
        readout: U_a = |a|^2 / N_a.
        flops: spent since the draw before, those of warm-up in the first; a multiply-add is 2.
    """

    mean: Floats
    variance: Floats
    order_parameter: Floats
    readout: float
    flops: int


class Chain:
    """A chain of coordinates, whose ellipses are fitted to its warm-up.

    Args:
        factors: the prior.
        process: the network given U.
        random: of the chain.
    """

    def __init__(
        self, factors: NestedFactors, process: GaussianProcess, random: np.random.Generator
    ) -> None:
        self._factors, self._process, self._random = factors, process, random
        deviation = factors.prior_deviation
        self._reference = Reference(factors.prior_mean, np.diag(deviation**2))
        self._evaluations = 0
        self.point = random.normal(factors.prior_mean, OVERDISPERSION * deviation)
        self._log_posterior = self.log_posterior(self.point)

    def draws(self, warmup: int, thin: int) -> Iterator[Draw]:
        """Draws without end: `warmup` steps, then one each `thin` steps."""
        shares = 2.0 ** np.arange(WINDOWS)
        for window in np.floor(warmup * shares / shares.sum()).astype(int):
            points = np.array([self._step() for _ in range(window)])
            recent = points[window // 4 :]  # it may still have been on its way
            if len(recent) > 2:
                self._reference = Reference.fitted(recent)
        process = self._process
        while True:
            for _ in range(thin):
                self._step()
            order_parameter, readout = self._factors.order_parameters(self.point)
            flops = self._evaluations * process.evidence_flops + process.prediction_flops
            self._evaluations = 0
            yield Draw(*process.predict(order_parameter), order_parameter, readout, flops)

    def _step(self) -> Floats:
        """One transition: along a random ellipse to a point above a random level."""
        random, reference = self._random, self._reference
        here = reference.whitened(self.point)
        axis = reference.ellipse(here, random)
        level = self._log_posterior - reference.log_density(here) - random.exponential()
        angle = random.uniform(0, 2 * math.pi)
        lowest, highest = angle - 2 * math.pi, angle
        while True:
            there = here * math.cos(angle) + axis * math.sin(angle)
            point = reference.point(there)
            log_posterior = self.log_posterior(point)
            # At level -inf, where a start has no evidence in float64, everything is above.
            if log_posterior - reference.log_density(there) >= level:
                self.point, self._log_posterior = point, log_posterior
                return point
            if angle < 0:
                lowest = angle
            else:
                highest = angle
            if highest - lowest < ROUNDING:
                return self.point  # nothing but rounding is left of the ellipse: it stays
            angle = random.uniform(lowest, highest)

    def log_posterior(self, point: Floats) -> float:
        """Of coordinates (d,), up to a constant."""
        self._evaluations += 1
        order_parameter, _ = self._factors.order_parameters(point)
        return self._factors.log_prior(point) + self._process.log_evidence(order_parameter)
