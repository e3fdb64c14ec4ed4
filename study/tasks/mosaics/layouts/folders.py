"""Class folders: train/<class name>/*.png and test/<class name>/*.png."""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from study.errors import RequestError, unknown
from study.limits import usable_cores
from study.tasks.mosaics.layouts.common import (
    FileNames,
    Found,
    Images,
    decode,
)
from study.tasks.sources.directory import visible
from study.tasks.sources.reading import reading

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")


def find_class_folders(data_dir: Path, names: FileNames) -> Found | None:
    """The images in train/ and test/; None if there is neither folder.

    Raises:
        RequestError: a split is missing or empty, or a folder is no class.
    """
    if not any((data_dir / split).is_dir() for split in ("train", "test")):
        return None
    return Found(
        "class folders",
        train=_class_images(data_dir, "train", names),
        test=_class_images(data_dir, "test", names),
    )


def _class_images(data_dir: Path, split: str, names: FileNames) -> tuple[Path, ...]:
    """The images of a split, in order.

    They are in the order of their file names if these are unique in the split, as in an export
    named by the official index; else class by class.
    """
    split_folder = data_dir / split
    if not split_folder.is_dir():
        raise RequestError(
            f"{data_dir} has no folder {split}/: the {split} split is missing. Both are needed."
        )
    paths = []
    for folder in visible(split_folder):
        if not folder.is_dir():
            continue
        if names.label(folder.name) is None:
            error = unknown(f"{names.title} class", folder.name, names.class_names)
            raise RequestError(f"{folder}: {error}")
        paths += [path for path in visible(folder) if path.suffix.lower() in IMAGE_SUFFIXES]
    if not paths:
        raise RequestError(
            f"{split_folder} holds no images in class folders such as {names.class_names[0]}/ "
            f"({', '.join(IMAGE_SUFFIXES)})."
        )
    repeated = max(Counter(path.stem for path in paths).values()) > 1

    def order(path: Path) -> tuple[Any, ...]:
        label = names.label(path.parent.name) if repeated else 0
        return label, natural(path.stem), path.name

    return tuple(sorted(paths, key=order))


def natural(stem: str) -> list[str | int]:
    """A sort key that puts 2 before 10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", stem)]


def read_class_folders(paths: tuple[Path, ...], names: FileNames) -> Images:
    """The images of these files, labelled by their folders.

    Raises:
        RequestError: a file is damaged or of another size.
    """

    def pixels(path: Path) -> np.ndarray:
        with reading(path, names.mend):
            return decode(path.read_bytes(), names)

    images = np.empty((len(paths), names.pixels, names.pixels, 3), np.uint8)
    with ThreadPoolExecutor(usable_cores()) as pool:  # Pillow decodes without Python's lock
        for row, each in enumerate(pool.map(pixels, paths)):
            images[row] = each
    return Images(images, np.array([names.label(path.parent.name) for path in paths], np.int64))
