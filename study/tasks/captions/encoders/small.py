"""Four convolutions, to be trained from their start."""

from __future__ import annotations

import itertools

from torch import nn

MEAN = STD = (0.5,) * 3  # pixels in [-1, 1]

_CHANNELS = (3, 32, 64, 128, 256)


def layers() -> nn.Sequential:
    """Convolutions that halve height and width, each followed by ReLU."""
    made: list[nn.Module] = []
    for channels, out in itertools.pairwise(_CHANNELS):
        made += [nn.Conv2d(channels, out, 3, stride=2, padding=1), nn.ReLU()]
    return nn.Sequential(*made)
