"""Reads labelled images in any of `study.tasks.mosaics.layouts`: checks their classes, decodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from study.errors import RequestError, unknown
from study.tasks.mosaics.base_images import BaseImages, prepared
from study.tasks.mosaics.classes import REST, class_name, class_names
from study.tasks.mosaics.layouts import ALIKE, Found, Labelled, Wanted, find_files
from study.tasks.sources.cached import fingerprint
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.directory import listed, nothing_in
from study.tasks.sources.places import Places
from study.tasks.sources.reading import reading
from study.terminal.working import aside

MAX_VALUE = 255
LEAST_CLASSES = 3
"""Two of the foreground, one of the background."""

_VERSION = 4
"""Part of the prepared form's name; raise it when something else is read."""
_MANY = 1_000  # files that take long enough to be announced


class Images(NamedTuple):
    """Some images, in order.

    Attributes:
        images: (N, P, P, 3) uint8.
        labels: (N,) int64 in [0, number of classes).
    """

    images: np.ndarray
    labels: np.ndarray


class Read(NamedTuple):
    """Labelled images of a directory.

    Attributes:
        data_dir: the directory.
        found: their files.
        class_names: the name of each label.
        train: images to train and validate on.
        test: images to test on; None: they are to be drawn.
    """

    data_dir: Path
    found: Found
    class_names: tuple[str, ...]
    train: Images
    test: Images | None


def load(
    task: str,
    data_set: DataSet,
    wanted: Wanted,
    places: Places,
    pixels: int,
    create: Callable[[Read], BaseImages],
) -> BaseImages:
    """The base images of a task, which are read once and kept in the cache.

    Args:
        task: its name.
        data_set: where the images may be.
        wanted: which they are.
        places: of the images and the cache.
        pixels: height and width, to which images of one's own are resized.
        create: makes base images of what is read.

    Raises:
        RequestError: the images are not at hand, or no directory of them; a split, a class or a
            label is missing, or a file is damaged.
    """

    def of(data_dir: Path) -> BaseImages:
        found = _find(data_dir, wanted)
        known = fingerprint(f"{_VERSION} {found.layout} {pixels}", found.files)
        folder = places.cache / "prepared" / f"{task}-{known}"
        base = prepared(folder, lambda: create(_read(data_dir, found, wanted, pixels)))
        if found.left_out:  # they come and go beside those that are prepared
            left_out = (
                "images outside of the folders that are read, which are left out: "
                f"{len(found.left_out):,}, the first {found.left_out[0]}"
            )
            base = replace(base, notes=(*base.notes, left_out))
        return base

    return read_data_set(data_set, places, of)


def _find(data_dir: Path, wanted: Wanted) -> Found:
    with listed(data_dir, wanted.title) as entries:
        found = find_files(data_dir, entries, wanted)
    if found is None:
        raise nothing_in(data_dir, entries, wanted.title, wanted.accepted)
    if not (wanted.own or found.test):
        raise RequestError(
            f"{data_dir} has no test split of {wanted.title}: {found.note}. Copy it again."
        )
    return found


def _read(data_dir: Path, found: Found, wanted: Wanted, pixels: int) -> Read:
    if (count := len(found.files)) > _MANY:
        aside(f"preparing {count:,} images of {data_dir}, once for {pixels} pixels")
    splits = [found.open(files) for files in (found.train, found.test) if files]
    names = wanted.class_names or _class_names(splits[0], data_dir)
    labels = [_labels(each.called, names, wanted.misspelt, data_dir) for each in splits]
    train, *test = (
        Images(each.pixels(pixels, wanted.own), of_each)
        for each, of_each in zip(splits, labels, strict=True)
    )
    return Read(data_dir, found, names, train, test[0] if test else None)


def _class_names(train: Labelled, data_dir: Path) -> tuple[str, ...]:
    """The names of the classes of one's own images: those that are listed, else all, sorted.

    Raises:
        RequestError: there are too few, or two cannot be told apart.
    """

    def key(called: Any) -> Any:
        return (class_name(called), called) if isinstance(called, str) else called

    names = tuple(train.classes or ())
    if not names:
        with reading(data_dir, ALIKE):  # numbers and text
            names = class_names(sorted(set(train.called), key=key), data_dir)
    if len(names) < LEAST_CLASSES:
        raise RequestError(
            f"{data_dir} holds {len(names)} class{'es' * (len(names) != 1)} ({', '.join(names)}). "
            f"Mosaics need {LEAST_CLASSES} or more: two of the foreground, one of the background. "
            "Add images of other classes."
        )
    for name in names:
        if name != name.encode(errors="ignore").decode():
            raise RequestError(
                f"{data_dir}: the name of the class {name!a} is not text. Rename it."
            )
    if REST in names:
        raise RequestError(
            f"{data_dir}: a class is called {REST!r}, which stands for all other classes in --set "
            "background=A+B. Rename the class."
        )
    return names


def _labels(
    called: Sequence[Any], names: Sequence[str], misspelt: Mapping[str, str], data_dir: Path
) -> np.ndarray:
    """(N,) int64, the place of each class in `names`, where it may be in lower case.

    Raises:
        RequestError: a class is not among them.
    """
    places = {name: label for label, name in enumerate(names)}
    labels = {}
    for each in set(called):
        name = class_name(each)
        lower = name.lower()
        labels[each] = places.get(name, places.get(misspelt.get(lower, lower), -1))
        if labels[each] < 0:
            raise RequestError(
                f"{unknown('class', name, names)} There are images of it in {data_dir}: rename "
                "it, or move them away."
            )
    return np.array([labels[each] for each in called], np.int64)
