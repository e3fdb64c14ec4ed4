"""What training costs, counted analytically.

A training step costs 3 forward passes (one forward, two backward), counted as
`study.models.flops` says. Evaluation is free, and so is what is computed once for all cells: the
features of a frozen encoder. The budget of a comparison is the cost of E epochs of *soft*, so a
costlier paradigm takes fewer steps. What `study.paradigms.parts` computes a second time, to save
memory, is not counted.

Posts and captions differ in length, and padding costs nothing. Each counts the mean cost of all
training inputs, which is exact at the end of every whole epoch.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from fractions import Fraction

from study import paradigms
from study.cell import Budget, Cell
from study.models.flops import Length, ModelFlops

TRAINING_PASSES = 3


def cell_flops(cell: Cell, flops: ModelFlops) -> ModelFlops:
    """The FLOPs of the parts that a cell calls: no focus if alpha is held."""
    return flops if cell.alpha is None else replace(flops, focus=0)


def training_flops(paradigm: str, flops: ModelFlops, m: int) -> int | Fraction:
    """Training FLOPs of one input: a mosaic of m segments, or the mean training post or caption.

    A word of a caption is a decision (`study.paradigms.paradigm.Paradigm.decide`).
    """
    known = paradigms.get(paradigm)
    parts = flops.focus, flops.classifier
    if not flops.lengths:
        return TRAINING_PASSES * known.cost(*parts, m)

    def of_input(length: Length) -> int:
        if not flops.decision:
            return known.cost(*parts, length.segments) + length.encoder
        words = length.decisions
        heads = known.sequence_cost(*parts, length.segments, words, flops.once)
        return heads + known.samples * words * flops.decision + length.encoder

    total = sum(length.count * of_input(length) for length in flops.lengths)
    return Fraction(TRAINING_PASSES * total, sum(length.count for length in flops.lengths))


def soft_epochs(epochs: float, flops: ModelFlops, m: int, n: int) -> Budget:
    """The FLOPs of so many epochs of soft on n mosaics; `epochs` > 0 need not be whole.

    Raises:
        ValueError: a budget below 1 FLOP, or of 2^63 or more.
    """
    amount = exact_decimal(epochs) * n * training_flops("soft", flops, m)
    # Rounded up for posts, so that whole epochs fit though the mean cost is no integer.
    return Budget(math.ceil(amount) if flops.lengths else int(amount))


def epochs(count: float, n: int) -> Budget:
    """The budget of so many epochs on n mosaics, in mosaics; `count` > 0 need not be whole.

    Raises:
        ValueError: it is less than one mosaic, or 2^63 or more.
    """
    return Budget(int(exact_decimal(count) * n), "mosaics")


@functools.lru_cache(maxsize=1024)
def exact_decimal(number: float) -> Fraction:
    """The decimal number that was typed: .1 is 1/10, not the nearest binary number."""
    return Fraction(str(number))
