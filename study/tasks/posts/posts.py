"""Labelled posts, whatever data set they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Posts:
    """The usable posts of each split ("train", "validation", "test"), in the order of the files.

    Attributes:
        classes: names of the C classes.
        tokens: split -> posts -> words, at least one.
        labels: split -> (N,) int64 in [0, C).
        rationales: split -> posts -> (tokens,) bool, True: a word of the rationale, at least one;
            or None: nobody marked a word, or the rule leaves none.
        left_out: reason, such as "in no split" -> number of posts > 0, always in the same order.
    """

    classes: tuple[str, ...]
    tokens: Mapping[str, Sequence[Sequence[str]]]
    labels: Mapping[str, np.ndarray]
    rationales: Mapping[str, Sequence[np.ndarray | None]]
    left_out: Mapping[str, int]
