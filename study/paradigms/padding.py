"""Real segments among padding: picked out on a CPU, computed along with padding elsewhere.

Padding is half of a batch of posts, and a CPU does not compute it. To pick segments out, a GPU
would wait until it knows how many are real, and a CUDA graph takes equal shapes only. There,
networks see padding as zeros, and what they make of it is overwritten: its gradient is exactly 0.
"""

from __future__ import annotations

from torch import Tensor


def is_left_out(mask: Tensor) -> bool:
    """Whether padding is left out of computations; `mask` is on their device."""
    return mask.device.type == "cpu"


def real(values: Tensor, mask: Tensor) -> Tensor:
    """(B, m, ...) -> (N, ...), row by row: those where `mask` (B, m) is True.

    If padding is not left out, N = B m, and it is 0 whatever stood there, NaN included.
    """
    return values[mask] if is_left_out(mask) else filled(values, mask, 0.0).flatten(0, 1)


def padded(values: Tensor, mask: Tensor, fill: float = 0.0) -> Tensor:
    """Puts the (N, ...) that were made of `real` ones back: (B, m, ...), `fill` in padding."""
    if not is_left_out(mask):
        return filled(values.unflatten(0, mask.shape), mask, fill)
    out = values.new_full((*mask.shape, *values.shape[1:]), fill)
    out[mask] = values
    return out


def filled(values: Tensor, mask: Tensor, fill: float) -> Tensor:
    """(B, m, ...) with `fill` where `mask` (B, m) is False."""
    return values.masked_fill(~mask.reshape(*mask.shape, *[1] * (values.dim() - 2)), fill)


def few_widths(lengths: Tensor, step: int, most: int) -> list[int]:
    """The longest of each batch up to a multiple of `step`, at most `most`: few shapes in all.

    Args:
        lengths: (batches, B) int64, on the host.
    """
    longest = lengths.amax(dim=1)
    return ((longest + step - 1) // step * step).clamp(max=most).tolist()
