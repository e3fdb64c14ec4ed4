"""Decodes images and fits them to a square."""

from __future__ import annotations

import contextlib
import io
import itertools
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from study.limits import usable_cores
from study.tasks.sources.reading import reading
from study.terminal.working import working

if TYPE_CHECKING:  # prepared images need no Pillow
    from PIL.Image import Image

MEND = "Replace it, or take it away."

_FORMATS = ("PNG", "JPEG", "BMP", "WEBP")
"""All others are refused: of these alone decoding is trusted."""
_TOGETHER = 16
"""Images that a thread is given at a time, for a small one is decoded as fast as it is given; and
for how many threads they are read ahead."""
_PNG_PIXELS = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")

Content = Path | bytes | np.ndarray | None
"""A file, what is in one, or pixels (H, W, 3) or (H, W) uint8; None: it is missing."""


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
    image.draft("RGB", (2 * side, 2 * side))  # a large JPEG is decoded no larger than needed
    return np.asarray(squared(upright(image), side))


def upright(image: Image) -> Image:
    """An image in RGB, turned as its camera says, if that can be read, on white.

    Raises:
        ValueError: it has more than 8 bits a channel.
        Exception: of any sort: it is damaged.
    """
    from PIL import Image as images
    from PIL import ImageOps

    if image.mode.startswith(("I", "F")):  # conversion would clip it
        raise ValueError(f"it has more than 8 bits a channel ({image.mode})")
    image.load()
    with contextlib.suppress(Exception):  # EXIF that cannot be read: it stays as it is
        ImageOps.exif_transpose(image, in_place=True)
    if image.has_transparency_data:
        white = images.new("RGBA", image.size, "white")
        image = images.alpha_composite(white, image.convert("RGBA"))
    return image if image.mode == "RGB" else image.convert("RGB")


def squared(image: Image, side: int) -> Image:
    """The square in the middle of an image in RGB, of side x side pixels."""
    from PIL import Image as images
    from PIL import ImageOps

    if image.size == (side, side):
        return image
    return ImageOps.fit(image, (side, side), images.Resampling.BICUBIC)


def image_of(content: Content) -> Image:
    """The image of a content; raises as `opened`."""
    from PIL import Image

    if isinstance(content, np.ndarray):
        return Image.fromarray(content)
    return opened(content.read_bytes() if isinstance(content, Path) else content or b"")


def decoded(content: Content, side: int, resized: bool) -> np.ndarray:
    """The pixels of an image: (side, side, 3) uint8, see `fitted`.

    Args:
        content: see `Content`.
        side: height and width.
        resized: whether an image of another size is resized; else it is refused.

    Raises:
        ValueError: it has more than 8 bits, or another size that is refused.
        Exception: as `opened`.
    """
    if isinstance(content, np.ndarray) and content.shape == (side, side, 3):
        return content
    with image_of(content) as image:
        if not resized and image.size != (side, side):
            width, height = image.size
            raise ValueError(f"it is {width} x {height} pixels, must be {side} x {side}")
        return fitted(image, side)


def all_decoded(
    places: Sequence[object], contents: Iterable[Content], side: int, resized: bool
) -> np.ndarray:
    """The pixels of many images, by several threads: (N, side, side, 3) uint8.

    Args:
        places: where each image is, for messages.
        contents: of the images; some are asked for at a time.
        side, resized: see `decoded`.

    Raises:
        RequestError: an image cannot be decoded, or has another size that is refused.
    """
    images = np.empty((len(places), side, side, 3), np.uint8)
    rest = zip(images, places, contents, strict=True)
    chunks = iter(lambda: [*itertools.islice(rest, _TOGETHER)], [])

    def fill(chunk: Sequence[tuple[np.ndarray, object, Content]]) -> int:
        for pixels, place, content in chunk:
            with reading(place, MEND):
                pixels[:] = decoded(content, side, resized)
        return len(chunk)

    with (
        working("preparing images", len(images), "images") as part,
        ThreadPoolExecutor(usable_cores()) as pool,  # Pillow decodes without Python's lock
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", module="PIL")  # of metadata
        while ahead := [*itertools.islice(chunks, _TOGETHER)]:
            for count in pool.map(fill, ahead):
                part.step(count)
    return images
