"""Tiles side by side as one small image, by which pages show a mosaic."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL import Image

_TILE = 48  # pixels a side: a larger tile is made smaller
_WIDEST_JPEG = 2**16 - 1


def strip(tiles: NDArray[np.float64]) -> str:
    """(m, H, W, 1 or 3) in [0, 1] -> an image file in base64 with the tiles side by side.

    Raises:
        ImportError: Pillow is not installed.
    """
    from PIL import Image

    pixels = (255 * tiles).round().astype(np.uint8)
    images = [Image.fromarray(each[..., 0] if each.shape[2] == 1 else each) for each in pixels]
    for image in images:
        image.thumbnail((_TILE, _TILE), Image.Resampling.LANCZOS)
    side_by_side = Image.fromarray(np.concatenate([np.asarray(each) for each in images], axis=1))
    forms = ("PNG", "JPEG") if side_by_side.width <= _WIDEST_JPEG else ("PNG",)
    return base64.b64encode(min((_file(side_by_side, form) for form in forms), key=len)).decode()


def _file(image: Image.Image, form: str) -> bytes:
    with io.BytesIO() as sink:
        image.save(sink, form, optimize=True)
        return sink.getvalue()
