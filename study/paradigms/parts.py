"""Many segments through a network in parts, so that the memory of a step does not grow with m."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

PART_BYTES = 2**24
"""Of the segments of one input: above, they go through in parts, each at most as large."""


def goes_in_parts(m: int, size: int) -> bool:
    """Whether the m segments of an input, of so many float32 numbers each, go through in parts."""
    return 4 * m * size > PART_BYTES


def in_parts(function: Callable[[Tensor], Tensor], segments: Tensor, m: int) -> Tensor:
    """Applies a function to segments, in parts if those of a single input are many.

    Of a part nothing is kept but its outputs: its gradient computes it once more, a further
    pass beside the three of a step. Outputs and gradients are equal but for rounding, if the
    function takes segments one by one.

    Args:
        function: (N, ...) -> (N, *out).
        segments: (N, ...), of all inputs.
        m: segments of an input.

    Returns:
        (N, *out).
    """
    size = segments[0].numel()
    if not goes_in_parts(m, size):
        return function(segments)
    parts = segments.split(max(1, PART_BYTES // (4 * size)))
    return torch.cat(
        [
            checkpoint(function, part, use_reentrant=False, preserve_rng_state=False)
            for part in parts
        ]
    )
