"""Words: how a caption becomes words, which have a number, and which stand for a category."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from study.storage.urls import expanded
from study.tasks.sources.reading import reading

PADDING, START, END, UNKNOWN = range(4)
"""Numbers of what is no word of a vocabulary: what fills a batch up, what stands before the first
word and behind the last one, and every word that is not in the vocabulary."""

FIRST_WORD = 4

_WORD = re.compile(
    r"[^\W_]+?(?=n't\b)"  # do of don't
    r"|n't\b|'(?:s|m|d|re|ve|ll)\b"
    r"|[^\W_]+(?:-[^\W_]+)*"  # t-shirt is one word
)


def tokenise(text: str) -> list[str]:
    """The words of a caption, in lower case and without punctuation.

    Nearly as the tokeniser of MSCOCO's own evaluation (Penn Treebank, then without punctuation)
    leaves them: here "8:25" is two words, there one, and "cannot" is one word, there two.
    """
    return _WORD.findall(text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))


def read_category_words(
    folder: Path, chosen: str | None, categories: Sequence[str]
) -> Mapping[str, tuple[str, ...]]:
    """Category -> the single words that stand for it.

    The file has one line a category, in the order of their ids: words and phrases separated by
    commas, the category's own name among them. Phrases of several words are passed over, as they
    are no single step of a caption.

    Args:
        folder: of the data set, where the file is looked for.
        chosen: another file; None: that in `folder`.
        categories: their names.

    Raises:
        RequestError: the file is missing, cannot be read, or has other categories.
    """
    path = expanded(chosen) if chosen else folder / "category_words.txt"
    remedy = (
        f"It must have one line for each of the {len(categories)} categories, in the order of "
        "their ids, with its words separated by commas. Fix it, or pass another one with "
        "--category-words FILE."
    )
    with reading(path, remedy):
        lines = path.read_text(encoding="utf-8-sig").strip().splitlines()
        if len(lines) != len(categories):
            raise ValueError(f"it has {len(lines)} lines")
        words = {}
        for category, line in zip(categories, lines, strict=True):
            phrases = [" ".join(tokenise(phrase)) for phrase in line.split(",")]
            if " ".join(tokenise(category)) not in phrases:
                raise ValueError(f"the line of {category!r} does not name it")
            words[category] = tuple(sorted({p for p in phrases if p and " " not in p}))
    return words
