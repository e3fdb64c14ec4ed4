"""What verdicts on the paper's claims keep, simulated; `benchmarks/calibration.py` prints it.

Seeds are drawn from made-up laws at the border between what a claim says and its opposite, where
either verdict is false, and decided by the functions that decide claims in reports. Lost seeds are
drawn at random, or they are those that would have shown the opposite of what the others do, which
is the worst that losing them can do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from analysis.section.claim import Finding, decided, evidence

SEEDS = (6, 12)
THRESHOLD = 0.1
"""Of the shares of a heat map, whose parts the rows are named after."""

_SPREAD = 0.03
_SELDOM = 0.1
_FAR = 0.04  # share of a part that clearly is as the claim says

Loss = Literal["none", "at random", "those above", "those below"]


@dataclass(frozen=True)
class Row:
    """One law.

    Attributes:
        name: of the row.
        at_threshold: parts whose mean is the threshold.
        true: further parts, which are as the claim says.
        lost: which seeds are lost, all parts of a seed together.
        share: of the seeds that is lost.
        skewed: law of the numbers, a name of `SKEWED`; empty: normal.
        two_laws: nine seeds in ten are at half of the threshold, the others far above it.
        evidence: whether the parts at the threshold are evidence for the claim; else almost any
            run has them.
    """

    name: str
    at_threshold: int = 1
    true: int = 0
    lost: Loss = "none"
    share: float = 0.0
    skewed: str = ""
    two_laws: bool = False
    evidence: bool = True

    def draw(self, random: np.random.Generator, n: int) -> tuple[NDArray[np.float64], int]:
        """(parts, seeds left) shares, and how many seeds of n are lost."""
        normal = random.standard_normal((self.at_threshold, n))
        if self.two_laws:
            above = random.random((self.at_threshold, n)) < _SELDOM
            values = THRESHOLD / 2 * (1 + above / _SELDOM) + _SPREAD / 3 * normal
        elif self.skewed:
            values = SKEWED[self.skewed](normal)
        else:
            values = THRESHOLD + _SPREAD * normal
        clear = _FAR + 0.2 * _SPREAD * random.standard_normal((self.true, n))
        if self.lost == "at random":
            lost = random.random(n) < self.share
        else:
            rank = ndtr(normal.sum(axis=0) / np.sqrt(max(self.at_threshold, 1)))
            lost = rank > 1 - self.share if self.lost == "those above" else rank < self.share
        return np.concatenate([values, clear])[:, ~lost], int(lost.sum())


LOGNORMAL = "lognormal .6"
SKEWED: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "beta(10, 90)": lambda normal: betaincinv(10, 90, ndtr(normal)),
    "beta(1.5, 13.5)": lambda normal: betaincinv(1.5, 13.5, ndtr(normal)),
    "beta(.6, 5.4)": lambda normal: betaincinv(0.6, 5.4, ndtr(normal)),
    LOGNORMAL: lambda normal: THRESHOLD * np.exp(0.6 * normal - 0.18),
}
"""Name -> numbers of the mean `THRESHOLD`, by normal ones: shares but for the last."""

_LOSSES: dict[Loss, str] = {
    "at random": "seeds at random",
    "those above": "seeds that would speak against it",
    "those below": "seeds that would speak for it",
}

ROWS = (
    Row("one part"),
    *(Row(f"one part, {law}", skewed=law) for law in [*SKEWED][:2]),
    Row("one part of eight, the others true", true=7),
    Row("two parts", 2),
    Row("eight parts", 8),
    Row("a part that is no evidence, another true", true=1, evidence=False),
    *(
        Row(f"one part, {which} lost", lost=lost, share=share)
        for share in (0.15, 0.3)
        for lost, which in _LOSSES.items()
    ),
    Row("eight parts, seeds that would speak for it lost", 8, lost="those below", share=0.15),
    Row("half of the runs lost, the others as it says", 0, 1, "at random", 0.5),
)


NOT_KEPT = (
    *(Row(f"one part, {law}", skewed=law) for law in [*SKEWED][2:]),
    # Where no seed shows the other law, nothing can tell.
    Row("one part, a seed in ten far above it", two_laws=True),
)


def simulate_claims(
    replicates: int, seed: int, laws: Sequence[Row] = ROWS
) -> list[dict[str, Any]]:
    """How often a claim is decided where its truth lies at the border.

    Args:
        replicates: studies a row.
        seed: of the generators, one a row.
        laws: the rows.

    Returns:
        One a law and number of seeds: `row`, its name; `n`, seeds; `failures`, share of the seeds
        that is lost; `false_holds` and `false_refuted`, shares of the studies.
    """
    return [
        _simulated(row, n, replicates, np.random.default_rng([seed, n, *row.name.encode()]))
        for row in laws
        for n in SEEDS
    ]


def _simulated(row: Row, n: int, replicates: int, random: np.random.Generator) -> dict[str, Any]:
    found = []
    for _ in range(replicates):
        parts, lost = row.draw(random, n)
        are_shares = row.skewed != LOGNORMAL
        tests = [evidence(part, THRESHOLD, "below", lost, are_shares) for part in parts]
        at_threshold = Finding(
            "", tests[: row.at_threshold], role="both" if row.evidence else "against"
        )
        true = Finding("", tests[row.at_threshold :])
        found.append(decided("", "", "", [at_threshold, true]).verdict)
    return {
        "row": row.name,
        "n": n,
        "failures": row.share,
        "false_holds": found.count("holds") / replicates,
        "false_refuted": found.count("does not hold") / replicates,
    }
