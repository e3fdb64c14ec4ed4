"""Files of images: what is in them, and their pixels at the size that an encoder takes."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from study.limits import usable_cores
from study.tasks.sources.reading import reading
from study.terminal.working import working

if TYPE_CHECKING:  # a step on noise needs no Pillow
    from PIL import Image

_FORMATS = ("JPEG", "PNG")
_AHEAD = 64  # images that are decoded before they are asked for
_THUMBNAIL = 224  # pixels a side of a picture for people

T = TypeVar("T")


def in_order(function: Callable[[Path], T], files: Sequence[Path], doing: str) -> Iterator[T]:
    """What a function gives for each file in turn; several threads call it, some files ahead.

    Args:
        function: of a file.
        files: to call it with.
        doing: what is being done, for people.
    """
    with (
        working(doing, len(files), "images") as part,
        ThreadPoolExecutor(usable_cores()) as pool,
    ):
        ready: Iterator[T] = iter(())
        for start in range(0, len(files), _AHEAD):
            ahead = pool.map(function, files[start : start + _AHEAD])
            yield from part.each(ready)
            ready = ahead
        yield from part.each(ready)


def image_pixels(path: Path, side: int) -> np.ndarray:
    """The pixels of an image, squashed to a square: (3, side, side) uint8.

    Raises:
        RequestError: it cannot be decoded.
    """
    return np.ascontiguousarray(np.asarray(_squashed(path, side)).transpose(2, 0, 1))


def checksum(path: Path) -> str | None:
    """The SHA-256 of a file in hexadecimal digits; None: it is missing or no whole image.

    It is decoded, so that a truncated one is noticed.
    """
    try:
        content = path.read_bytes()
        from PIL import Image

        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            # A JPEG is decoded whole, but at an eighth of its size, which takes a third the time.
            image.draft("RGB", (1, 1))
            image.load()
    except Exception:  # a damaged image can raise anything
        return None
    return hashlib.sha256(content).hexdigest()


def thumbnail(path: Path) -> bytes:
    """The image for people, squashed to a square, as JPEG.

    Raises:
        RequestError: it cannot be decoded.
    """
    file = io.BytesIO()
    _squashed(path, _THUMBNAIL).save(file, "JPEG", quality=80)
    return file.getvalue()


def _squashed(path: Path, side: int) -> Image.Image:
    from PIL import Image

    with (
        reading(path, "Leave the data set as it is while a study runs."),
        Image.open(path, formats=_FORMATS) as image,
    ):
        # Bilinear with antialiasing: Pillow widens the filter where it shrinks an image.
        return image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
