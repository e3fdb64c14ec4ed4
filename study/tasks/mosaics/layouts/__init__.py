"""Readers of the layouts in which labelled images may lie on disk.

    official       cifar-10-batches-py/ or cifar-100-python/, as torchvision keeps them
    parquet        train*.parquet and test*.parquet, as Hugging Face keeps them
    class folders  train/<class name>/*.png and test/<class name>/*.png
    ubyte          the four files of MNIST; of images of your own alone

`find` finds the layout of a directory of CIFAR and its files, `find_own` that of images of your
own, whose classes it tells; `read` reads them. A faulty file raises a `RequestError` of one line
that names the file. No file is trusted: pickles may name only what arrays need, and only four
image formats are decoded.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from study.tasks.mosaics.layouts.common import FileNames, Found, Images
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
from study.tasks.mosaics.layouts.own import ACCEPTED, TITLE, find_own, may_be_own
from study.tasks.mosaics.layouts.parquet import find_parquet, read_parquet
from study.tasks.mosaics.layouts.ubyte import read_ubyte
from study.tasks.sources.directory import listed, nothing_in
from study.tasks.sources.reading import reading

__all__ = [
    "ACCEPTED", "TITLE", "FileNames", "Found", "Images", "find", "find_own", "may_be_own",
    "may_belong", "read",
]  # fmt: skip


def may_belong(name: str, names: FileNames) -> bool:
    """Whether a file may belong to the data set, by its name alone.

    Args:
        name: relative to the directory, with `/` between folders.
    """
    *folders, file = name.split("/")
    if file in (*names.train, *names.test, names.meta):
        return folders in ([], [names.folder])
    if file.lower().endswith(".parquet"):
        return len(folders) <= 1 and file.lower().startswith(("train", "test"))
    split_and_class = len(folders) == 2 and folders[0] in ("train", "test")
    return split_and_class and file.lower().endswith(IMAGE_SUFFIXES)


def find(data_dir: Path, names: FileNames) -> Found:
    """Finds the files of a data set in `data_dir`, which may be the official folder or its parent.

    Raises:
        RequestError: the directory is missing, empty, in no accepted layout, or incomplete.
    """
    with listed(data_dir, names.title) as entries:
        found = (
            find_official(data_dir, names)
            or find_parquet(data_dir, entries, names)
            or find_class_folders(data_dir, names)
        )
    if found is None:
        raise nothing_in(data_dir, entries, names.title, names.accepted_layouts)
    return found


def read(found: Found, names: FileNames) -> tuple[Images, Images]:
    """Reads the train and the test images of the files that `find` or `find_own` found.

    Without test files, there are no test images.

    Raises:
        RequestError: a file is damaged or of another data set.
    """
    if found.meta is not None:
        with reading(found.meta, names.mend):
            check_official_classes(found.meta, names)
    readers: Mapping[str, Callable[[tuple[Path, ...], FileNames], Images]] = {
        "class folders": read_class_folders,
        "ubyte": read_ubyte,
        "official": functools.partial(_read_each, read_official),
        "parquet": functools.partial(_read_each, read_parquet),
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="PIL")  # of metadata
        train, test = (
            readers[found.layout](paths, names) if paths else Images.none(names)
            for paths in (found.train, found.test)
        )
    return train, test


def _read_each(
    read_file: Callable[[Path, FileNames], Images], paths: tuple[Path, ...], names: FileNames
) -> Images:
    parts = []
    for path in paths:
        with reading(path, names.mend):
            parts.append(read_file(path, names))
    return Images(
        np.concatenate([part.images for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )
