"""MSCOCO as a task: images are split, words become numbers, categories the words for them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from chapters.captions.data.captions import CaptionTask, Numbered
from chapters.captions.data.encoded_images import ImageFiles
from chapters.captions.data.mscoco import Captioned, Coco, load_coco
from chapters.captions.data.vocabulary import (
    END,
    FIRST_WORD,
    PADDING,
    UNKNOWN,
    read_category_words,
)
from chapters.captions.encoders.encoder_networks import weights_digest
from study.cell import Options
from study.cell.seeds import stream_seed
from study.tasks.sequences import make_vocabulary
from study.tasks.sources.cached import digest_of
from study.tasks.sources.places import Places
from study.tasks.task import Facts

_FEW_IMAGES = 10_000
"""Training images below which nothing reproduces the paper, which has 82,783 of them."""


def caption_task(options: Options, places: Places) -> CaptionTask:
    """MSCOCO as a task.

    Training images are those of its training part. Validation and test images are halves of its
    validation part, since the boxes of its test part are not published.

    Args:
        options: `encoder`, its name; `min_count`: the vocabulary is the words that occur this
            often in training captions.
        places: of the data set, the words of categories, the encoder's weights and the cache.

    Raises:
        RequestError: from `load_coco` or `read_category_words`; the vocabulary is empty, or the
            encoder's weights are not at hand.
    """
    coco, encoder = load_coco(places), options["encoder"]
    words_of = read_category_words(coco.folder, places.file("category_words"), coco.categories)
    every = [*coco.parts["train"], *coco.parts["val"]]
    train = (caption.split() for image in coco.parts["train"] for caption in image.captions)
    vocabulary = [""] * FIRST_WORD
    vocabulary += make_vocabulary(CaptionTask.name, train, options["min_count"])
    number_of = {word: number for number, word in enumerate(vocabulary)}
    scored = {}
    for category, named in enumerate(coco.categories):
        if words := tuple(number_of[word] for word in words_of[named] if word in number_of):
            scored[category] = (named, words)
    parts = {split: _numbered(every, rows, number_of) for split, rows in _split(coco).items()}
    digest = hashlib.sha256()
    for value in [words_of, encoder, weights_digest(encoder, places), coco.categories, *every]:
        digest.update(json.dumps(value, sort_keys=True).encode())
    facts = Facts(
        digest=digest.hexdigest()[:16],
        input_shape=(len(vocabulary),),
        sizes={split: len(part.lengths) for split, part in parts.items()},
        lengths=Counter(parts["train"].lengths.tolist()),
    )
    content = digest_of([], [image.sha256 for image in every])
    images = ImageFiles([coco.folder / image.file for image in every], content, encoder, places)
    task = CaptionTask(parts, every, scored, vocabulary, images, facts)
    task.facts = replace(facts, notes=tuple(_notes(coco, task, options["min_count"])))
    return task


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
    lengths = np.array([len(caption) + 1 for caption in captions])
    words = np.full((len(captions), lengths.max()), PADDING, np.int32)
    words[np.arange(words.shape[1]) < lengths[:, None]] = [
        number
        for caption in captions
        for number in (*(number_of.get(word, UNKNOWN) for word in caption), END)
    ]
    image_of = np.repeat(np.arange(len(rows)), [len(every[row].captions) for row in rows])
    return Numbered(words, lengths, image_of, rows)


def _notes(coco: Coco, task: CaptionTask, min_count: int) -> Iterator[str]:
    """Sentences about the data, for people."""
    yield f"layout of {coco.year}; validation and test are halves of val{coco.year}, by image"
    lengths = task.parts["train"].lengths - 1
    yield (
        f"vocabulary: {task.num_classes - FIRST_WORD:,} words that occur at least {min_count} "
        f"times in the training captions, which have {lengths.mean():.1f} words in the mean, at "
        f"most {lengths.max()}"
    )
    unscored: list[int] = []
    for split, part in task.parts.items():
        categories = [each for row in part.rows for each, _ in task.captioned[row].objects]
        others = [each for each in categories if each not in task.scored]
        unscored += others
        known = (part.words >= FIRST_WORD).sum() / (part.words >= UNKNOWN).sum()
        yield (
            f"{split}: {len(part.lengths):,} captions of {len(part.rows):,} images, with "
            f"{100 * known:.1f} % of their words in the vocabulary, and "
            f"{len(categories) - len(others):,} objects, of categories with one box in an image"
        )
    if unscored:
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
    if (count := len(coco.parts["train"])) < _FEW_IMAGES:
        yield f"{count:,} training images: a try-out, no reproduction of the paper"


def _first(names: Sequence[str]) -> str:
    return ", ".join([*names[:3], "..."] if len(names) > 3 else names)
