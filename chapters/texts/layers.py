"""Layers of words, which `torch.nn` lacks or always computes on padding."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from study.paradigms.padding import padded, real


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
        # (B, heads, m, size / heads), zero in padding
        q, k, v = (
            padded(layer(vectors), mask).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for layer in (self.queries, self.keys, self.values)
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])  # (B, heads, m, m)
        attention = scores.masked_fill(~mask[:, None, None, :], -torch.inf).softmax(dim=3)
        return self.out(real((attention @ v).transpose(1, 2).flatten(2), mask))

    def own_flops(self, output: Tensor) -> int:
        """Of scores and weighted sums; its projections are counted as layers."""
        segments, size = output.shape
        return 2 * segments * segments * 2 * size


class Part(nn.Module):
    """Selects some features of a segment: (N, features) -> (N, stop - start)."""

    def __init__(self, start: int, stop: int) -> None:
        super().__init__()
        self.start, self.stop = start, stop

    def forward(self, segments: Tensor) -> Tensor:
        return segments[:, self.start : self.stop]
