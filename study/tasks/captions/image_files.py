"""Files of images: what is in them, and their pixels at the size that an encoder takes."""

from __future__ import annotations

import hashlib
import io
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from study.limits import usable_cores
from study.tasks.sources.reading import reading
from study.terminal.working import working

if TYPE_CHECKING:  # a step on noise needs no Pillow
    from PIL import Image

THUMBNAIL = 224
"""Pixels a side of a picture for people."""

_QUALITY = 80
_FORMATS = ("JPEG", "PNG")
_AHEAD = 64  # images that are decoded before they are asked for

T = TypeVar("T")
U = TypeVar("U")


def look_through(folder: Path, files: Sequence[str]) -> Iterator[str | None]:
    """The SHA-256 of each file in hexadecimal digits; None: it is missing or no whole image.

    All are read and decoded, by several threads, so that a truncated one is noticed.
    """
    seen = _in_order(lambda file: _look(folder / file), files)
    return told(seen, f"looking through {len(files):,} images in {folder}", len(files))


def pixels(folder: Path, files: Sequence[str], side: int, doing: str) -> Iterator[np.ndarray]:
    """The pixels of each file in turn, as `image_pixels` gives them, decoded by several threads.

    Args:
        doing: what is being done, for people.

    Raises:
        RequestError: a file cannot be decoded.
    """
    decoded = _in_order(lambda file: image_pixels(folder / file, side), files)
    return told(decoded, doing, len(files))


def image_pixels(path: Path, side: int) -> np.ndarray:
    """The pixels of an image, squashed to a square: (3, side, side) uint8.

    Raises:
        RequestError: it cannot be decoded.
    """
    return np.ascontiguousarray(np.asarray(_squashed(path, side)).transpose(2, 0, 1))


def thumbnail(path: Path) -> bytes:
    """The image for people, squashed to a square of `THUMBNAIL` pixels a side, as JPEG.

    Raises:
        RequestError: it cannot be decoded.
    """
    return encoded(_squashed(path, THUMBNAIL))


def encoded(image: Image.Image) -> bytes:
    """An image as JPEG."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=_QUALITY)
    return file.getvalue()


def _squashed(path: Path, side: int) -> Image.Image:
    from PIL import Image

    with (
        reading(path, "Leave the data set as it is while a study runs."),
        Image.open(path, formats=_FORMATS) as image,
    ):
        # Bilinear with antialiasing: Pillow widens the filter where it shrinks an image.
        return image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR)


def _look(path: Path) -> str | None:
    from PIL import Image

    try:
        content = path.read_bytes()
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            # A JPEG is decoded whole, but at an eighth of its size, which takes a third the time.
            image.draft("RGB", (1, 1))
            image.load()
    except Exception:  # a damaged image can raise anything
        return None
    return hashlib.sha256(content).hexdigest()


def _in_order(function: Callable[[T], U], items: Sequence[T]) -> Iterator[U]:
    """The results of a function that threads call, a few ahead of what is asked for."""
    with ThreadPoolExecutor(usable_cores()) as pool:
        waiting: deque[Future[U]] = deque()
        try:
            rest = iter(items)
            waiting += (pool.submit(function, item) for item in itertools.islice(rest, _AHEAD))
            while waiting:
                yield waiting.popleft().result()
                waiting += (pool.submit(function, item) for item in itertools.islice(rest, 1))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def told(items: Iterator[T], doing: str, total: int) -> Iterator[T]:
    """The items, while it is shown how many of them are done."""
    with working(doing, total, "images") as part:
        yield from part.each(items)
