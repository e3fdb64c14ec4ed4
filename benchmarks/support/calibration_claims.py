"""What verdicts on the paper's claims keep, simulated; `benchmarks/calibration.py` prints it.

Seeds are drawn from made-up laws at the border between what a claim says and its opposite, where
either verdict is false, and decided by the functions that decide claims in reports. Lost seeds are
those that would have shown the opposite of what the others do, which is the worst that losing them
can do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from analysis.rules.claim import Finding, decided, evidence

THRESHOLD = 0.1
"""Of the shares of a heat map; a claim says that its parts lie below it."""

LOGNORMAL = "lognormal .6"
STRAYS = "a seed in ten far above it"

Floats = NDArray[np.float64]

LAWS: dict[str, Callable[[Floats], Floats]] = {
    "normal": lambda normal: THRESHOLD + 0.03 * normal,
    "beta(1.5, 13.5)": lambda normal: betaincinv(1.5, 13.5, ndtr(normal)),
    "beta(.6, 5.4)": lambda normal: betaincinv(0.6, 5.4, ndtr(normal)),
    LOGNORMAL: lambda normal: THRESHOLD * np.exp(0.6 * normal - 0.18),
    STRAYS: lambda normal: 0.05 + 0.5 * (ndtr(normal) > 0.9) + 0.01 * normal,
}
"""Name -> numbers of the mean `THRESHOLD`, by normal ones: shares but for `LOGNORMAL`."""


@dataclass(frozen=True)
class Border:
    """Seeds at the border.

    Attributes:
        name: of the row.
        law: of the numbers, a name of `LAWS`.
        parts: of the claim, all at the threshold.
        kept: lowest and highest quantile of the seeds, by all parts, that are not lost.
    """

    name: str
    law: str = "normal"
    parts: int = 1
    kept: tuple[float, float] = (0.0, 1.0)


KEPT = (
    Border("one part, beta(1.5, 13.5)", "beta(1.5, 13.5)"),
    Border("eight parts", parts=8),
    *(
        Border(f"one part, {lost:.2f} of the seeds lost that would speak {side} it", kept=kept)
        for lost in (0.15, 0.3)
        for side, kept in {"against": (0.0, 1 - lost), "for": (lost, 1.0)}.items()
    ),
)

# Where no seed strays, nothing can tell.
NOT_KEPT = tuple(Border(f"one part, {law}", law) for law in ("beta(.6, 5.4)", LOGNORMAL, STRAYS))


def falsely_decided(border: Border, n: int, replicates: int) -> tuple[float, float]:
    """Shares of studies with n seeds in which the claim falsely holds, or is falsely refuted."""
    random = np.random.default_rng([n, *border.name.encode()])
    verdicts = []
    for _ in range(replicates):
        normal = random.standard_normal((border.parts, n))
        quantiles = ndtr(normal.sum(axis=0) / np.sqrt(border.parts))
        low, high = border.kept
        there = (low <= quantiles) & (quantiles <= high)
        tests = [
            evidence(part, THRESHOLD, "below", n - there.sum(), border.law != LOGNORMAL)
            for part in LAWS[border.law](normal)[:, there]
        ]
        verdicts.append(decided("", "", "", [Finding("", tests)]).verdict)
    return verdicts.count("holds") / replicates, verdicts.count("does not hold") / replicates
