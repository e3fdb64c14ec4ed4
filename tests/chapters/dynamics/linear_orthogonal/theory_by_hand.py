"""Section 4 of the paper with mpmath, at 45 digits, sharing nothing with `chapters.dynamics`.

The losses are written down as section 3.1 has them, and the differential equations as Theorems 1
and 2 have them. They are stepped through time by extrapolation of the modified midpoint rule
(Gragg, Bulirsch, Stoer): no first integral, no closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import mpmath
import numpy as np
from mpmath import mp, mpf

DIGITS = 45
_SUBSTEPS = tuple(range(2, 26, 2))
_AGREE = mpf(10) ** -16
"""Of the last two extrapolations of a step: steps add up to far less than the tests allow."""

Pair = np.ndarray
"""Of two numbers of mpmath, mu and nu."""

Right = Callable[[mpf, Pair], Pair]


def attention(nu: mpf, m: int) -> mpf:
    grown = mpmath.exp(nu)
    return grown / (grown + m - 1)


def beta(mu: mpf, num_classes: int) -> mpf:
    return mpmath.exp(mu) / (mpmath.exp(mu) + num_classes - 1)


def loss(paradigm: str, alpha: mpf, mu: mpf, num_classes: int) -> mpf:
    """Section 3.1 where logits are those of the linear orthogonal setting."""
    b = beta(mu, num_classes)
    return {
        "soft": lambda: -mpmath.log(beta(alpha * mu, num_classes)),
        "hard": lambda: -alpha * mpmath.log(b) + (1 - alpha) * mpmath.log(num_classes),
        "lvml": lambda: -mpmath.log(alpha * b + (1 - alpha) / num_classes),
    }[paradigm]()


def speed(paradigm: str, alpha: mpf, mu: mpf, num_classes: int) -> tuple[mpf, mpf]:
    """d mu / dt and d nu / dt as printed in Theorems 1 and 2, equations (1) to (6)."""
    c = num_classes
    if paradigm == "soft":
        bottom = mpmath.exp(alpha * mu) + c - 1
        return alpha / bottom, mu * (c - 1) * (alpha - alpha**2) / (c * bottom)
    grown = mpmath.exp(mu)
    b = grown / (grown + c - 1)  # beta, whose exponential is at hand
    if paradigm == "hard":
        return alpha * b / grown, mpmath.log(c * b) / c * (alpha - alpha**2)
    z = alpha * b + (1 - alpha) / c
    return alpha * b**2 / (z * grown), alpha / c * (b / z - 1)


def flow(
    paradigm: str, m: int, num_classes: int, times: list[float], alpha: float | None = None
) -> Iterator[dict[str, mpf]]:
    """The columns of a trajectory at each of the times."""
    with mp.workdps(DIGITS):
        fixed = None if alpha is None else mpf(alpha)

        def right(s: mpf, y: Pair) -> Pair:  # d / d log(1 + t)
            a = attention(y[1], m) if fixed is None else fixed
            return np.array(speed(paradigm, a, y[0], num_classes)) * mpmath.exp(s)

        clock, state, step = mpf(0), np.array([mpf(0), mpf(0)]), mpf("0.1")
        for t in times:
            end = mpmath.log1p(mpf(t))
            while clock < end:
                tried = min(step, end - clock)
                new, error = _extrapolated(right, clock, state, tried)
                if error < _AGREE:
                    clock = end if tried == end - clock else clock + tried
                    state, step = new, max(step, tried * (2 if error < _AGREE / 10**4 else 1))
                else:
                    step = tried / 2
            mu, nu = state
            a = attention(nu, m)
            if fixed is not None:
                a, nu = fixed, mpmath.log((m - 1) * fixed / (1 - fixed)) if fixed < 1 else mp.inf
            now = loss(paradigm, a, mu, num_classes)
            raised = loss(paradigm, min(a + mpf("0.01"), mpf(1)), mu, num_classes)
            yield {
                "t": mpf(t), "mu": mu, "nu": nu, "alpha": a, "beta": beta(mu, num_classes),
                "loss": now, "incentive": now - raised,
            }  # fmt: skip


def _extrapolated(right: Right, clock: mpf, start: Pair, step: mpf) -> tuple[Pair, mpf]:
    """The state after a step, and by how much, relatively, the last two orders differ."""
    table: list[Pair] = []
    for i, n in enumerate(_SUBSTEPS):
        row = [_midpoint(right, clock, start, step / n, n)]
        for k in range(i):
            factor = (mpf(n) / _SUBSTEPS[i - k - 1]) ** 2 - 1
            row.append(row[k] + (row[k] - table[k]) / factor)
        table = row
    pairs = zip(table[-1], table[-2], strict=True)
    return table[-1], max(abs(a - b) / abs(a) if a else abs(b) for a, b in pairs)


def _midpoint(right: Right, clock: mpf, start: Pair, h: mpf, n: int) -> Pair:
    before, now = start, start + right(clock, start) * h
    for i in range(1, n):
        before, now = now, before + right(clock + i * h, now) * (2 * h)
    return (before + now + right(clock + n * h, now) * h) / 2
