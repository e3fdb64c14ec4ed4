"""Texts that a person asks a network about, in its words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from chapters.texts.own_texts import WORDS
from chapters.texts.posts import checked_tokens
from chapters.texts.texts import FIRST_WORD, UNKNOWN
from study.errors import RequestError
from study.tasks.sources.reading import reading
from study.tasks.task import Asked

_TEXT = (
    "Give a text, a list of texts, or a list of lists of words, such as [['a', 'fine', 'film']]."
)


def given_texts(carried: Mapping[str, Any], given: Any, tiles: Any) -> list[Asked]:
    """See `study.tasks.task.Modality.reads`.

    Args:
        carried: `vocabulary`, and m, at which texts are cut.
        given: a text or a list of texts, whose words are those of `WORDS`, in lower case if all
            of the vocabulary are; or a list of lists of words, which are taken as they are.
        tiles: None.

    Raises:
        RequestError: it is none of these, or a text is empty.
    """
    texts = [given] if isinstance(given, str) else [*given] if hasattr(given, "__iter__") else []
    if not texts:
        raise RequestError(f"no text is given. {_TEXT}")
    number_of = {word: n for n, word in enumerate(carried["vocabulary"], start=FIRST_WORD)}
    lower = all(word == word.lower() for word in number_of)
    asked = []
    for place, text in enumerate(texts):
        with reading(f"text {place}", _TEXT):
            if isinstance(text, str):
                text = WORDS.findall(text.lower() if lower else text)
            tokens = [*text] if hasattr(text, "__iter__") else [text]
            if not "".join(checked_tokens(tokens)).strip():
                raise ValueError("it holds no word")
        words = tokens[: carried["m"]]
        numbers = torch.tensor([number_of.get(word, UNKNOWN) for word in words])
        parts: Any = [word if word in number_of else f"{word} (unknown)" for word in words]
        asked.append(Asked(place, numbers, parts, partial(dict, words=words)))
    return asked
