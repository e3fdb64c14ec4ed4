"""MSCOCO as a task: images are split, words become numbers, categories the words for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from study.cell.seeds import stream_seed
from study.errors import RequestError
from study.tasks.base import SPLITS, UNKNOWN_DIGEST, Facts
from study.tasks.captions import encoders
from study.tasks.captions.boxes import Single
from study.tasks.captions.captions import CaptionTask, NumberedCaptions
from study.tasks.captions.images import ImageFiles, Noise
from study.tasks.captions.mscoco import Captioned, Coco
from study.tasks.captions.notes import notes
from study.tasks.captions.vocabulary import END, FIRST_WORD, UNKNOWN, make_vocabulary, numbers
from study.tasks.sources.places import Places

_CAPTIONS_EACH = 5  # of an image of MSCOCO
_NOISY_IMAGES = 64


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
        RequestError: the vocabulary is empty, there are too few images to halve, or the encoder's
            weights are not at hand.
    """
    split_of = _split(coco)
    every = [image for part in coco.parts.values() for image in part]
    train = (caption for image in coco.parts["train"] for caption in image.captions)
    vocabulary = make_vocabulary(name, train, min_count)
    number_of = numbers(vocabulary)
    scored = _scored(coco, words_of, number_of)
    parts = {split: _numbered(every, rows, number_of, scored) for split, rows in split_of.items()}
    lengths, counts = np.unique(parts["train"].lengths, return_counts=True)
    weights = encoders.weights_digest(encoder, places)
    facts = Facts(
        digest=_digest([words_of, encoder, weights, coco.categories, *every]),
        input_shape=(len(vocabulary),),
        sizes={split: len(part.lengths) for split, part in parts.items()},
        lengths=dict(zip(lengths.tolist(), counts.tolist(), strict=True)),
        notes=tuple(notes(coco, parts, scored, vocabulary, min_count)),
    )
    files = [image.file for image in every]
    content = _digest(image.sha256 for image in every)
    images = ImageFiles(coco.layout.folder, files, content, encoder, places)
    return CaptionTask(name, parts, vocabulary, images, facts)


def made_up_captions(name: str, facts: Facts, count: int, encoder: str) -> CaptionTask:
    """The task with noise for images and captions of real lengths, on which steps take as long.

    Args:
        name: of the task.
        facts: of its data.
        count: captions in each split.
        encoder: name of the encoder.
    """
    rng = np.random.default_rng(0)
    lengths, counts = (np.array(list(each)) for each in (facts.lengths, facts.lengths.values()))
    image_of = np.arange(count) // _CAPTIONS_EACH
    num_images = int(image_of[-1]) + 1
    (num_words,) = facts.input_shape
    words = [f"word{number}" for number in range(num_words - FIRST_WORD)]
    single = Single("noise", (FIRST_WORD,), (0.25, 0.25, 0.5, 0.5))
    parts = {}
    for split in SPLITS:
        drawn = rng.choice(lengths, size=count, p=counts / counts.sum())
        numbers = rng.integers(FIRST_WORD, num_words, size=int(drawn.sum()))
        numbers[np.cumsum(drawn) - 1] = END
        parts[split] = NumberedCaptions(
            words=numbers,
            lengths=drawn,
            image_of=image_of,
            rows=np.arange(num_images) % _NOISY_IMAGES,
            references=[(words[0],)] * num_images,
            singles=[(single,)] * num_images,
            file_names=["noise"] * num_images,
        )
    made_up = Facts("made-up", facts.input_shape, dict.fromkeys(SPLITS, count), facts.lengths)
    vocabulary = ("",) * FIRST_WORD + tuple(words)
    return CaptionTask(name, parts, vocabulary, Noise(encoder, _NOISY_IMAGES), made_up)


def nominal_facts(num_words: int, sizes: Mapping[str, int], mean_length: int) -> Facts:
    """The facts assumed of data that is not at hand.

    Args:
        num_words: of the vocabulary.
        sizes: split -> captions.
        mean_length: words of a caption, with the end.
    """
    shape = (num_words + FIRST_WORD,)
    return Facts(UNKNOWN_DIGEST, shape, sizes, {mean_length: sizes["train"]})


def _split(coco: Coco) -> dict[str, np.ndarray]:
    """Split -> numbers of its images among all, of training and then of validation images.

    Raises:
        RequestError: there is a single validation image.
    """
    first, count = (len(coco.parts[part]) for part in ("train", "val"))
    if count < 2:
        raise RequestError(
            f"{coco.layout.images('val')} has a single usable image, but validation and test are "
            "halves of its images. Pass a directory with more of them."
        )
    order = first + np.random.default_rng(stream_seed("captions", "split")).permutation(count)
    validation, test = np.array_split(order, 2)
    return {"train": np.arange(first), "validation": np.sort(validation), "test": np.sort(test)}


def _scored(
    coco: Coco, words_of: Mapping[str, Sequence[str]], number_of: Mapping[str, int]
) -> dict[int, tuple[str, tuple[int, ...]]]:
    """Category -> its name and the numbers of its words, if any is in the vocabulary."""
    scored = {}
    for category, name in enumerate(coco.categories):
        words = tuple(number_of[word] for word in words_of[name] if word in number_of)
        if words:
            scored[category] = (name, words)
    return scored


def _numbered(
    every: Sequence[Captioned],
    rows: np.ndarray,
    number_of: Mapping[str, int],
    scored: Mapping[int, tuple[str, tuple[int, ...]]],
) -> NumberedCaptions:
    images = [every[row] for row in rows]
    captions = [caption.split() for image in images for caption in image.captions]
    words = [n for caption in captions for n in (*_numbers(caption, number_of), END)]
    counts = [len(image.captions) for image in images]
    return NumberedCaptions(
        words=np.array(words, np.int64),
        lengths=np.array([len(caption) + 1 for caption in captions], np.int64),
        image_of=np.repeat(np.arange(len(images)), counts),
        rows=rows,
        references=[image.captions for image in images],
        singles=[
            tuple(
                Single(*scored[number], box) for number, box in image.objects if number in scored
            )
            for image in images
        ],
        file_names=[image.file for image in images],
    )


def _numbers(caption: Sequence[str], number_of: Mapping[str, int]) -> Iterator[int]:
    return (number_of.get(word, UNKNOWN) for word in caption)


def _digest(values: Iterable[object]) -> str:
    """16 hexadecimal digits that stand for values of plain JSON types."""
    digest = hashlib.sha256()
    for value in values:
        digest.update(json.dumps(value, sort_keys=True).encode())
    return digest.hexdigest()[:16]
