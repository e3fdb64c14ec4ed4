"""Decodes images and fits them to a square."""

from __future__ import annotations

import contextlib
import io
import itertools
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from study.limits import usable_cores
from study.tasks.sources.reading import reading

if TYPE_CHECKING:  # prepared images need no Pillow
    from PIL.Image import Image

MEND = "Replace it, or take it away."

_FORMATS = ("PNG", "JPEG", "BMP", "WEBP")
"""All others are refused: of these alone decoding is trusted."""
_TOGETHER = 16
"""Images that a thread is given at a time, for a small one is decoded as fast as it is given; and
for how many threads they are read ahead."""
_PNG_PIXELS = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")


def opened(encoded: bytes) -> Image:
    """The image in a file; of a PNG that is whole but for its metadata, without these.

    So every viewer shows it.

    Raises:
        Exception: of any sort: it is damaged, or in no accepted format.
    """
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(encoded), formats=_FORMATS)
        if image.format == "PNG":
            image.load()  # reads what is behind the pixels, too
        return image
    except Exception:  # a damaged image can raise anything
        return Image.open(io.BytesIO(_without_metadata(encoded)), formats=_FORMATS)


def _without_metadata(encoded: bytes) -> bytes:
    """A PNG without what is no pixel; any other file is not decoded by it either."""
    kept, start = [encoded[:8]], 8
    while start < len(encoded):
        end = start + 12 + int.from_bytes(encoded[start : start + 4], "big")
        if encoded[start + 4 : start + 8] in _PNG_PIXELS:
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
    image = image if image.mode == "RGB" else image.convert("RGB")
    if image.size != (side, side):
        image = ImageOps.fit(image, (side, side), images.Resampling.BICUBIC)
    return np.asarray(image)


def fitted_arrays(images: np.ndarray, side: int) -> np.ndarray:
    """Images (N, H, W, 3) or (N, H, W) uint8 as (N, side, side, 3), see `fitted`."""
    from PIL import Image

    if images.shape[1:] == (side, side, 3):
        return images
    return np.stack([fitted(Image.fromarray(each), side) for each in images])


def decoded(encoded: bytes, side: int, resized: bool) -> np.ndarray:
    """The pixels of an encoded image: (side, side, 3) uint8, see `fitted`.

    Args:
        encoded: a PNG, JPEG, BMP or WebP.
        side: height and width.
        resized: whether an image of another size is resized; else it is refused.

    Raises:
        ValueError: it has more than 8 bits, or another size that is refused.
        Exception: as `opened`.
    """
    with opened(encoded) as image:
        if not resized and image.size != (side, side):
            width, height = image.size
            raise ValueError(f"it is {width} x {height} pixels, must be {side} x {side}")
        if image.mode.startswith(("I", "F")):  # conversion would clip it
            raise ValueError(f"it has more than 8 bits a channel ({image.mode})")
        return fitted(image, side)


Encoded = tuple[object, Callable[[], bytes | None]]
"""Where an image is, for messages, and what reads it."""


def all_decoded(encoded: Iterable[Encoded], count: int, side: int, resized: bool) -> np.ndarray:
    """The pixels of many images, by several threads: (count, side, side, 3) uint8.

    Args:
        encoded: the images, in order; some are asked for at a time.
        count: how many they are.
        side, resized: see `decoded`.

    Raises:
        RequestError: an image cannot be decoded, or has another size that is refused.
    """

    def pixels(chunk: list[Encoded]) -> list[np.ndarray]:
        arrays = []
        for place, read in chunk:
            with reading(place, MEND):
                arrays.append(decoded(read() or b"", side, resized))
        return arrays

    rest = iter(encoded)
    chunks = iter(lambda: [*itertools.islice(rest, _TOGETHER)], [])
    images, row = np.empty((count, side, side, 3), np.uint8), 0
    # Threads, since Pillow decodes without Python's lock.
    with ThreadPoolExecutor(usable_cores()) as pool, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="PIL")  # of metadata
        while ahead := [*itertools.islice(chunks, _TOGETHER)]:
            for arrays in pool.map(pixels, ahead):
                images[row : row + len(arrays)] = arrays
                row += len(arrays)
    return images
