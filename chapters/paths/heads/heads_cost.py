"""What taking a network apart costs: FLOPs, seconds, memory. A multiply-add is 2 FLOPs."""

from __future__ import annotations

import math

from chapters.paths.attention_paths import Size
from chapters.paths.heads import apart
from chapters.paths.heads.heads_cell import SOLVED, HeadsCell
from chapters.paths.one_shot.modality import IMAGES
from chapters.paths.posterior.posterior_cost import Cost, too_much
from study.tasks.task import Facts

_STEPS = 8
"""Of a search that begins from the solution at the next warmer temperature, as a rule."""


def flops(cell: HeadsCell, facts: Facts) -> int:
    """About what a cell costs, before it is run."""
    tokens, cost = _cost(cell, facts)
    length = cost.size.length
    maps = 2 * sum(cell.heads) * tokens * cell.sizes.qk * (2 * length + tokens)
    total = cost.asked * (maps + 2 * cost.size.paths * tokens * (tokens + length))
    if cell.method in SOLVED:
        # Channels repeat a grey value, so the features that theory keeps are those of about one.
        grey = Cost(cost.size._replace(length=cell.sizes.patch**2), cost.asked)
        total += len(cell.temperatures) * grey.flops(cell.method, _STEPS)
    return total


def lacks_memory(cell: HeadsCell, facts: Facts) -> str | None:
    """Why a cell cannot run for want of memory; None if it can."""
    tokens, cost = _cost(cell, facts)
    # Attention of some episodes at a time, and the features of all.
    needed = 4 * max(apart.BYTES_AT_ONCE, 8 * sum(cell.heads) * tokens**2) + cost.features
    if cell.method in SOLVED:
        needed += cost.memory
    return too_much(needed, "fewer examples, smaller splits, larger patches or fewer heads")


def _cost(cell: HeadsCell, facts: Facts) -> tuple[int, Cost]:
    """T, and what the cost of theory follows from."""
    (channels, height, width), patch = facts.input_shape, cell.sizes.patch
    size = Size(cell.examples, math.prod(cell.heads), channels * patch**2)
    asked = cell.examples + cell.network.validation_size + cell.network.test_size
    return IMAGES * (height // patch) * (width // patch), Cost(size, asked)
