"""Draws the order parameter of a cell with Pillow, in milliseconds.

Matplotlib, which draws those of the report, takes a tenth of a second: too long for every cell.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from study.theory.attention_paths.arguments import Floats

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
    numbers: dict[str, Any] = {"paths": names}
    columns = {"order_parameter": "order_parameter", "order_parameter_error": "monte_carlo_error"}
    for column, name in columns.items():
        if row[column] is not None:
            numbers[name] = np.reshape(row[column], (len(names), -1)).tolist()
    picture = order_parameter_png(np.array(numbers["order_parameter"]), names, title)
    return {
        "order_parameter.json": json.dumps(numbers, indent=1).encode(),
        "order_parameter.png": picture,
    }


def order_parameter_png(order_parameter: Floats, names: Sequence[str], title: str) -> bytes:
    """Draws U as coloured squares: vermilion positive, blue negative, white 0.

    Args:
        order_parameter: (D, D).
        names: of the D paths.
        title: above.

    Returns:
        A PNG file.
    """
    labelled = len(names) <= _LARGEST_LABELLED
    side = _SIDE if labelled else _SMALL_SIDE
    edge = len(names) * side
    image = Image.new("RGB", (max(_LEFT + edge + _RIGHT, 420), _TOP + edge + _BOTTOM), "white")
    draw = ImageDraw.Draw(image)

    def write(x: float, y: float, text: str, anchor: str, size: int, ink: str = "black") -> None:
        draw.text((x, y), text, ink, ImageFont.load_default(size), anchor=anchor)

    largest = np.abs(order_parameter).max() or 1.0
    shares = np.abs(order_parameter) / largest
    full = np.where(order_parameter[..., None] > 0, _POSITIVE, _NEGATIVE)
    colours = np.rint(255 + (full - 255) * shares[..., None]).astype(np.uint8)
    squares = Image.fromarray(colours).resize((edge, edge), Image.Resampling.NEAREST)
    image.paste(squares, (_LEFT, _TOP))
    draw.rectangle((_LEFT, _TOP, _LEFT + edge, _TOP + edge), outline=(120, 120, 120))
    if labelled:
        middles = ((np.arange(len(names)) + 0.5) * side).tolist()
        for name, y in zip(names, middles, strict=True):
            write(_LEFT - 8, _TOP + y, name, "rm", 13)
        for (i, j), share in np.ndenumerate(shares):
            ink = "white" if share > 0.6 else "black"
            number = f"{order_parameter[i, j]:.3g}"
            write(_LEFT + middles[j], _TOP + middles[i], number, "mm", 13, ink)
    write(12, 10, title, "la", 15)
    foot = f"order parameter U, pairs of paths; darkest: {largest:.3g}"
    write(12, image.height - 12, foot, "ls", 12)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
