"""Layers that torch.nn lacks, or that it always computes on padding."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from study.cell.checks import require
from study.paradigms.padding import padded, real

MOST_GROUPS, GROUP_SIZE = 8, 4
"""Of group normalisation; Wu and He (2018) take 32 groups of wider layers."""

_SLOWEST_WAVE = 10_000.0


class SelfAttention(nn.Module):
    """One layer of multi-head self-attention, without residual, normalisation or dropout.

    Padding is projected only where `study.paradigms.padding` does not leave it out;
    `torch.nn.MultiheadAttention` projects it anywhere, half of a batch of posts (docs/log.md).

    Args:
        size: of input and output vectors.
        heads: number of heads; each attends with size / heads features.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.queries, self.keys, self.values, self.out = (nn.Linear(size, size) for _ in range(4))

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Vectors (N, size) of words, `real` by `mask` (B, m) -> (N, size) float32.

        Padding gets an attention of exactly zero.
        """
        projections = self.queries, self.keys, self.values
        q, k, v = (self._by_head(layer(vectors), mask) for layer in projections)
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])  # (B, heads, m, m)
        attention = scores.masked_fill(~mask[:, None, None, :], -torch.inf).softmax(dim=3)
        return self.out(real((attention @ v).transpose(1, 2).flatten(2), mask))

    def _by_head(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """(N, size) -> (B, heads, m, size / heads), zero in padding."""
        return padded(vectors, mask).unflatten(2, (self.heads, -1)).transpose(1, 2)


def sinusoids(length: int, size: int, device: torch.device) -> Tensor:
    """Positions as sines and cosines of falling frequency: (length, size) float32.

    Column 2i is sin(p / 10000^(2i / size)) of position p, column 2i + 1 the cosine
    ("Attention Is All You Need", section 3.5).
    """
    position = torch.arange(length, device=device, dtype=torch.float32)[:, None]
    even = torch.arange(0, size, 2, device=device, dtype=torch.float32)
    angles = position * torch.exp(even * (-math.log(_SLOWEST_WAVE) / size))
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, :size]


def normalised(kind: str | None, channels: int, plane: bool) -> list[nn.Module]:
    """The normalisation behind a layer; none for none.

    Args:
        kind: of `study.cell.NORMALISATIONS`, or None.
        channels: of the layer's output.
        plane: whether each channel has positions, as behind a convolution.

    Raises:
        ValueError: a segment would be normalised over a single number, and so become constant.
    """
    if kind is None:
        return []
    if kind == "batch":
        return [nn.BatchNorm2d(channels) if plane else nn.BatchNorm1d(channels)]
    require(plane or channels > 1, "the width of a normalised layer", channels, "at least 2")
    return [nn.GroupNorm(1 if kind == "layer" else _groups(channels), channels)]


def _groups(channels: int) -> int:
    """Equal groups of `GROUP_SIZE` channels or more, as many as there can be."""
    counts = range(1, MOST_GROUPS + 1)
    fitting = (c for c in counts if channels % c == 0 and channels // c >= GROUP_SIZE)
    return max(fitting, default=1)


class Part(nn.Module):
    """Selects some features of a segment: (N, features) -> (N, stop - start)."""

    def __init__(self, start: int, stop: int) -> None:
        super().__init__()
        self.start, self.stop = start, stop

    def forward(self, segments: Tensor) -> Tensor:
        return segments[:, self.start : self.stop]
