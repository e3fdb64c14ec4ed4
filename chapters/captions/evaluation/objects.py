"""Which word of a caption was most expected to be an object, and where the model then looked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from chapters.captions.data.boxes import Boxed
from chapters.captions.data.vocabulary import PADDING
from chapters.captions.evaluation.beam_search import Written

MOSTLY = 0.5
"""Least share of a region in the box at which attention to it is on the object."""


class Expected(NamedTuple):
    """K objects at the word t of the caption at which each was most expected.

    All but t are float64.

    Attributes:
        a_z: (K,) the attention in the object's box at t, in [0, 1]; a region counts by the share
            of it that lies in the box.
        s_y: (K,) the probability of all words of the object's category at t, the largest over the
            words of the caption, in [0, 1].
        focus_true: (K,) 1 where the region of most attention at t lies mostly in the box.
        prediction_true: (K,) 1 where the likeliest word at t is one of the category's.
        t: (K,) int64, the first such word.
    """

    a_z: NDArray[np.float64]
    s_y: NDArray[np.float64]
    focus_true: NDArray[np.float64]
    prediction_true: NDArray[np.float64]
    t: NDArray[np.int64]


def expected(written: Written, objects: Sequence[Sequence[Boxed]]) -> Expected:
    """Finds each object in the caption of its image; all is 0 in a caption without words.

    Args:
        written: captions of n images, by a `write` that was given `sought(objects)`.
        objects: of each of the n images.

    Returns:
        The objects image by image, in their order.
    """
    device, m = written.words.device, written.attention.shape[2]
    places = [(image, slot) for image, each in enumerate(objects) for slot in range(len(each))]
    images, slots = torch.tensor(places, dtype=torch.int64, device=device).view(-1, 2).T
    none = written.attention.new_empty(0, m)
    inside = torch.cat([none, *(one.inside[None] for each in objects for one in each)]).double()
    s_y, t = written.scores[images, :, slots].max(dim=1)  # t is the first of equal ones
    attention = written.attention[images, t].double()
    focus = attention.argmax(dim=1, keepdim=True)
    likeliest = written.likeliest[images, t, None]
    words = sought(objects).to(device)[images, slots]
    is_word = written.words[images, t] != PADDING
    on_box = is_word & (inside.gather(1, focus).squeeze(1) >= MOSTLY)
    named = is_word & (words == likeliest).any(dim=1)
    numbers = (attention * inside).sum(dim=1), s_y, on_box.double(), named.double(), t
    return Expected(*(each.cpu().numpy() for each in numbers))


def sought(objects: Sequence[Sequence[Boxed]]) -> Tensor:
    """The words (n, O, W) int64 of up to O objects in each of n images, PADDING for none."""
    most = max(map(len, objects))
    longest = max((len(one.words) for each in objects for one in each), default=0)
    words = torch.full((len(objects), most, longest), PADDING)
    for image, each in enumerate(objects):
        for slot, one in enumerate(each):
            words[image, slot, : len(one.words)] = torch.tensor(one.words)
    return words
