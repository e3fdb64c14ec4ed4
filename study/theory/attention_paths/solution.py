"""Solves the theory: the order parameter that minimises the action, at finite width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from study.theory.attention_paths import checks
from study.theory.attention_paths.checks import Floats
from study.theory.attention_paths.data_term import data_term, memory
from study.theory.attention_paths.minimisation import Point, minimise
from study.theory.attention_paths.order_parameter import Architecture, Nested, point_at
from study.theory.attention_paths.prediction import Predictor

TOLERANCE = 1e-9
"""Residual up to which a solution counts as converged. The search reaches 1e-12 with hundreds of
samples; with thousands, rounding in (K + T)^-1 leaves up to 1e-10."""


@dataclass(frozen=True, eq=False)
class Solution(Predictor):
    """A minimum of the action, with the predictor that it gives.

    Attributes:
        architecture: heads, widths and variances.
        hidden: U_1 (= order_parameter), ..., U_L, U_a: (D_l, D_l) each, D_l = H_l ... H_L; U_a is
            (1, 1).
        action: S of arXiv 2405.15926, less the prior's part at the limit of infinite width,
            sum_l N_l D_l (1 - ln sigma_l^2), so that it is finite for every width.
        residual: of the equations of stationarity, relative to their terms
            (`order_parameter.Nested.residual`).
        converged: whether the residual is at most `TOLERANCE`.
        iterations: of the search.
        flops: of the search, kernels included, to leading order; a multiply-add is 2.
    """

    architecture: Architecture
    hidden: tuple[Floats, ...]
    action: float
    residual: float
    converged: bool
    iterations: int
    flops: int


def solve(
    features: ArrayLike,
    labels: ArrayLike,
    heads: Sequence[int],
    width: float | Sequence[float],
    temperature: float,
    variance: float | Sequence[float] = 1.0,
    start: Solution | None = None,
    iterations: int = 2_000,
) -> Solution:
    """The order parameter at finite width, by minimising the action.

    The minimum is the one below the start. On the hidden Markov task, at widths 1 to 100, 360
    random starts found no other.

    Args:
        features: (P, D, F), of `path_features`.
        labels: Y (P,).
        heads: (H_1, ..., H_L), whose product is D.
        width: N >= 1, or (N_1, ..., N_L, N_a); `math.inf` is the Gaussian-process limit.
        temperature: T > 0.
        variance: sigma^2 > 0 of the weights, or (sigma_1^2, ..., sigma_L^2, sigma_a^2).
        start: a solution of the same heads, best at a neighbouring width; None: the limit.
        iterations: of the quasi-Newton search at most. Where they do not do, the solution says so
            in `converged` and `residual`.

    Raises:
        ValueError: an argument is not as above.
        MemoryError: memory does not do.
        LinAlgError: K + T is not positive definite in float64 where the search came.
    """
    phi = checks.finite("features", features, "PDF")
    samples, paths, size = phi.shape
    targets = checks.labels(labels, samples)
    counts = checks.heads(heads, paths)
    architecture = Architecture(
        counts,
        checks.widths(width, len(counts)),
        checks.variances(variance, len(counts)),
    )
    noise = checks.positive("temperature", temperature)
    checks.fits(memory(samples, paths, size), f"solving for {samples} samples of {paths} paths")
    term = data_term(phi, targets, noise)

    def action(at: Floats) -> Point:
        with np.errstate(over="ignore", invalid="ignore"):  # the search may leap, and comes back
            nested = Nested(architecture, at)
            value, slope = term(nested.factors[0])
            slopes = nested.gradients(slope)
            value += nested.prior()
            return Point(at, value, nested.gradient(slopes), nested.residual(slopes))

    begin = np.zeros(architecture.parameters)
    if start is not None:
        if start.architecture.heads != counts:
            raise ValueError(f"start has the heads {start.architecture.heads}, not {counts}.")
        begin = point_at(architecture, start.hidden)
    found = minimise(action, begin, iterations)
    hidden = Nested(architecture, found.point.at).hidden
    return Solution(
        features=phi,
        labels=targets,
        temperature=noise,
        order_parameter=hidden[0],
        architecture=architecture,
        hidden=hidden,
        action=found.point.value,
        residual=found.point.residual,
        converged=found.point.residual <= TOLERANCE,
        iterations=found.iterations,
        flops=term.setup_flops + found.evaluations * term.flops,
    )
