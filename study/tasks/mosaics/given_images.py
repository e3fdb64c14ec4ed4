"""Mosaics of pictures that a person asks a network about, made as its own images were.

A picture is a file, a Pillow image or an array. One alone is cut into tiles; a list of pictures is
one mosaic, a list of such lists several; with `tiles` each picture of a list is cut by itself.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from study.errors import RequestError
from study.tasks.mosaics.decoding import image_of, squared, upright
from study.tasks.mosaics.mosaics import as_segments
from study.tasks.mosaics.strip import strip
from study.tasks.sources.reading import reading
from study.tasks.task import Asked

if TYPE_CHECKING:
    from PIL.Image import Image

_MAX_VALUE = 255
_PICTURE = (
    "Give a file (PNG, JPEG, BMP or WebP), a Pillow image, or an array (height, width) or "
    "(height, width, channels) of whole numbers in 0..255 or fractions in [0, 1]."
)


def given_images(carried: Mapping[str, Any], given: Any, tiles: Any) -> list[Asked]:
    """See `study.tasks.task.Modality.reads`.

    Args:
        carried: `input_shape`, `max_value` and m.
        given: pictures, see above.
        tiles: into how many to cut a picture, or (rows, columns); None: m, if one is given.

    Raises:
        RequestError: the network takes no square pictures; what is given is none, or damaged; or
            it cannot be cut so.
    """
    channels, side, width = carried["input_shape"]
    if channels not in (1, 3) or side != width or carried["max_value"] is None:
        raise RequestError("this network takes no square pictures: call its `model`.")
    mosaics = mosaics_given(given, 3)
    squares = partial(_squares, side=side, channels=channels)
    if mosaics is not None and tiles is None:
        return [
            _asked(
                number,
                np.concatenate([squares(*each, 1)[0] for each in named]),
                [name for name, _ in named],
            )
            for number, named in enumerate(map(_named, mosaics))
        ]
    if mosaics and len(mosaics) > 1:
        raise RequestError("tiles= cuts pictures; lists of them are mosaics: leave it out.")
    tiles = carried["m"] if tiles is None else tiles
    named = _named(mosaics[0] if mosaics else [given])
    cut = [(name, *squares(name, each, tiles)) for name, each in named]
    return [_asked(name, each, range(len(each)), across=columns) for name, each, columns in cut]


def _named(pictures: Sequence[Any]) -> list[tuple[str | int, Any]]:
    """Each picture behind its name: its file, or its number."""
    return [(str(p) if isinstance(p, str | Path) else n, p) for n, p in enumerate(pictures)]


def _asked(name: str | int, pixels: np.ndarray, parts: Sequence[str | int], **more: int) -> Asked:
    """A mosaic of (m, side, side, channels) uint8; `more` on how it is shown."""
    segments = as_segments(torch.from_numpy(pixels), _MAX_VALUE)
    return Asked(name, segments, parts, lambda: {"tiles": strip(pixels / _MAX_VALUE), **more})


def mosaics_given(given: Any, axes: int) -> Sequence[Sequence[Any]] | None:
    """The segments of each mosaic that is given; None: it is a single one, or what is cut.

    Args:
        given: a list of segments is a mosaic, a list of such lists are several, and so are arrays
            with one axis, or two, more than one segment has.
        axes: of a segment.

    Raises:
        RequestError: a list is empty, or holds both lists and others.
    """

    def is_list(each: Any) -> bool:
        return isinstance(each, list | tuple) or getattr(each, "ndim", 0) > axes

    if not is_list(given):
        return None
    mosaics: Sequence[Any] = given if any(map(is_list, given)) else [given]
    if not all(is_list(each) and len(each) for each in mosaics):
        raise RequestError(
            "an empty list was given, or one of lists and others. Give a list of segments, which "
            "are one mosaic, or a list of such lists."
        )
    return mosaics


def _squares(
    name: str | int, picture: Any, tiles: Any, side: int, channels: int
) -> tuple[np.ndarray, int]:
    """The tiles of a picture, (count, side, side, channels) uint8, and how many are in a row.

    One that is not cut has the pixels that it has in a data set of one's own.
    """
    with reading(f"picture {name}", _PICTURE):
        image = _opened(picture)
        if tiles == 1:
            image.draft("RGB", (2 * side, 2 * side))
        pixels = np.asarray(upright(image))
    rows, columns = _grid(tiles, *pixels.shape[:2])
    cut = [
        squared(image_of(tile), side).convert("L" if channels == 1 else "RGB")
        for band in np.array_split(pixels, rows)
        for tile in np.array_split(band, columns, axis=1)
    ]
    return np.reshape([*map(np.asarray, cut)], (-1, side, side, channels)), columns


def _opened(picture: Any) -> Image:
    """The image that stands for a picture, which stays as it is.

    Raises:
        Exception: of any sort: there is no such file, it is damaged, or no picture.
    """
    from PIL import Image

    if isinstance(picture, Image.Image):
        return picture.copy()
    if isinstance(picture, str | Path):
        return image_of(Path(picture).expanduser())
    pixels = np.asarray(picture)
    if pixels.ndim < 2 or pixels.shape[2:] not in ((), (1,), (3,), (4,)) or not pixels.size:
        raise ValueError(f"it is of type {type(picture).__name__} and shape {pixels.shape}")
    most = 1 if pixels.dtype.kind == "f" else _MAX_VALUE
    if pixels.dtype.kind not in "uif" or not (pixels.min() >= 0 and pixels.max() <= most):
        raise ValueError(f"its values, {pixels.dtype}, do not all lie in 0..{most}")
    pixels = np.round(pixels * (_MAX_VALUE / most)).astype(np.uint8)
    return image_of(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)


def _grid(tiles: Any, height: int, width: int) -> tuple[int, int]:
    """Rows and columns of tiles; of a number those whose tiles are nearest to squares.

    Raises:
        RequestError: it is neither a number nor (rows, columns), or the picture is too small.
    """
    grid = tiles
    try:
        if isinstance(tiles, int):
            divisors = [each for each in range(1, min(tiles, height) + 1) if tiles % each == 0]
            ratio = height * tiles / width  # of rows^2, where tiles are squares
            best = min(divisors, key=lambda each: abs(math.log(each**2 / ratio)))
            grid = best, tiles // best
        rows, columns = map(operator.index, grid)
        if not (0 < rows <= height and 0 < columns <= width):
            raise ValueError
    except (TypeError, ValueError) as error:
        raise RequestError(
            f"tiles={tiles!r} must be how many tiles a picture is cut into, or (rows, columns), "
            f"each at least a pixel wide; this picture has {height} rows and {width} columns."
        ) from error
    return rows, columns
