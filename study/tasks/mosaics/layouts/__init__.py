"""Readers of the layouts in which a CIFAR data set may lie on disk.

    official       cifar-10-batches-py/ or cifar-100-python/, as torchvision keeps them
    parquet        train*.parquet and test*.parquet, as Hugging Face keeps them
    class folders  train/<class name>/*.png and test/<class name>/*.png

`find` finds the layout of a directory and its files; `read` reads them. A faulty file raises a
`RequestError` of one line that names the file. No file is trusted: pickles may name only what
arrays need, and only four image formats are decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from study.errors import RequestError
from study.tasks.mosaics.layouts.common import FileNames, Found, Images, reason_of, visible
from study.tasks.mosaics.layouts.folders import (
    IMAGE_SUFFIXES,
    find_class_folders,
    read_class_folders,
)
from study.tasks.mosaics.layouts.official import (
    check_official_classes,
    find_official,
    read_official,
)
from study.tasks.mosaics.layouts.parquet import find_parquet, read_parquet

__all__ = ["FileNames", "Found", "Images", "find", "may_belong", "read"]


def may_belong(name: str, names: FileNames) -> bool:
    """Whether a file may belong to the data set, by its name alone.

    Args:
        name: relative to the directory, with `/` between folders.
    """
    *folders, file = name.split("/")
    if file in (*names.train, *names.test, names.meta):
        return folders in ([], [names.folder])
    if file.endswith(".parquet"):
        return len(folders) <= 1 and file.startswith(("train", "test"))
    split_and_class = len(folders) == 2 and folders[0] in ("train", "test")
    return split_and_class and file.lower().endswith(IMAGE_SUFFIXES)


def find(data_dir: Path, names: FileNames) -> Found:
    """Finds the files of a data set in `data_dir`, which may be the official folder or its parent.

    Raises:
        RequestError: the directory is missing, empty, in no accepted layout, or incomplete.
    """
    try:
        if not data_dir.exists():
            raise RequestError(
                f"{data_dir} does not exist. Pass the directory that holds {names.title} "
                "with --data-dir."
            )
        if not data_dir.is_dir():
            raise RequestError(
                f"{data_dir} is not a directory. Unpack it if it is an archive, and pass the "
                "directory with --data-dir."
            )
        entries = visible(data_dir)
        found = (
            find_official(data_dir, names)
            or find_parquet(data_dir, entries, names)
            or find_class_folders(data_dir, names)
        )
    except OSError as error:
        raise RequestError(f"{data_dir} cannot be read ({reason_of(error)}).") from error
    if found is None:
        held = ", ".join(entry.name for entry in entries[:5]) + (", ..." if entries[5:] else "")
        raise RequestError(
            f"{data_dir} {f'holds only {held}' if held else 'is empty'}: no {names.title} found. "
            f"Accepted layouts: {names.accepted_layouts}."
        )
    return found


def read(found: Found, names: FileNames) -> tuple[Images, Images]:
    """Reads the train and the test images of the files that `find` found.

    Raises:
        RequestError: a file is damaged, of another data set, or holds a label or an image that
            the data set cannot have.
    """
    if found.meta is not None:
        check_official_classes(found.meta, names)
    if found.layout == "class folders":
        return read_class_folders(found.train, names), read_class_folders(found.test, names)
    read_file: Callable[[Path, FileNames], Images] = (
        read_official if found.layout == "official" else read_parquet
    )
    train, test = (
        [read_file(path, names) for path in paths] for paths in (found.train, found.test)
    )
    return _concatenate(train), _concatenate(test)


def _concatenate(parts: list[Images]) -> Images:
    return Images(
        np.concatenate([part.images for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )
