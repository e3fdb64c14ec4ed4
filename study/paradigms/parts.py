"""Many segments through a network in parts, so that the memory of a step does not grow with m."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

PART_BYTES = 2**24
"""Of the segments of one input: above, they go through in parts, each at most as large. With the
published CIFAR-10 networks, a part takes about .5 GB in a training step."""


def in_parts(function: Callable[[Tensor], Tensor], segments: Tensor, m: int) -> Tensor:
    """Applies a function to segments, in parts if those of a single input are many.

    Of a part nothing is kept but its outputs: its gradient computes it once more, which takes a
    third more time than a step whole. Outputs and gradients are equal but for rounding, if the
    function takes segments one by one.

    Args:
        function: (N, ...) -> (N, *out).
        segments: (N, ...), of all inputs.
        m: segments of an input.

    Returns:
        (N, *out).
    """
    bytes_each = 4 * segments[0].numel()
    if m * bytes_each <= PART_BYTES:
        return function(segments)
    parts = segments.split(max(1, PART_BYTES // bytes_each))
    return torch.cat(
        [
            checkpoint(function, part, use_reentrant=False, preserve_rng_state=False)
            for part in parts
        ]
    )
