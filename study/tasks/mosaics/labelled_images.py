"""Labelled images of any layout as one table, which is divided, checked and decoded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from study.cell.declared import NONE
from study.cell.seeds import share_of_each
from study.errors import RequestError, unknown
from study.tasks.mosaics.base_images import BaseImages, prepared
from study.tasks.mosaics.base_segments import first_alike, repeated_note
from study.tasks.mosaics.classes import REST, class_name, class_names
from study.tasks.mosaics.decoding import all_decoded
from study.tasks.mosaics.layouts import ALIKE, IMAGE_SUFFIXES, Found, ImageSet
from study.tasks.sources.cached import fingerprint
from study.tasks.sources.data_set import read_data_set
from study.tasks.sources.directory import SPLIT_NAMES, listed, nothing_in, split_named
from study.tasks.sources.places import Places
from study.tasks.sources.reading import reading

if TYPE_CHECKING:
    import pandas as pd

MAX_VALUE = 255
LEAST_CLASSES = 3
"""Two of the foreground, one of the background."""

TEST_SHARE = 0.2
"""Of the images of each class, where there is no test split."""

FEW = 20
"""Test images of a class: a share of one half of these has a standard error of 11 points."""

_DRAW = "images"  # part of the seeds
_VERSION = 5
"""Part of the prepared form's name; raise it when something else is read."""
_MISSPELT = {"cra": "crab"}  # in Hugging Face's copy of CIFAR-100
_MOST_NAMED = 40


def load(wanted: ImageSet, places: Places, pixels: int) -> BaseImages:
    """The base images of a data set, which are read once and kept in the cache.

    Those of one's own have one channel if all are grey, and notes on what they are; equal ones are
    one draw of the data. If no split tests, a share of each class is drawn to test.

    Args:
        wanted: the data set.
        places: of the images, in one of `study.tasks.mosaics.layouts`, and of the cache, for
            downloads and prepared images.
        pixels: height and width, to which images of one's own are resized.

    Raises:
        RequestError: the images are not at hand, or cannot be downloaded; there is no directory of
            them; a split, a class or a label is missing; or a file is damaged, or of another data
            set.
    """

    def of(data_dir: Path) -> BaseImages:
        with listed(data_dir, wanted.title, depth=2) as names:
            found = wanted.found(data_dir, names)
        if found is None:
            raise nothing_in(data_dir, names, wanted.title, wanted.accepted)
        files = {file.string: data_dir / file.string for file in found.files}
        known = fingerprint(f"{_VERSION} {pixels}", files.values())
        folder = places.cache / "prepared" / f"{wanted.folder}-{known}"
        base = prepared(folder, lambda: _read(found, pixels))
        images = (name for name in names if name.lower().endswith(IMAGE_SUFFIXES))
        notes = [*base.notes]
        if others := [name for name in images if name not in files]:
            notes.append(  # they come and go beside those that are prepared
                "images outside of the folders that are read, which are left out: "
                f"{len(others):,}, the first {data_dir / others[0]}"
            )
        text = (note.encode(errors="backslashreplace").decode() for note in notes)
        return dataclasses.replace(base, notes=tuple(text))  # a file's name may be no text

    return read_data_set(wanted, places, of)


def _read(found: Found, side: int) -> BaseImages:
    data_dir, wanted = found.data_dir, found.wanted
    rows, contents, classes = found.reader(found)
    rows["tests"] = _tests(rows["split"], data_dir, wanted)
    train = rows["label"][~rows["tests"]]
    names = wanted.class_names or _class_names({*train}, classes, data_dir)
    rows["label"] = _numbered(rows["label"], names, {} if wanted.own else _MISSPELT, data_dir)
    pixels = all_decoded(rows["image"].tolist(), contents, side, resized=wanted.own)
    if drawn := not rows["tests"].any():
        rows["tests"] = _drawn(rows["label"], pixels, data_dir)
        rows = rows.sort_values("tests", kind="stable")
        pixels = pixels[rows.index]
    if wanted.own and all((image == image[..., :1]).all() for image in pixels):
        pixels = pixels[..., :1]
    labels = rows["label"].to_numpy(np.int64)
    end = int(rows["tests"].argmax())  # of those that train: parts are views, not copies
    base = BaseImages.create(
        pixels[:end],
        labels[:end],
        pixels[end:],
        labels[end:],
        class_names=names,
        max_value=MAX_VALUE,
        source=str(data_dir),
        by_content=wanted.own,
    )
    return dataclasses.replace(base, notes=_notes(rows, base, drawn)) if wanted.own else base


def _tests(called: pd.Series, data_dir: Path, wanted: ImageSet) -> pd.Series:
    """Whether each image tests, by what its split is called.

    A test split is what is called so, else a validation split. A validation split beside a test
    split is joined to the train images, of which a task keeps a share for validation.

    Raises:
        RequestError: a split is missing.
    """
    splits = called.map({each: split_named(each) or "train" for each in called.unique()})
    if "train" not in splits.array and len(splits):
        raise RequestError(
            f"{data_dir} has {' and '.join(called.unique())}, but no train split. Splits are "
            f"{SPLIT_NAMES}."
        )
    tests = splits == ("test" if "test" in splits.array else "validation")
    if not (wanted.own or tests.any()):
        raise RequestError(f"{data_dir} has no test split of {wanted.title}. Copy it again.")
    return tests


def _drawn(labels: pd.Series, pixels: np.ndarray, data_dir: Path) -> np.ndarray:
    """Whether each image is drawn to test.

    Raises:
        RequestError: no image is.
    """
    contents = first_alike(pixels).tolist()
    drawn = share_of_each(labels.tolist(), TEST_SHARE, _DRAW, "split", contents=contents)
    if not drawn:
        raise RequestError(
            f"{data_dir} has too few images: none is left to test. A class needs at least 3 "
            "different ones to have one for testing."
        )
    return np.isin(np.arange(len(labels)), drawn)


def _class_names(labels: set[Any], classes: Sequence[str], data_dir: Path) -> tuple[str, ...]:
    """The names of the classes of one's own images: those that are listed, else all, sorted.

    Raises:
        RequestError: there are too few, or two cannot be told apart.
    """

    def place(label: Any) -> Any:
        return (class_name(label), label) if isinstance(label, str) else label

    names = tuple(classes)
    if not names:
        with reading(data_dir, ALIKE):  # numbers and text
            names = class_names(sorted(labels, key=place), data_dir)
    if len(names) < LEAST_CLASSES:
        raise RequestError(
            f"{data_dir} holds {len(names)} class{'es' * (len(names) != 1)} ({', '.join(names)}). "
            f"Mosaics need {LEAST_CLASSES} or more: two of the foreground, one of the background. "
            "Add images of other classes."
        )
    for name in names:
        if name in (REST, NONE):
            raise RequestError(
                f"{data_dir}: a class is called {name!r}, which stands for all other classes in "
                "--set background=A+B. Rename the class."
            )
        if name != name.encode(errors="ignore").decode():
            raise RequestError(
                f"{data_dir}: the name of the class {name!a} is not text. Rename it."
            )
    return names


def _numbered(
    labels: pd.Series, names: Sequence[str], misspelt: Mapping[str, str], data_dir: Path
) -> pd.Series:
    """The place of each label in `names`, where it may be in lower case, or misspelt.

    Raises:
        RequestError: a class is not among them.
    """
    places = {name: number for number, name in enumerate(names)}
    numbers = {}
    for label in labels.unique():
        name = class_name(label)
        lower = name.lower()
        numbers[label] = places.get(name, places.get(misspelt.get(lower, lower), -1))
        if numbers[label] < 0:
            raise RequestError(
                f"{unknown('class', name, names)} There are images of it in {data_dir}: rename "
                "it, or move them away."
            )
    return labels.map(numbers)


# What is said of one's own images


def _notes(rows: pd.DataFrame, base: BaseImages, drawn: bool) -> tuple[str, ...]:
    """Sentences about the images: their splits, their classes, and what is too small."""
    splits = []
    for images in (rows[~rows["tests"]], rows[rows["tests"]]):
        called = " and ".join(filter(None, images["split"].unique()))
        splits.append(f"{len(images):,}{f' of {called}' if called else ''}")
    how = f": {100 * TEST_SHARE:g} % of the images of each class, drawn by hash" if drawn else ""
    notes = [
        f"images: {splits[0]} to train and validate, {splits[1]} to test{how}",
        f"classes: {classes_text(base)}",
    ]
    few = [f"{name} ({tests})" for name, _, tests in _counted(base) if tests < FEW]
    if few:
        notes.append(
            f"few test images: {_some(few)}. Verdicts are over test images, too, so that "
            f"with less than {FEW} of a foreground class many stay undecided"
        )
    places = rows["image"][rows["tests"]].tolist()
    return (*notes, *repeated_note(base.train_images, base.test_images, "images", places))


def classes_text(base: BaseImages) -> str:
    """``heron (40 train, 10 test), stork (38 train, 9 test)``."""
    counted = _counted(base)
    return _some([f"{name} ({train:,} train, {tests:,} test)" for name, train, tests in counted])


def _counted(base: BaseImages) -> list[tuple[str, int, int]]:
    """Each class, with its images to train and validate, and those to test."""
    train, tests = (
        np.bincount(labels, minlength=len(base.class_names)).tolist()
        for labels in (base.train_labels, base.test_labels)
    )
    return [*zip(base.class_names, train, tests, strict=True)]


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_NAMED
    return ", ".join(texts[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
