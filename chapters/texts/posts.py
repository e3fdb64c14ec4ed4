"""Labelled posts of any data set, and the checks of what files say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class Post(NamedTuple):
    """A usable post.

    Attributes:
        tokens: its words, at least one.
        label: in [0, C).
        rationale: (tokens,) whether each word is of the rationale; all False: it has none.
    """

    tokens: Sequence[str]
    label: int
    rationale: Sequence[bool]


@dataclass(frozen=True)
class Posts:
    """The usable posts of a data set.

    Attributes:
        classes: names of the C classes.
        splits: "train", "validation" and "test" -> posts, in the order of the files.
        left_out: reason, such as "in no split" -> number of posts > 0, in a fixed order.
        notes: further sentences about them, for people.
    """

    classes: tuple[str, ...]
    splits: Mapping[str, Sequence[Post]]
    left_out: Mapping[str, int]
    notes: tuple[str, ...] = ()


def checked_tokens(tokens: Any) -> list[str]:
    """The words of a post.

    Raises:
        TypeError: it is no list of texts.
    """
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise TypeError("its tokens are not a list of words")
    return tokens


def checked_marks(marks: Any) -> list[bool]:
    """Which words of a post are of a rationale.

    Raises:
        ValueError: it is no list, or holds something else than 0 and 1.
    """
    if not isinstance(marks, list) or not set(marks) <= {0, 1}:
        raise ValueError("its rationale is not a list with a 0 or a 1 for each token")
    return list(map(bool, marks))
