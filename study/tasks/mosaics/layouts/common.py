"""What the layouts share: names, found files, images, and the decoding of an image."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from study.errors import RequestError

SIDE = 32
"""Height and width of an image in pixels."""

_IMAGE_FORMATS = ("PNG", "JPEG", "BMP", "WEBP")


@dataclass(frozen=True)
class FileNames:
    """The names of one data set's files, classes and columns.

    Attributes:
        title: for messages.
        class_names: in the order of the labels.
        folder: of the official layout.
        train: the official files of the train split, in order.
        test: the official files of the test split.
        meta: the official file that lists the class names.
        meta_key: key of the class names in it.
        label_key: key of the labels in the official files.
        label_column: column of the labels in the Parquet layout.
        misspelt: class names that published copies spell wrong, with the right ones.
    """

    title: str
    class_names: tuple[str, ...]
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    meta: str
    meta_key: str
    label_key: str
    label_column: str
    misspelt: Mapping[str, str] = field(default_factory=dict)

    def label(self, class_name: str) -> int | None:
        """The label of a class name in any letter case; None if there is no such class."""
        name = class_name.lower()
        name = self.misspelt.get(name, name)
        return self.class_names.index(name) if name in self.class_names else None

    @property
    def accepted_layouts(self) -> str:
        """The accepted layouts, for messages."""
        return (
            f"{self.folder}/ as torchvision keeps it, Hugging Face Parquet (train*.parquet and "
            "test*.parquet), or class folders (train/<class>/*.png and test/<class>/*.png)"
        )


@dataclass(frozen=True)
class Found:
    """The files of a data set.

    Attributes:
        layout: one of the three.
        train: the files of the train split, in the order of their images.
        test: the files of the test split.
        meta: the file with the class names; official layout only.
    """

    layout: Literal["official", "parquet", "class folders"]
    train: tuple[Path, ...]
    test: tuple[Path, ...]
    meta: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        return (*self.train, *self.test, *([self.meta] if self.meta else []))


class Images(NamedTuple):
    """Some images, in order.

    Attributes:
        images: (N, 32, 32, 3) uint8.
        labels: (N,) int64 in [0, number of classes).
    """

    images: np.ndarray
    labels: np.ndarray


def visible(folder: Path) -> list[Path]:
    """The entries of a folder without hidden ones, sorted by name."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def reason_of(error: BaseException) -> str:
    """The first sentence of an exception, on one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = " ".join(str(error).split())
    return text.split(". ")[0].rstrip(".")[:200] or type(error).__name__


def check_classes(listed: list[str], path: Path, names: FileNames) -> None:
    """Refuses a file whose class names are not the data set's, in order.

    Raises:
        RequestError: it names the file and the first class that differs.
    """
    if len(listed) != len(names.class_names):
        raise RequestError(
            f"{path} lists another number of classes than {names.title} has: {len(listed)}, not "
            f"{len(names.class_names)}. Pass the directory that holds {names.title} "
            "with --data-dir."
        )
    for label, (got, expected) in enumerate(zip(listed, names.class_names, strict=True)):
        if names.label(got) != label:
            raise RequestError(
                f"{path} calls class {label} {got!r}, {names.title} calls it {expected!r}. Pass "
                f"the directory that holds {names.title} with --data-dir."
            )


def decode(encoded: bytes | None, where: str) -> np.ndarray:
    """The pixels of an encoded image: (32, 32, 3) uint8."""
    from PIL import Image

    if encoded is None:
        raise RequestError(f"{where} holds no image bytes.")
    try:
        with Image.open(io.BytesIO(encoded), formats=_IMAGE_FORMATS) as image:
            size, mode = image.size, image.mode
            pixels = None
            if size == (SIDE, SIDE):
                pixels = np.asarray(image if mode == "RGB" else image.convert("RGB"))
    except Exception as error:  # a damaged image can raise anything
        reason = "unknown format" if "cannot identify" in str(error) else reason_of(error)
        raise RequestError(
            f"{where} is damaged or no PNG, JPEG, BMP or WebP image ({reason}). Copy the data set "
            "again."
        ) from error
    if pixels is None:
        raise RequestError(
            f"{where} is {size[0]} x {size[1]} pixels, must be {SIDE} x {SIDE}. Pass the data set "
            "at its own size."
        )
    if mode.startswith(("I", "F")):  # conversion would clip these
        raise RequestError(f"{where} has more than 8 bits a channel ({mode}), must have 8.")
    return pixels


def check_labels(labels: np.ndarray, count: int, num_classes: int, where: str) -> None:
    """Refuses labels that are not (count,) int64 in [0, num_classes).

    Raises:
        RequestError: it names `where`, the first wrong label and its image.
    """
    if labels.dtype != np.int64 or labels.shape != (count,):
        raise RequestError(
            f"the labels of {where} must be {count} of int64, one an image, "
            f"got {labels.dtype} of shape {labels.shape}."
        )
    wrong = np.flatnonzero((labels < 0) | (labels >= num_classes))
    if len(wrong):
        raise RequestError(
            f"labels out of range: {labels[wrong[0]]} at image {wrong[0]} of {where}, "
            f"must be 0..{num_classes - 1}."
        )
