"""MSCOCO as a task: images are split, words become numbers, categories the words for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from study.cell.seeds import stream_seed
from study.tasks.base import SPLITS, Facts
from study.tasks.captions.boxes import Scored
from study.tasks.captions.captions import CaptionTask, Numbered
from study.tasks.captions.encoded_images import ImageFiles, Noise
from study.tasks.captions.encoder_networks import weights_digest
from study.tasks.captions.mscoco import Captioned, Coco
from study.tasks.captions.vocabulary import (
    END,
    FIRST_WORD,
    PADDING,
    UNKNOWN,
    make_vocabulary,
)
from study.tasks.sources.cached import digest_of
from study.tasks.sources.places import Places

_CAPTIONS_EACH = 5  # of an image of MSCOCO
_NOISY_IMAGES = 64

_FEW_IMAGES = 10_000
"""Training images below which nothing reproduces the paper, which has 82,783 of them."""


def caption_task(
    name: str,
    coco: Coco,
    words_of: Mapping[str, Sequence[str]],
    encoder: str,
    min_count: int,
    places: Places,
) -> CaptionTask:
    """MSCOCO as a task.

    Training images are those of its training part. Validation and test images are halves of its
    validation part, since the boxes of its test part are not published.

    Args:
        name: of the task; part of the seeds.
        coco: the data set.
        words_of: category -> the single words that stand for it.
        encoder: name of the encoder.
        min_count: the vocabulary is the words that occur this often in training captions.
        places: of the encoder's weights and of the cache.

    Raises:
        RequestError: the vocabulary is empty, or the encoder's weights are not at hand.
    """
    every = [*coco.parts["train"], *coco.parts["val"]]
    train = (caption for image in coco.parts["train"] for caption in image.captions)
    vocabulary = make_vocabulary(name, train, min_count)
    number_of = {word: number for number, word in enumerate(vocabulary)}
    scored = {}
    for category, named in enumerate(coco.categories):
        if words := tuple(number_of[word] for word in words_of[named] if word in number_of):
            scored[category] = (named, words)
    parts = {split: _numbered(every, rows, number_of) for split, rows in _split(coco).items()}
    lengths, counts = np.unique(parts["train"].lengths, return_counts=True)
    digest = hashlib.sha256()
    for value in [words_of, encoder, weights_digest(encoder, places), coco.categories, *every]:
        digest.update(json.dumps(value, sort_keys=True).encode())
    facts = Facts(
        digest=digest.hexdigest()[:16],
        input_shape=(len(vocabulary),),
        sizes={split: len(part.lengths) for split, part in parts.items()},
        lengths=dict(zip(lengths.tolist(), counts.tolist(), strict=True)),
        notes=tuple(_notes(coco, every, parts, scored, len(vocabulary) - FIRST_WORD, min_count)),
    )
    content = digest_of([], [image.sha256 for image in every])
    files = [coco.folder / image.file for image in every]
    images = ImageFiles(files, content, encoder, places)
    return CaptionTask(name, parts, every, scored, vocabulary, images, facts)


def made_up_captions(name: str, facts: Facts, count: int, encoder: str) -> CaptionTask:
    """The task with noise for images and captions of real lengths, on which steps take as long.

    Args:
        name: of the task.
        facts: of its data.
        count: captions in each split.
        encoder: name of the encoder.
    """
    rng = np.random.default_rng(0)
    seen = np.repeat([*facts.lengths], [*facts.lengths.values()])
    lengths = rng.choice(seen, count)
    (num_words,) = facts.input_shape
    words = rng.integers(FIRST_WORD, num_words, lengths.sum())
    words[np.cumsum(lengths) - 1] = END
    image_of = np.arange(count) // _CAPTIONS_EACH
    rows = np.arange(image_of[-1] + 1) % _NOISY_IMAGES
    parts = dict.fromkeys(SPLITS, Numbered(_padded(words, lengths), lengths, image_of, rows))
    image = Captioned("noise", "", ["noise"], [(0, (0.25, 0.25, 0.5, 0.5))])
    scored = {0: ("noise", (FIRST_WORD,))}
    vocabulary = [""] * FIRST_WORD + [f"word{number}" for number in range(FIRST_WORD, num_words)]
    made_up = Facts("made-up", facts.input_shape, dict.fromkeys(SPLITS, count), facts.lengths)
    images = Noise(encoder, _NOISY_IMAGES)
    return CaptionTask(name, parts, [image] * _NOISY_IMAGES, scored, vocabulary, images, made_up)


def _split(coco: Coco) -> dict[str, np.ndarray]:
    """Split -> numbers of its images among all, of training and then of validation images."""
    first, count = len(coco.parts["train"]), len(coco.parts["val"])
    order = first + np.random.default_rng(stream_seed("captions", "split")).permutation(count)
    validation, test = np.array_split(order, 2)
    return {"train": np.arange(first), "validation": np.sort(validation), "test": np.sort(test)}


def _numbered(
    every: Sequence[Captioned], rows: np.ndarray, number_of: Mapping[str, int]
) -> Numbered:
    captions = [caption.split() for row in rows for caption in every[row].captions]
    words = [
        number
        for caption in captions
        for number in (*(number_of.get(word, UNKNOWN) for word in caption), END)
    ]
    lengths = np.array([len(caption) + 1 for caption in captions])
    image_of = np.repeat(np.arange(len(rows)), [len(every[row].captions) for row in rows])
    return Numbered(_padded(words, lengths), lengths, image_of, rows)


def _padded(words: Sequence[int] | np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(N, T) int32: the words of captions of these lengths, one after another, as rows."""
    rows = np.full((len(lengths), lengths.max()), PADDING, np.int32)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = words
    return rows


# Sentences about the data, for people


def _notes(
    coco: Coco,
    every: Sequence[Captioned],
    parts: Mapping[str, Numbered],
    scored: Scored,
    num_words: int,
    min_count: int,
) -> Iterator[str]:
    def each(told: Callable[[Numbered], str]) -> str:
        return ", ".join(f"{told(part)} ({split})" for split, part in parts.items())

    def categories(rows: Iterable[int]) -> list[int]:
        return [category for row in rows for category, _ in every[row].objects]

    train = parts["train"]
    sizes = each(lambda part: f"{len(part.lengths):,} of {len(part.rows):,} images")
    yield f"captions: {sizes}; layout of {coco.year}"
    yield f"validation and test are halves of val{coco.year}, by image"
    seldom = f" that occur at least {min_count} times" if min_count != 1 else ""
    known = each(lambda part: f"{100 * _share_known(part.words):.1f} %")
    words = f"{num_words:,} words of the training captions{seldom}"
    yield f"vocabulary: {words}, which are {known} of the words"
    mean, longest = train.lengths.mean() - 1, train.lengths.max() - 1
    yield f"{mean:.1f} words a training caption in the mean, at most {longest}"
    objects = each(lambda part: f"{sum(map(scored.__contains__, categories(part.rows))):,}")
    yield f"objects, of categories with exactly one box in an image: {objects}"
    if unscored := [each for each in categories(range(len(every))) if each not in scored]:
        names = [coco.categories[number] for number in sorted(set(unscored))]
        yield (
            f"not scored: {len(unscored):,} objects of {len(names)} categories ({_first(names)}), "
            "of whose single words none is in the vocabulary"
        )
    if coco.left_out:
        yield (
            f"left out: {len(coco.left_out):,} images that are missing, damaged or without "
            f"captions ({_first(coco.left_out)})"
        )
    if len(train.rows) < _FEW_IMAGES:
        yield f"{len(train.rows):,} training images: a try-out, no reproduction of the paper"


def _share_known(words: np.ndarray) -> float:
    return (words >= FIRST_WORD).sum() / (words >= UNKNOWN).sum()


def _first(names: Sequence[str]) -> str:
    return ", ".join([*names[:3], "..."] if len(names) > 3 else names)
