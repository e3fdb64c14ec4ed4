"""Images of your own: finds their layout, their classes and their splits.

A test split is what is called so, else a validation split. A validation split beside a test split
is joined to the train images, of which a task keeps a share for validation. Without either, the
test images are yet to be drawn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from study.errors import RequestError, as_seen
from study.tasks.mosaics.classes import class_names
from study.tasks.mosaics.layouts.common import FileNames, Found
from study.tasks.mosaics.layouts.folders import IMAGE_SUFFIXES, natural
from study.tasks.mosaics.layouts.official import find_official
from study.tasks.mosaics.layouts.parquet import (
    image_column_of,
    listed_classes,
    require_whole,
    whole,
)
from study.tasks.mosaics.layouts.ubyte import NAMES as UBYTE_NAMES
from study.tasks.mosaics.layouts.ubyte import classes_of, find_ubyte
from study.tasks.sources.directory import (
    SPLIT_NAMES,
    files_by_split,
    listed,
    nothing_in,
    require_one,
    split_named,
    visible,
)
from study.tasks.sources.reading import reading

TITLE = "images of your own"
ACCEPTED = (
    "class folders (DIR/<class>/*.png, or DIR/train/<class>/*.png and DIR/test/<class>/*.png; "
    f"{', '.join(IMAGE_SUFFIXES)}), Hugging Face Parquet (an image column and a label column), "
    "and CIFAR's or MNIST's files as torchvision keeps them"
)
LEAST_CLASSES = 3
"""Two of the foreground, one of the background."""

_ALIKE = "All files need the same columns, with labels that are written alike."
_MEND = "Replace it, or take it away."


class Own(NamedTuple):
    """Images of your own, not yet read.

    Attributes:
        found: their files.
        names: their classes, and how they are read.
        note: which files are of which split, a sentence.
    """

    found: Found
    names: FileNames
    note: str


def may_be_own(name: str, known: Sequence[FileNames]) -> bool:
    """Whether a file may belong to images of your own, by its name alone.

    Args:
        name: relative to the directory, with `/` between folders.
        known: data sets whose official files are accepted.
    """
    *folders, file = name.split("/")
    if file.lower().endswith(IMAGE_SUFFIXES):
        return len(folders) in (1, 2)
    if file in UBYTE_NAMES:
        return len(folders) <= 2
    official = any(file in (*each.train, *each.test, each.meta) for each in known)
    return len(folders) <= 1 and (official or file.lower().endswith(".parquet"))


def find_own(data_dir: Path, pixels: int, known: Sequence[FileNames]) -> Own:
    """Finds images of your own in a directory.

    Args:
        data_dir: the directory.
        pixels: height and width to which they are to be resized.
        known: data sets whose official files are accepted.

    Raises:
        RequestError: the directory is missing or in no accepted layout; a file is damaged, no
            image, or of no split; a class is empty; or there are too few classes.
    """
    with listed(data_dir, TITLE) as entries:
        folders = [data_dir, *(entry for entry in entries if entry.is_dir())]
        own = (
            _find_official(data_dir, known)
            or _find_ubyte(data_dir, folders)
            or _find_parquet(data_dir, entries)
            or _find_folders(data_dir, folders[1:])
        )
    if own is None:
        raise nothing_in(data_dir, entries, TITLE, ACCEPTED)
    _require_several(own.names.class_names, data_dir)
    names = dataclasses.replace(own.names, title=TITLE, pixels=pixels, resized=True, mend=_MEND)
    return own._replace(names=names)


def _require_several(classes: Sequence[str], data_dir: Path) -> None:
    if len(classes) < LEAST_CLASSES:
        held = ", ".join(classes) or "no images"
        raise RequestError(
            f"{data_dir} holds {len(classes)} class{'es' * (len(classes) != 1)} ({held}). Mosaics "
            f"take {LEAST_CLASSES} or more: two of the foreground, one of the background. Add "
            "images of other classes."
        )


def _find_official(data_dir: Path, known: Sequence[FileNames]) -> Own | None:
    for names in known:
        if (found := find_official(data_dir, names)) is not None:
            return Own(found, names, f"the train and test images of {names.title}")
    return None


def _find_ubyte(data_dir: Path, folders: Sequence[Path]) -> Own | None:
    """The four files of MNIST in one folder or its `raw/`; None if there are none."""
    places = [each / part for each in folders for part in ("", "raw")]
    every = [found for each in dict.fromkeys(places) if (found := find_ubyte(each)) is not None]
    if not every:
        return None
    require_one(data_dir, [found.train[0].parent for found in every])
    names = FileNames(TITLE, classes_of(every[0]))
    return Own(every[0], names, f"the train and test images of {every[0].train[0].parent}")


def _divided(
    parts: Mapping[str, tuple[Path, ...]], names: Mapping[str, str]
) -> tuple[tuple[Path, ...], tuple[Path, ...], str]:
    """The files to train and validate on, those to test on, and a sentence about them.

    Args:
        parts: split -> its files; one at least.
        names: split -> what it is called in the directory.

    Raises:
        RequestError: there is no train split.
    """
    train, validation, test = (parts.get(each, ()) for each in ("train", "validation", "test"))
    if not train:
        there = " and ".join(names[each] for each in parts)
        raise RequestError(f"there is {there}, but no train split. Splits are {SPLIT_NAMES}.")
    if test and validation:
        note = f"{names['train']} and {names['validation']} train and validate"
        return (*train, *validation), test, f"{note}, {names['test']} tests"
    if test or validation:
        tests = names["test" if test else "validation"]
        return train, test or validation, f"{names['train']} trains and validates, {tests} tests"
    return train, (), f"{names['train']} alone is there"


# Class folders


def _find_folders(data_dir: Path, folders: Sequence[Path]) -> Own | None:
    """Folders of classes, maybe in folders of splits; None if there is no image in them.

    Raises:
        RequestError: see `find_own`.
    """
    of_splits: dict[str, Path] = {}
    for each in folders:
        split = split_named(each.name)
        if split is not None and any(entry.is_dir() for entry in visible(each)):
            if split in of_splits:
                raise RequestError(
                    f"{each} and {of_splits[split].name}/ are both of the {split} split. Join "
                    "them, or take one away."
                )
            of_splits[split] = each
    if not of_splits:
        classes = _classes(folders)
        if not any(classes.values()):
            return None
        _require_images(classes)
        names = FileNames(TITLE, _names(data_dir, classes))
        return Own(Found("class folders", _paths(classes), ()), names, "there are no splits")
    every = {
        split: _classes([each for each in visible(folder) if each.is_dir()])
        for split, folder in of_splits.items()
    }
    for classes in every.values():
        _require_images(classes)
    train, test, note = _divided(
        {split: _paths(classes) for split, classes in every.items()},
        {split: f"{folder.name}/" for split, folder in of_splits.items()},
    )
    # Refuses a class that another split spells otherwise, too.
    _names(data_dir, (folder for classes in every.values() for folder in classes))
    names = FileNames(TITLE, _names(data_dir, (path.parent for path in train)))
    for path in test:
        if names.label(path.parent.name) is None:
            raise RequestError(
                f"{path.parent}: there is no such class to train on. Add its images to "
                f"{of_splits['train']}, or take the folder away."
            )
    return Own(Found("class folders", train, test), names, note)


def _names(data_dir: Path, folders: Iterable[Path]) -> tuple[str, ...]:
    """The names of the classes of folders, two of which may be of one class.

    Raises:
        RequestError: see `class_names`.
    """
    return tuple(sorted(class_names(sorted({each.name for each in folders}), data_dir)))


def _classes(folders: Sequence[Path]) -> dict[Path, tuple[Path, ...]]:
    """Folder of a class -> its images, in the order of their names.

    Raises:
        RequestError: a folder holds something else beside images.
    """
    found = {}
    for folder in folders:
        entries = visible(folder)
        others = [each for each in entries if each.suffix.lower() not in IMAGE_SUFFIXES]
        if others and len(others) < len(entries):
            raise RequestError(
                f"{others[0]} is no image, among images of the class {folder.name}. Move it away; "
                f"images are {', '.join(IMAGE_SUFFIXES)}."
            )
        images = () if others else entries
        found[folder] = tuple(sorted(images, key=lambda each: (natural(each.stem), each.name)))
    return found


def _require_images(classes: Mapping[Path, tuple[Path, ...]]) -> None:
    for folder, paths in classes.items():
        if not paths:
            raise RequestError(
                f"{folder} is the folder of a class and holds no image "
                f"({', '.join(IMAGE_SUFFIXES)}). Put images there, or take the folder away."
            )


def _paths(classes: Mapping[Path, tuple[Path, ...]]) -> tuple[Path, ...]:
    return tuple(path for folder in sorted(classes) for path in classes[folder])


# Parquet


def _find_parquet(data_dir: Path, entries: Sequence[Path]) -> Own | None:
    """The Parquet files of a directory or of one subfolder; None if there are none.

    Raises:
        RequestError: see `find_own`.
    """
    parts = dict(files_by_split(data_dir, entries, (".parquet",)))
    if not parts:
        return None
    called = {split: each[0].name.split("-")[0] for split, each in parts.items()}
    if "" in parts:
        parts, called = {"train": parts[""]}, {"train": called[""]}
    for each in parts.values():
        require_whole(each)
    train, test, note = _divided(parts, called)
    return Own(Found("parquet", train, test), _parquet_names((*train, *test)), note)


def _parquet_names(paths: Sequence[Path]) -> FileNames:
    """The classes of Parquet files, and how their labels are written."""
    import pyarrow.parquet as pq

    values: set[Any] = set()
    for path in paths:
        with reading(path):
            schema = pq.read_schema(path)
        with reading(path, _ALIKE):
            if path == paths[0]:
                column = _label_column(schema)
                classes = listed_classes(schema.metadata, column)
                if classes is not None:
                    return FileNames(TITLE, tuple(classes), label_column=column)
            labels = whole(pq.read_table(path, columns=[column])[column].unique()).to_pylist()
            values.update(each for each in labels if each is not None and as_seen(str(each)))
            called = sorted(values)
    names = class_names(called, paths[0].parent)
    return FileNames(TITLE, names, label_column=column, numbered=False)


def _label_column(schema: Any) -> str:
    """The column of the labels: `label` or `labels`, else the only one that names classes.

    Raises:
        ValueError: there is none, or no column of images.
    """
    names = schema.names
    if image_column_of(schema) is None:
        raise ValueError(
            f"it has no column of images (a struct {{bytes, path}}), only {', '.join(names)}"
        )
    labels = [name for name in ("label", "labels") if name in names]
    classes = [name for name in names if listed_classes(schema.metadata, name) is not None]
    found = labels[:1] or classes
    if len(found) != 1:
        raise ValueError(f"it has no column label, only {', '.join(names)}")
    return found[0]
