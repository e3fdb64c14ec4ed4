"""Solves the theory: the order parameter that minimises the action, at finite width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

from study.theory.attention_paths import arguments
from study.theory.attention_paths.action import Architecture, Nested, point_at
from study.theory.attention_paths.arguments import Floats
from study.theory.attention_paths.data_term import data_term, memory
from study.theory.attention_paths.prediction import Predictor

TOLERANCE = 1e-9
"""Residual up to which a solution counts as converged. The search reaches 1e-12 with hundreds of
samples; with thousands, rounding in (K + T)^-1 leaves up to 1e-10."""

_ENOUGH = 1e-12
"""A residual that needs no further step."""

_NEWTON_STEPS = 10
_GAIN = 0.1
"""A step that leaves more of the residual has met rounding, or is no use: it is the last."""

_DIFFERENCE = 1e-7
"""Length of the differences of gradients, relative to the point: half of the digits."""

_CLIMB = 1e-7
"""A step that raises the action by more than this share of it leads towards a saddle."""


@dataclass(frozen=True, eq=False)
class Solution(Predictor):
    """A minimum of the action, with the predictor that it gives.

    Attributes:
        architecture: heads, widths and variances.
        hidden: U_1 (= order_parameter), ..., U_L, U_a: (D_l, D_l) each, D_l = H_l ... H_L; U_a is
            (1, 1).
        action: S of arXiv 2405.15926, less the prior's part at the limit of infinite width,
            sum_l N_l D_l (1 - ln sigma_l^2), so that it is finite for every width.
        residual: of the equations of stationarity, relative to their terms (`action`).
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


class Point(NamedTuple):
    """The action at a point (n,): its value, its gradient (n,) and the residual."""

    at: Floats
    value: float
    gradient: Floats
    residual: float


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
    phi = arguments.finite("features", features, "PDF")
    samples, paths, size = phi.shape
    targets = arguments.finite("labels", labels, "P", P=samples)
    architecture = Architecture.of(paths, heads, width, variance)
    noise = arguments.positive("temperature", temperature)
    arguments.fits(memory(samples, paths, size), f"solving for {samples} samples of {paths} paths")
    term, evaluations = data_term(phi, targets, noise), 0

    def evaluate(at: Floats) -> Point:
        nonlocal evaluations
        evaluations += 1
        with np.errstate(over="ignore", invalid="ignore"):  # the search may leap, and comes back
            nested = Nested(architecture, at)
            return Point(at, *nested.action(*term.at(nested.factors[0])))

    begin = np.zeros(architecture.parameters)
    if start is not None:
        if start.architecture.heads != architecture.heads:
            raise ValueError(f"start has the heads {start.architecture.heads}, not {heads}.")
        begin = point_at(architecture, start.hidden)
    found, steps = minimise(evaluate, begin, iterations)
    hidden = Nested(architecture, found.at).hidden
    return Solution(
        features=phi,
        labels=targets,
        temperature=noise,
        order_parameter=hidden[0],
        architecture=architecture,
        hidden=hidden,
        action=found.value,
        residual=found.residual,
        converged=found.residual <= TOLERANCE,
        iterations=steps,
        flops=term.setup_flops + evaluations * term.flops,
    )


def minimise(
    evaluate: Callable[[Floats], Point], start: Floats, iterations: int
) -> tuple[Point, int]:
    """The local minimum below a start (n,), and the steps there: L-BFGS, then Newton's method.

    L-BFGS compares values, which near the minimum differ by less than their rounding: it stalls at
    the square root of the precision, as SciPy's trust-ncg does, which left a residual of 4e-12 to
    2e-8 on nine problems. Newton's method needs gradients alone and reaches 1e-12. SciPy's
    newton_krylov reaches it too, with up to three times as many evaluations, as it takes no
    measure of its own for the end.

    Args:
        evaluate: the function; it should curve about equally in all directions.
        start: where to begin.
        iterations: of L-BFGS at most.
    """
    found = minimize(
        lambda at: evaluate(at)[1:3],
        start,
        jac=True,
        method="L-BFGS-B",
        # ftol: where rounding begins; maxfun, so that only iterations are limited
        options={"maxiter": iterations, "maxfun": 20 * iterations, "ftol": 1e-14, "gtol": 1e-10},
    )
    best, steps, gains = evaluate(found.x), int(found.nit), True
    while gains and best.residual > _ENOUGH and steps < found.nit + _NEWTON_STEPS:
        steps += 1
        point = evaluate(best.at + _newton_step(evaluate, best))
        gains = point.residual < _GAIN * best.residual
        climbs = point.value > best.value + _CLIMB * abs(best.value)
        if climbs or not point.residual < best.residual:
            break
        best = point
    return best, steps


def _newton_step(evaluate: Callable[[Floats], Point], point: Point) -> Floats:
    """Minus the inverse Hessian times the gradient, to about six digits.

    By conjugate gradients, each step of which takes one difference of gradients, so that nothing
    holds a Hessian: 35 thousand variables (256 paths) pass like 14 (4 paths).
    """
    scale = _DIFFERENCE * max(1.0, float(np.linalg.norm(point.at)))

    def curved(direction: Floats) -> Floats:
        difference = scale / np.linalg.norm(direction)
        moved = evaluate(point.at + difference * direction)
        return (moved.gradient - point.gradient) / difference

    hessian = LinearOperator((len(point.at),) * 2, matvec=curved, dtype=np.float64)
    return cg(hessian, -point.gradient, rtol=1e-6, maxiter=200)[0]
