"""Labelled posts of any data set, and the checks of what files say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Posts:
    """The usable posts of each split ("train", "validation", "test"), in the order of the files.

    Attributes:
        classes: names of the C classes.
        tokens: split -> posts -> words, at least one.
        labels: split -> (N,) int64 in [0, C).
        rationales: split -> posts -> (tokens,) bool, True at the words of the rationale, at least
            one; or None if no word is marked, or the rule leaves none.
        left_out: reason, such as "in no split" -> number of posts > 0, in a fixed order.
        notes: further sentences about them, for people.
    """

    classes: tuple[str, ...]
    tokens: Mapping[str, Sequence[Sequence[str]]]
    labels: Mapping[str, np.ndarray]
    rationales: Mapping[str, Sequence[np.ndarray | None]]
    left_out: Mapping[str, int]
    notes: tuple[str, ...] = ()


def checked_tokens(tokens: Any) -> list[str]:
    """The words of a post.

    Raises:
        TypeError: it is no list of texts.
        UnicodeEncodeError: a word holds half a character.
    """
    if not isinstance(tokens, list):
        raise TypeError("its tokens are no list of words")
    "".join(tokens).encode()
    return tokens


def checked_marks(marks: Any) -> list[int]:
    """Which words of a post are of a rationale.

    Raises:
        ValueError: it is no list, or holds something else than 0 and 1.
    """
    if not isinstance(marks, list) or any(mark not in (0, 1) for mark in marks):
        raise ValueError("a rationale must be a list of a 0 or a 1 for each token")
    return marks
