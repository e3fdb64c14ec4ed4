"""Images of your own: prepared once at the size that is asked for."""

from __future__ import annotations

import dataclasses
import functools
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from study.cell.seeds import share_of_each
from study.errors import RequestError
from study.tasks.mosaics.base_images import BaseImages, prepared
from study.tasks.mosaics.base_segments import first_alike, repeated_note
from study.tasks.mosaics.cifar import CIFAR10, CIFAR100
from study.tasks.mosaics.classes import refuse_unnameable
from study.tasks.mosaics.layouts import ACCEPTED, TITLE, Images, find_own, may_be_own, read
from study.tasks.mosaics.layouts.own import Own
from study.tasks.sources.cached import fingerprint
from study.tasks.sources.data_set import DataSet, read_data_set
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

_KNOWN = (CIFAR10, CIFAR100)
_MAX_VALUE = 255
_PREPARED_VERSION = 3
"""Part of the prepared form's name; raise it when the reader returns something else."""
_MANY = 1_000  # images that take long enough to be announced
_MOST_NAMED = 40


def load_own(places: Places, pixels: int) -> BaseImages:
    """The images of a directory, of one channel if all are grey, else of three.

    Args:
        places: of the images, in a layout of `study.tasks.mosaics.layouts`, and of the cache.
        pixels: height and width to which they are resized.

    Raises:
        RequestError: no directory is given, or see `study.tasks.mosaics.layouts.find_own`.
    """
    cache = places.cache
    return read_data_set(DATA_SET, places, lambda folder: _load_from(folder, pixels, cache))


def unchosen(base: BaseImages) -> RequestError:
    """The error for images whose foreground is not chosen; it lists the classes."""
    example = shlex.quote(f"foreground={'+'.join(base.class_names[:2])}")
    return RequestError(
        "images takes a foreground, the classes that are labels: two or more of "
        f"{_classes_text(base.class_names, base.train_labels, base.test_labels)}. Give it with "
        f"--set {example}; all other classes are then background."
    )


def _refuse_download(folder: Path, where: str) -> None:
    """See `study.tasks.sources.data_set.DataSet`.

    Raises:
        RequestError: always.
    """
    raise RequestError(
        f"images takes {TITLE}: pass them with --data-dir DIR. Accepted: {ACCEPTED}."
    )


DATA_SET = DataSet(
    title=TITLE,
    folder="images",
    accepted=ACCEPTED,
    belongs=functools.partial(may_be_own, known=_KNOWN),
    download=_refuse_download,
)


def _load_from(data_dir: Path, pixels: int, cache: Path) -> BaseImages:
    own = find_own(data_dir, pixels, _KNOWN)
    refuse_unnameable(own.names.class_names, data_dir)
    known = fingerprint(f"{_PREPARED_VERSION} {own.found.layout} {pixels}", own.found.files)
    folder = cache / "prepared" / f"{TASK}-{known}"
    return prepared(folder, lambda: _read(data_dir, own, pixels))


def _read(data_dir: Path, own: Own, pixels: int) -> BaseImages:
    if len(own.found.files) > _MANY:
        text = f"preparing {len(own.found.files):,} images of {data_dir}, once for {pixels} pixels"
        print(text, file=sys.stderr, flush=True)
    train, test = read(own.found, own.names)
    note = own.note
    if not own.found.test:
        train, test = _drawn(train)
        note += f": {100 * TEST_SHARE:g} % of the images of each class, drawn by hash, test"
    files = own.found.test if own.found.layout == "class folders" else ()
    repeated = repeated_note(train.images, test.images, "images", files)
    if all((each.images == each.images[..., :1]).all() for each in (train, test)):
        train, test = (Images(each.images[..., :1], each.labels) for each in (train, test))
    classes = own.names.class_names
    base = BaseImages.create(
        *train,
        *test,
        class_names=classes,
        max_value=_MAX_VALUE,
        source=str(data_dir),
        by_content=True,
    )
    notes = _notes(note, classes, base.train_labels, base.test_labels)
    return dataclasses.replace(base, notes=(*notes, *repeated))


def _drawn(images: Images) -> tuple[Images, Images]:
    """Images to train and validate on, and those to test on."""
    test = np.zeros(len(images.labels), bool)
    labels, contents = images.labels.tolist(), first_alike(images.images).tolist()
    test[share_of_each(labels, TEST_SHARE, TASK, "split", contents=contents)] = True
    return Images(*(each[~test] for each in images)), Images(*(each[test] for each in images))


def _notes(
    note: str, classes: Sequence[str], train: np.ndarray, test: np.ndarray
) -> tuple[str, ...]:
    """Sentences about the images: their splits, their classes, and what is too small."""
    counts = np.bincount(test, minlength=len(classes))
    few = [f"{name} ({n})" for name, n in zip(classes, counts, strict=True) if n < FEW]
    notes = [
        f"{len(train):,} images to train and validate, {len(test):,} to test; {note}",
        f"classes: {_classes_text(classes, train, test)}",
    ]
    if few:
        notes.append(
            f"few test images: {_some(few)}. Verdicts are over test images, too, so that "
            f"with less than {FEW} of a foreground class many stay undecided"
        )
    return tuple(notes)


def _classes_text(classes: Sequence[str], train: np.ndarray, test: np.ndarray) -> str:
    """``heron (40 train, 10 test), stork (38 train, 9 test)``."""
    counts = (np.bincount(each, minlength=len(classes)) for each in (train, test))
    counted = zip(classes, *counts, strict=True)
    return _some([f"{name} ({a:,} train, {b:,} test)" for name, a, b in counted])


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_NAMED
    return ", ".join(texts[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
