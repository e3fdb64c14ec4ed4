"""What taking a network apart costs: FLOPs, seconds, memory. A multiply-add is 2 FLOPs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chapters.paths.heads import apart
from chapters.paths.heads.heads_cell import (
    OF_THE_LIMIT,
    PUBLISHED,
    SOLVED,
    TEMPERATURES,
    HeadsCell,
)
from chapters.paths.one_shot.modality import IMAGES
from chapters.paths.posterior import posterior_cost
from chapters.paths.posterior.posterior_cell import LIMIT
from study.tasks.task import Facts

_STEPS = 8
"""Of a search that begins from the solution at the next warmer temperature, as a rule."""


def flops(cell: HeadsCell, facts: Facts) -> int:
    """About what a cell costs, before it is run."""
    tokens, sizes, network = _tokens(cell, facts), _sizes(cell, facts), cell.sizes
    maps = 2 * sum(cell.heads) * (2 * tokens * sizes.size * network.qk + tokens**2 * network.qk)
    total = sizes.asked * (maps + 2 * sizes.paths * tokens * (tokens + sizes.size))
    if cell.method in SOLVED:
        tried = len(temperatures(cell))
        # Channels repeat a grey value, so the features that theory keeps are those of about one.
        grey = sizes._replace(size=network.patch**2)
        total += tried * posterior_cost.flops(cell.method, grey, _STEPS)
    return total


def temperatures(cell: HeadsCell) -> Sequence[float]:
    """The temperatures that a cell tries."""
    if cell.temperature is not None:
        return (cell.temperature,)
    of_five = cell.choice == PUBLISHED and cell.method == LIMIT
    return OF_THE_LIMIT if of_five else TEMPERATURES


def lacks_memory(cell: HeadsCell, facts: Facts) -> str | None:
    """Why a cell cannot run for want of memory; None if it can."""
    tokens, sizes = _tokens(cell, facts), _sizes(cell, facts)
    # Attention of some episodes at a time, and the features of all.
    needed = 4 * max(apart.BYTES_AT_ONCE, 8 * sum(cell.heads) * tokens**2)
    needed += 8 * sizes.asked * sizes.size * sizes.paths
    if cell.method in SOLVED:
        needed += posterior_cost.memory_of(sizes)
    return posterior_cost.too_much(
        needed, "fewer examples, smaller splits, larger patches or fewer heads"
    )


def _tokens(cell: HeadsCell, facts: Facts) -> int:
    """T."""
    _, height, width = facts.input_shape
    return IMAGES * (height // cell.sizes.patch) * (width // cell.sizes.patch)


def _sizes(cell: HeadsCell, facts: Facts) -> posterior_cost.Sizes:
    return posterior_cost.Sizes(
        paths=math.prod(cell.heads),
        samples=cell.examples,
        asked=cell.examples + cell.network.validation_size + cell.network.test_size,
        size=facts.input_shape[0] * cell.sizes.patch**2,
    )
