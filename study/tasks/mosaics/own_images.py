"""Images of your own: prepared once at the size that is asked for."""

from __future__ import annotations

import dataclasses
import functools
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from study.cell.seeds import share_of_each
from study.errors import RequestError
from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.base_segments import first_alike, repeated_note
from study.tasks.mosaics.labelled_images import MAX_VALUE, Images, Read, load
from study.tasks.mosaics.layouts import IMAGE_SUFFIXES, OFFICIAL, Wanted, may_belong
from study.tasks.sources.data_set import DataSet
from study.tasks.sources.places import Places

TASK = "images"
"""Its name, which is part of the seeds."""

PIXELS = 32
"""Height and width to which images are resized, unless another size is asked for."""
LEAST_PIXELS = 4

TEST_SHARE = 0.2
"""Of the images of each class, where there is no test split."""
VALIDATION_SHARE = 0.25
"""Of the train images of each class, as of the digits: images of one's own may be few."""

FEW = 20
"""Test images of a class: a share of one half of these has a standard error of 11 points."""

WANTED = Wanted(
    title="images of your own",
    accepted="class folders (DIR/<class>/*.png, or DIR/train/<class>/*.png and "
    f"DIR/test/<class>/*.png; {', '.join(IMAGE_SUFFIXES)}), Hugging Face Parquet (an image column "
    "and a label column), hf://datasets/ORG/NAME, and CIFAR's or MNIST's files as torchvision "
    "keeps them",
    official=tuple(OFFICIAL),
    label_columns=("label", "labels"),
)
_MOST_NAMED = 40


def load_own(places: Places, pixels: int) -> BaseImages:
    """The images of a directory, of one channel if all are grey, else of three.

    Args:
        places: of the images, in a layout of `study.tasks.mosaics.layouts`, and of the cache.
        pixels: height and width to which they are resized.

    Raises:
        RequestError: no directory is given, or see `study.tasks.mosaics.labelled_images.load`.
    """
    return load(TASK, DATA_SET, WANTED, places, pixels, _create)


def unchosen(base: BaseImages) -> RequestError:
    """The error for images whose foreground is not chosen; it lists the classes."""
    example = shlex.quote(f"foreground={'+'.join(base.class_names[:2])}")
    return RequestError(
        "images takes a foreground, the classes that are labels: two or more of "
        f"{_classes_text(base)}. Give it with --set {example}; all other classes are then "
        "background."
    )


def _refuse_download(folder: Path, where: str) -> None:
    """See `study.tasks.sources.data_set.DataSet`.

    Raises:
        RequestError: always.
    """
    raise RequestError(
        f"images takes {WANTED.title}: pass them with --data-dir DIR. Accepted: {WANTED.accepted}."
    )


DATA_SET = DataSet(
    WANTED.title, TASK, WANTED.accepted, may_belong, _refuse_download, any_of_the_hub=True
)


def _create(read: Read) -> BaseImages:
    train, note = read.train, read.found.note
    if (test := read.test) is None:
        train, test = _drawn(train)
        note += f": {100 * TEST_SHARE:g} % of the images of each class, drawn by hash, test"
    if not len(train.labels) or not len(test.labels):
        raise RequestError(
            f"{read.data_dir} has too few images: none is left to "
            f"{'test' if len(train.labels) else 'train'}. A class needs at least 3 different ones "
            "to have one for testing."
        )
    # Each image has its own file, or none.
    files = read.found.test if len(read.found.test) == len(test.images) else ()
    repeated = repeated_note(train.images, test.images, "images", files)
    if all((images == images[..., :1]).all() for images, _ in (train, test)):
        train, test = (Images(images[..., :1], labels) for images, labels in (train, test))
    base = BaseImages.create(
        *train,
        *test,
        class_names=read.class_names,
        max_value=MAX_VALUE,
        source=str(read.data_dir),
        by_content=True,
    )
    return dataclasses.replace(base, notes=(*_notes(note, base), *repeated))


def _drawn(images: Images) -> tuple[Images, Images]:
    """Images to train and validate on, and those to test on."""
    test = np.zeros(len(images.labels), bool)
    contents = first_alike(images.images).tolist()
    drawn = share_of_each(images.labels.tolist(), TEST_SHARE, TASK, "split", contents=contents)
    test[drawn] = True
    return Images(*(each[~test] for each in images)), Images(*(each[test] for each in images))


def _notes(note: str, base: BaseImages) -> list[str]:
    """Sentences about the images: their splits, their classes, and what is too small."""
    train, test = len(base.train_labels), len(base.test_labels)
    counted = zip(base.class_names, *_counts(base), strict=True)
    few = [f"{name} ({count})" for name, _, count in counted if count < FEW]
    notes = [
        f"{train:,} images to train and validate, {test:,} to test; {note}",
        f"classes: {_classes_text(base)}",
    ]
    if few:
        notes.append(
            f"few test images: {_some(few)}. Verdicts are over test images, too, so that "
            f"with less than {FEW} of a foreground class many stay undecided"
        )
    return notes


def _counts(base: BaseImages) -> list[list[int]]:
    """Train and test images of each class."""
    count = functools.partial(np.bincount, minlength=len(base.class_names))
    return [count(labels).tolist() for labels in (base.train_labels, base.test_labels)]


def _classes_text(base: BaseImages) -> str:
    """``heron (40 train, 10 test), stork (38 train, 9 test)``."""
    counted = zip(base.class_names, *_counts(base), strict=True)
    return _some([f"{name} ({train:,} train, {test:,} test)" for name, train, test in counted])


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_NAMED
    return ", ".join(texts[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
