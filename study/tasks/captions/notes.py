"""Sentences about captions and their images, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from study.tasks.captions.captions import NumberedCaptions
from study.tasks.captions.mscoco import Coco
from study.tasks.captions.vocabulary import END, FIRST_WORD, UNKNOWN

_NAMED = 3  # of each sort

_FEW_IMAGES = 10_000
"""Training images below which nothing reproduces the paper, which has 82,783 of them."""


def notes(
    coco: Coco,
    parts: Mapping[str, NumberedCaptions],
    scored: Mapping[int, object],
    vocabulary: Sequence[str],
    min_count: int,
) -> list[str]:
    """What people should know of the data.

    Args:
        coco: the data set.
        parts: split -> captions.
        scored: the categories of which a word is in the vocabulary.
        vocabulary: (V,) the word of each number.
        min_count: how often the words of the vocabulary occur at least.
    """
    year, train = coco.layout.year, parts["train"]
    both = ", which the paper uses; that of 2017 is there, too" if coco.layout.both else ""
    sizes = {
        split: f"{len(part.lengths):,} of {len(part.rows):,} images"
        for split, part in parts.items()
    }
    seldom = f" that occur at least {min_count} times" if min_count != 1 else ""
    objects = {split: f"{sum(map(len, part.singles)):,}" for split, part in parts.items()}
    sentences = [
        f"captions: {_each(sizes)}; layout of {year}{both}",
        f"validation and test are halves of val{year}, by image",
        f"vocabulary: {len(vocabulary) - FIRST_WORD:,} words of the training captions{seldom}, "
        f"which are {_each({split: _coverage(part) for split, part in parts.items()})} of the "
        "words",
        f"{train.lengths.mean() - 1:.1f} words a training caption in the mean, at most "
        f"{train.lengths.max() - 1}",
        f"objects, of categories with exactly one box in an image: {_each(objects)}",
    ]
    sentences += _unscored(coco, scored)
    sentences += [
        f"left out: {sort}: {len(files):,} ({_first(files)})"
        for sort, files in coco.left_out.items()
        if files
    ]
    if len(train.rows) < _FEW_IMAGES:
        sentences.append(
            f"{len(train.rows):,} training images: a try-out, no reproduction of the paper"
        )
    return sentences


def _unscored(coco: Coco, scored: Mapping[int, object]) -> list[str]:
    """What is said of objects that no word of the vocabulary stands for."""
    numbers = [
        number
        for part in coco.parts.values()
        for image in part
        for number, _ in image.objects
        if number not in scored
    ]
    if not numbers:
        return []
    names = [coco.categories[number] for number in sorted(set(numbers))]
    return [
        f"not scored: {len(numbers):,} objects of {len(names)} categories ({_first(names)}), of "
        "whose single words none is in the vocabulary"
    ]


def _first(names: Sequence[str]) -> str:
    return ", ".join([*names[:_NAMED], "..."] if len(names) > _NAMED else names)


def _coverage(part: NumberedCaptions) -> str:
    words = part.words[part.words != END]
    return f"{100 * (words != UNKNOWN).mean():.1f} %"


def _each(values: Mapping[str, str]) -> str:
    return ", ".join(f"{value} ({split})" for split, value in values.items())
