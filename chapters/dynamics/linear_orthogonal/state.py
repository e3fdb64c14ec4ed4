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
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize.elementwise import find_root
from scipy.special import expit, log_expit

from study.errors import RequestError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State:
    """Points of the plane of Theorems 1 and 2, arrays of one shape.

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

    @cached_property
    def beta(self) -> Floats:
        """e^mu / (e^mu + C - 1)."""
        return expit(self.mu - math.log(self.others))

    @cached_property
    def miss(self) -> Floats:
        """1 - beta."""
        return expit(math.log(self.others) - self.mu)

    @cached_property
    def lift(self) -> Floats:
        """beta - 1/C."""
        return -np.expm1(-self.mu) * self.beta * (self.others / self.num_classes)

    @cached_property
    def gain(self) -> Floats:
        """log(C beta), nats."""
        near = np.log1p(self.num_classes * np.maximum(self.lift, -0.9 / self.num_classes))
        far = math.log(self.num_classes) + log_expit(self.mu - math.log(self.others))
        return np.where(self.num_classes * self.lift > -0.9, near, far)

    @cached_property
    def evidence(self) -> Floats:
        """Z = alpha beta + (1 - alpha) / C, the likelihood of the true class."""
        return self.alpha * self.beta + self.background / self.num_classes


def attention_of(nu: Floats, m: int) -> tuple[Floats, Floats]:
    """alpha and 1 - alpha."""
    shift = math.log(m - 1)
    return expit(nu - shift), expit(shift - nu)


def grown(total: Floats, rate: float) -> Floats:
    """The x >= 0 at which e^x - 1 + rate x has the given value >= 0; rate >= 1.

    Newton's method from above converges, since the function is convex and increasing. Both terms
    are positive, so each alone bounds x.
    """
    x = np.minimum(total / (1 + rate), np.log1p(total))
    for _ in range(100):
        correction = (np.expm1(x) + rate * x - total) / (np.exp(x) + rate)
        x = np.maximum(x - correction, 0.0)
        if (np.abs(correction) <= 1e-15 * x).all():
            break
    return x


def root(function: Callable[..., Floats], low: Floats, high: Floats, *args: Floats) -> Floats:
    """The zero of an increasing function within a bracket, element by element."""
    if not len(low):
        return low
    # Widened, so that rounding does not exclude a root that lies on the bound.
    found = find_root(function, (low, high * (1 + 1e-9)), args=args)
    if not found.success.all():  # the bounds hold by construction
        raise ArithmeticError(f"no root found: {found.status}")
    return found.x


def whole(name: str, value: Any, least: int) -> int:
    """An integer of at least `least`.

    Raises:
        RequestError: it is less.
        TypeError: it is no integer.
    """
    if (number := operator.index(value)) < least:
        raise RequestError(f"{name} must be an integer >= {least}, got {value!r}.")
    return number


def finite(name: str, values: ArrayLike, low: float = -np.inf, high: float = np.inf) -> Floats:
    """float64, finite, from `low` to `high`.

    Raises:
        RequestError: one is not.
        TypeError, ValueError: they are no numbers.
    """
    array = np.asarray(values, np.float64)
    wrong = array[~((array >= low) & (array <= high) & np.isfinite(array))]
    if wrong.size:
        rule = f"finite and in [{low:g}, {high:g}]"
        raise RequestError(f"{name} must be {rule}, got {wrong[0]:g}.")
    return array
