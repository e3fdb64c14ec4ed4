"""Positions, and normalisation by its name."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from study.cell.checks import require

MOST_GROUPS, GROUP_SIZE = 8, 4
"""Of group normalisation; Wu and He (2018) take 32 groups of wider layers."""

_SLOWEST_WAVE = 10_000.0


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
