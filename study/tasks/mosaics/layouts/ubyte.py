"""The layout of MNIST: four files of bytes, such as train-images-idx3-ubyte.gz.

MNIST, FashionMNIST and KMNIST have it, in `raw/` as torchvision keeps them. Their classes are
numbers.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from study.errors import RequestError
from study.tasks.mosaics.layouts.common import (
    FileNames,
    Found,
    Images,
    fitted_all,
)
from study.tasks.sources.reading import reading

_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
NAMES = tuple(
    f"{name}{suffix}" for names in _FILES.values() for name in names for suffix in ("", ".gz")
)
_BYTES = 8  # what the header calls unsigned bytes


def find_ubyte(folder: Path) -> Found | None:
    """The files in a folder; None if there are none.

    Raises:
        RequestError: some of the files are missing.
    """
    every = [name for names in _FILES.values() for name in names]
    places = {name: (folder / name, folder / f"{name}.gz") for name in every}
    found = {name: path for name in every for path in places[name] if path.is_file()}
    if not found:
        return None
    if lacking := [name for name in every if name not in found]:
        raise RequestError(
            f"{folder} is incomplete: {', '.join(lacking)} not found. Copy the data set again."
        )
    train, test = (tuple(found[name] for name in names) for names in _FILES.values())
    return Found("ubyte", train, test)


def classes_of(found: Found) -> tuple[str, ...]:
    """The numbers of the classes in the files of labels.

    Raises:
        RequestError: a file is damaged.
    """
    labels = [_array(paths[1], axes=1) for paths in (found.train, found.test)]
    largest = max((int(each.max()) for each in labels if len(each)), default=-1)
    return tuple(map(str, range(largest + 1)))


def read_ubyte(paths: tuple[Path, ...], names: FileNames) -> Images:
    """The images of a file of images and a file of labels.

    Raises:
        RequestError: one is damaged, or holds other labels than the classes.
    """
    images, labels = (_array(path, axes) for path, axes in zip(paths, (3, 1), strict=True))
    with reading(paths[1], names.mend):
        labels = labels.astype(np.int64).reshape(len(images))
    return Images(fitted_all(images, names.pixels), labels)


def _array(path: Path, axes: int) -> np.ndarray:
    """The bytes of a file: two zeros, their type, the number of axes, their sizes, the values."""
    with (
        reading(path),
        gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file,
    ):
        data = file.read()
        start = 4 + 4 * axes
        shape = [int.from_bytes(data[place : place + 4], "big") for place in range(4, start, 4)]
        if data[:4] != bytes((0, 0, _BYTES, axes)):
            raise ValueError(f"it is no file of {axes} axes of bytes")
        return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
