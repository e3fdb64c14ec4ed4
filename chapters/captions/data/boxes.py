"""Boxes: what captions are held against, and how much of each region lies in them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from chapters.captions.data.mscoco import Box, Captioned

Scored = Mapping[int, tuple[str, tuple[int, ...]]]
"""Number of a category -> its name, and the numbers in the vocabulary of its words, at least one.
"""


class Boxed(NamedTuple):
    """A category that has exactly one box in an image of a split.

    Attributes:
        image: number of the image in the split.
        category: its name.
        words: numbers in the vocabulary of the words that stand for it, at least one.
        box: its place.
        inside: (m,) float32, the share of each region's area that lies in the box. Region j is row
            j // g, column j % g of g x g.
    """

    image: int
    category: str
    words: tuple[int, ...]
    box: Box
    inside: Tensor


def boxed(
    images: Sequence[Captioned], scored: Scored, m: int, device: torch.device
) -> list[Boxed]:
    """The objects of these images that are scored, in their order, for m regions, a square."""
    found = [
        (image, *scored[category], box)
        for image, captioned in enumerate(images)
        for category, box in captioned.objects
        if category in scored
    ]
    boxes = torch.tensor([box for *_, box in found], dtype=torch.float64)
    inside = shares_inside(boxes.reshape(-1, 4), math.isqrt(m)).to(device)
    return [Boxed(*each, share) for each, share in zip(found, inside.unbind(), strict=True)]


def shares_inside(boxes: Tensor, side: int) -> Tensor:
    """The share of each region's area that lies in a box.

    Args:
        boxes: (K, 4) float64, see `Box`.
        side: g; the regions are g x g.

    Returns:
        (K, g * g) float32 in [0, 1], row by row.
    """
    edges = torch.arange(side + 1, dtype=boxes.dtype) / side
    corner, size = boxes[:, :2, None], boxes[:, 2:, None]
    overlap = torch.minimum(corner + size, edges[1:]) - torch.maximum(corner, edges[:-1])
    columns, rows = (overlap * side).clamp(0, 1).unbind(1)
    return (rows[:, :, None] * columns[:, None, :]).flatten(1).float()
