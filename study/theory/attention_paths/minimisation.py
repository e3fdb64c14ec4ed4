"""Minimises a smooth function: L-BFGS until it stalls, then Newton's method on the gradient.

L-BFGS compares values, which near the minimum differ by less than their rounding: it stalls at the
square root of the precision. Newton's method needs gradients alone. Its equations are solved by
conjugate gradients, each step of which takes one difference of gradients, so that neither holds
a Hessian: 35 thousand variables (256 paths) pass like 14 (4 paths).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from study.theory.attention_paths.checks import Floats

ENOUGH = 1e-12
"""A residual that needs no further step."""

_NEWTON_STEPS = 10
_GAIN = 0.1
"""A step that leaves more of the residual has met rounding, or is no use: it is the last."""

_CONJUGATE_STEPS = 200
_CONJUGATE_PRECISION = 1e-6
"""Of a Newton step, relative: each step then gains about six digits."""

_DIFFERENCE = 1e-7
"""Length of the differences of gradients, relative to the point: half of the digits."""


@dataclass(frozen=True, eq=False)
class Point:
    """The function at a point.

    Attributes:
        at: (n,), the point.
        value: of the function.
        gradient: (n,).
        residual: what must become 0, in units of the caller.
    """

    at: Floats
    value: float
    gradient: Floats
    residual: float


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the search ended.

    Attributes:
        point: of the least residual found.
        iterations: of L-BFGS and of Newton's method.
        evaluations: of the function with its gradient.
    """

    point: Point
    iterations: int
    evaluations: int


def minimise(evaluate: Callable[[Floats], Point], start: Floats, iterations: int) -> Minimum:
    """The local minimum below a start.

    Args:
        evaluate: the function; it should curve about equally in all directions.
        start: (n,).
        iterations: of L-BFGS at most.
    """
    counted = _Counted(evaluate)
    found = minimize(
        lambda point: (counted(point).value, counted.latest.gradient),
        start,
        jac=True,
        method="L-BFGS-B",
        # ftol: where rounding begins; maxfun, so that only iterations are limited
        options={"maxiter": iterations, "maxfun": 20 * iterations, "ftol": 1e-14, "gtol": 1e-10},
    )
    best, steps, gains = counted(found.x), 0, True
    while gains and best.residual > ENOUGH and steps < _NEWTON_STEPS:
        steps += 1
        point = counted(best.at + _newton_step(counted, best))
        gains = point.residual < _GAIN * best.residual
        if point.residual < best.residual:
            best = point
    return Minimum(best, int(found.nit) + steps, counted.calls)


class _Counted:
    """A function that counts its calls and keeps the latest."""

    def __init__(self, evaluate: Callable[[Floats], Point]) -> None:
        self._evaluate = evaluate
        self.calls = 0
        self.latest: Point

    def __call__(self, at: Floats) -> Point:
        self.calls += 1
        self.latest = self._evaluate(at)
        return self.latest


def _newton_step(evaluate: Callable[[Floats], Point], point: Point) -> Floats:
    """Minus the inverse Hessian times the gradient, by conjugate gradients.

    Stops early where the function curves downwards, with what was found until then.
    """
    step = np.zeros_like(point.at)
    rest = -point.gradient
    direction = rest
    size = first = float(rest @ rest)
    scale = _DIFFERENCE * max(1.0, float(np.linalg.norm(point.at)))
    for _ in range(_CONJUGATE_STEPS):
        if size <= _CONJUGATE_PRECISION**2 * first:
            break
        difference = scale / np.linalg.norm(direction)
        moved = evaluate(point.at + difference * direction)
        curved = (moved.gradient - point.gradient) / difference
        curvature = float(direction @ curved)
        if curvature <= 0:
            break
        step = step + size / curvature * direction
        rest = rest - size / curvature * curved
        size, before = float(rest @ rest), size
        direction = rest + size / before * direction
    return step
