"""Boxes: what captions are held against, and how much of each region lies in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from study.tasks.captions.images import regions_a_side

Box = tuple[float, float, float, float]
"""(x, y, w, h) in [0, 1], as fractions of the image; x and y are of the upper left corner."""


class Single(NamedTuple):
    """A category that has exactly one box in an image.

    Attributes:
        category: its name.
        words: numbers in the vocabulary of the words that stand for it, at least one.
        box: its place.
    """

    category: str
    words: tuple[int, ...]
    box: Box


class Boxed(NamedTuple):
    """A `Single` of a split.

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


def boxed(images: Sequence[Sequence[Single]], m: int, device: torch.device) -> list[Boxed]:
    """The objects of these images, in their order, for m regions.

    Raises:
        RequestError: m is no square.
    """
    singles = [(image, single) for image, each in enumerate(images) for single in each]
    boxes = torch.tensor([single.box for _, single in singles], dtype=torch.float64)
    inside = shares_inside(boxes.reshape(-1, 4), regions_a_side(m)).to(device)
    return [
        Boxed(image, *single, share)
        for (image, single), share in zip(singles, inside.unbind(), strict=True)
    ]


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
