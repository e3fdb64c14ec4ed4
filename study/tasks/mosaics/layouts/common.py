"""What the layouts share: names, found files, images, and the decoding of an image."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from study.tasks.mosaics.classes import class_name

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 32
"""Height and width of an image of CIFAR in pixels."""

_IMAGE_FORMATS = ("PNG", "JPEG", "BMP", "WEBP")
_PNG_PIXELS = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")


@dataclass(frozen=True)
class FileNames:
    """The names of one data set's files, classes and columns, and the size of its images.

    Attributes:
        title: for messages.
        class_names: in the order of the labels, as `class_name` gives them.
        folder: of the official layout.
        train: the official files of the train split, in order.
        test: the official files of the test split.
        meta: the official file that lists the class names.
        meta_key: key of the class names in it.
        label_key: key of the labels in the official files.
        label_column: column of the labels in the Parquet layout.
        misspelt: class names that published copies spell wrong, with the right ones.
        numbered: whether labels in the Parquet layout are numbers; else they are class names.
        pixels: height and width of an image.
        resized: whether images of another size are resized; else they are refused.
        mend: what to do about a damaged file, for messages.
    """

    title: str
    class_names: tuple[str, ...]
    folder: str = ""
    train: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    meta: str = ""
    meta_key: str = ""
    label_key: str = ""
    label_column: str = ""
    misspelt: Mapping[str, str] = field(default_factory=dict)
    numbered: bool = True
    pixels: int = SIDE
    resized: bool = False
    mend: str = "Copy the data set again, and pass its directory with --data-dir."

    def label(self, called: object) -> int | None:
        """The label of a class name, also in lower case; None if there is no such class."""
        name = class_name(called)
        lower = name.lower()
        return self._labels.get(name, self._labels.get(self.misspelt.get(lower, lower)))

    @functools.cached_property
    def _labels(self) -> Mapping[str, int]:
        return {name: label for label, name in enumerate(self.class_names)}

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
        layout: one of the four, of which CIFAR has the first three.
        train: the files of the train split, in the order of their images.
        test: the files of the test split; empty: of images of your own, that is to be drawn.
        meta: the file with the class names; official layout only.
    """

    layout: Literal["official", "parquet", "class folders", "ubyte"]
    train: tuple[Path, ...]
    test: tuple[Path, ...]
    meta: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        return (*self.train, *self.test, *([self.meta] if self.meta else []))


class Images(NamedTuple):
    """Some images, in order.

    Attributes:
        images: (N, P, P, 3) uint8, of P = `FileNames.pixels`.
        labels: (N,) int64 in [0, number of classes).
    """

    images: np.ndarray
    labels: np.ndarray

    @classmethod
    def none(cls, names: FileNames) -> Images:
        """No images."""
        return cls(np.empty((0, names.pixels, names.pixels, 3), np.uint8), np.empty(0, np.int64))


def check_classes(listed: list[str], names: FileNames) -> None:
    """Refuses other class names than the data set has, in order.

    Raises:
        ValueError: it names the first class that differs.
    """
    for label, (got, expected) in enumerate(itertools.zip_longest(listed, names.class_names)):
        if got is None or names.label(got) != label:
            raise ValueError(f"it calls class {label} {got!r}, {names.title} {expected!r}")


def decode(encoded: bytes | None, names: FileNames) -> np.ndarray:
    """The pixels of an encoded image: (P, P, 3) uint8, see `fitted`.

    Raises:
        ValueError: it has more than 8 bits, or another size that is to be refused.
        Exception: it is damaged, or in no accepted format.
    """
    side = names.pixels
    with _opened(encoded or b"") as image:
        if image.size != (side, side) and not names.resized:
            width, height = image.size
            raise ValueError(f"it is {width} x {height} pixels, must be {side} x {side}")
        if image.mode.startswith(("I", "F")):  # conversion would clip it
            raise ValueError(f"it has more than 8 bits a channel ({image.mode})")
        return fitted(image, side)


def _opened(encoded: bytes) -> Image:
    """The image in a file; of a PNG that is whole but for its metadata, without these.

    So every viewer shows it.
    """
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(encoded), formats=_IMAGE_FORMATS)
        if image.format == "PNG":
            image.load()  # reads what is behind the pixels, too
    except Exception:  # a damaged image can raise anything
        image = Image.open(io.BytesIO(_without_metadata(encoded)), formats=_IMAGE_FORMATS)
    return image


def _without_metadata(encoded: bytes) -> bytes:
    """A PNG without metadata, but EXIF with the right checksum; any other file as it is."""
    if not encoded.startswith(b"\x89PNG"):
        return encoded
    kept, start = [encoded[:8]], 8
    while start < len(encoded):
        end = start + 12 + int.from_bytes(encoded[start : start + 4], "big")
        name, checksum = encoded[start + 4 : start + 8], encoded[end - 4 : end]
        if name in _PNG_PIXELS or (
            name == b"eXIf"
            and zlib.crc32(encoded[start + 4 : end - 4]).to_bytes(4, "big") == checksum
        ):
            kept.append(encoded[start:end])
        start = end
    return b"".join(kept)


def fitted(image: Image, side: int) -> np.ndarray:
    """An image as (side, side, 3) uint8; of one that has that size, the pixels themselves.

    It is turned upright as its camera says, if that can be read, put on white where it is
    transparent, cut to the square in its middle, and resized with antialiasing (bicubic).
    """
    from PIL import Image as images
    from PIL import ImageOps

    image.draft("RGB", (2 * side, 2 * side))  # a large JPEG is decoded no larger than needed
    image.load()
    with contextlib.suppress(Exception):  # EXIF that cannot be read: it stays as it is
        ImageOps.exif_transpose(image, in_place=True)
    if image.has_transparency_data:
        white = images.new("RGBA", image.size, "white")
        image = images.alpha_composite(white, image.convert("RGBA"))
    square = ImageOps.fit(image.convert("RGB"), (side, side), images.Resampling.BICUBIC)
    return np.asarray(square)


def fitted_all(images: np.ndarray, side: int) -> np.ndarray:
    """Images (N, H, W, 3) or (N, H, W) uint8 as (N, side, side, 3), see `fitted`."""
    from PIL import Image

    if images.shape[1:] == (side, side, 3):
        return images
    return np.stack([fitted(Image.fromarray(each), side) for each in images])
