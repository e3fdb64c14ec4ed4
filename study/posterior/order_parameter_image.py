"""Draws the order parameter of a cell with Pillow, in milliseconds.

Matplotlib, which draws those of the report, takes a tenth of a second: too long for every cell.
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image, ImageDraw, ImageFont

_LARGEST_LABELLED = 16
"""Most paths whose names and numbers are written; of more, the squares are small."""

# Pixels.
_SIDE, _SMALL_SIDE = 72, 4
_LEFT, _TOP, _RIGHT, _BOTTOM = 150, 60, 24, 40

_POSITIVE, _NEGATIVE = (190, 70, 20), (0, 90, 160)
"""Vermilion and blue, as in the report; told apart by colour-blind people, too."""


def order_parameter_files(row: Mapping[str, Any], title: str) -> dict[str, bytes]:
    """U of a cell as a picture and as numbers; nothing of a cell without one.

    Args:
        row: of `study.results.CELLS_SCHEMA`.
        title: above the picture.

    Returns:
        Name of a file -> content.
    """
    if row["order_parameter"] is None:
        return {}
    names = list(row["path_names"])
    size = len(names)

    def square(values: Sequence[float]) -> list[list[float]]:
        numbers = [float(value) for value in values]
        return [numbers[size * i : size * (i + 1)] for i in range(size)]

    numbers = {"paths": names, "order_parameter": square(row["order_parameter"])}
    if row["order_parameter_error"] is not None:
        numbers["monte_carlo_error"] = square(row["order_parameter_error"])
    return {
        "order_parameter.json": json.dumps(numbers, indent=1).encode(),
        "order_parameter.png": order_parameter_png(numbers["order_parameter"], names, title),
    }


def order_parameter_png(
    order_parameter: Sequence[Sequence[float]], names: Sequence[str], title: str
) -> bytes:
    """Draws U as coloured squares: vermilion positive, blue negative, white 0.

    Args:
        order_parameter: (D, D).
        names: of the D paths.
        title: above.

    Returns:
        A PNG file.
    """
    count = len(names)
    labelled = count <= _LARGEST_LABELLED
    side = _SIDE if labelled else _SMALL_SIDE
    width = max(_LEFT + count * side + _RIGHT, 420)
    image = Image.new("RGB", (width, _TOP + count * side + _BOTTOM), "white")
    draw = ImageDraw.Draw(image)
    draw.text((12, 10), title, "black", _font(15))
    largest = max(abs(value) for row in order_parameter for value in row) or 1.0
    for i, row in enumerate(order_parameter):
        middle = _TOP + i * side + side / 2
        if labelled:
            draw.text((_LEFT - 8, middle), names[i], "black", _font(13), anchor="rm")
        for j, value in enumerate(row):
            x, y = _LEFT + j * side, _TOP + i * side
            share = abs(value) / largest
            draw.rectangle((x, y, x + side - 1, y + side - 1), _colour(value, share))
            if labelled:
                ink = "white" if share > 0.6 else "black"
                at = (x + side / 2, middle)
                draw.text(at, f"{value:.3g}", ink, _font(13), anchor="mm")
    draw.rectangle(
        (_LEFT, _TOP, _LEFT + count * side, _TOP + count * side), outline=(120, 120, 120)
    )
    foot = f"order parameter U, pairs of paths; darkest: {largest:.3g}"
    draw.text((12, image.height - 12), foot, "black", _font(12), anchor="ls")
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _colour(value: float, share: float) -> tuple[int, int, int]:
    red, green, blue = (
        round(255 + (full - 255) * share) for full in (_POSITIVE if value > 0 else _NEGATIVE)
    )
    return red, green, blue


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
