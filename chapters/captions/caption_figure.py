"""Captions of one image, with the attention of each word."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from PIL import Image

from analysis.figures.style import BLACK, VERMILION, WHITE, own_settings
from chapters.captions.evaluation.caption_examples import Example

MOST_WORDS = 15
"""Words of a caption that are drawn; of a longer one the rest is left out."""

COLUMNS = 6
_DPI = 96.0  # of a page
_INCHES = 832 / _DPI  # as wide as a page shows it
_PIXELS = 128  # a side of an image, which is the unit of the lengths below
_ACROSS, _DOWN, _HEADING = 1.07, 1.23, 0.3  # to the next image and line; room above a caption
_TEXT = 12  # points: a page shows the captions of several paradigms smaller

_SHADE = 0.7
"""How much of its light a region without attention loses."""


@own_settings()
def caption_figure(examples: Mapping[str, Example]) -> Figure:
    """Captions one below the other, each word with its attention over the image.

    Args:
        examples: paradigm -> what it wrote of one image; at least one.

    Returns:
        Of each caption first the image with the box of the category, then an image a word: lit
        where the attention is as large as the word's largest, the darker the less it is. The word
        at which the category is most probable is framed, if it is one of the first `MOST_WORDS`.
    """
    figure = Figure(dpi=_DPI)
    axes = figure.subplots()
    height = 0.0
    for name, example in examples.items():
        heading = (
            f"{name} ({example['category']}: score {example['score']:.2f}, "
            f"attention in the box {example['attention_on_box']:.2f})"
        )
        axes.text(0, height + 0.2, heading, size=_TEXT, parse_math=False)
        height = _draw_images(axes, height + _HEADING, example)
    width = COLUMNS * _ACROSS
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    figure.set_size_inches(_INCHES, _INCHES * height / width)
    return figure


def lit(image: Image.Image, attention: Sequence[float]) -> NDArray[np.uint8]:
    """An RGB image (H, W, 3): as it was where attention is largest, dark where there is none.

    Args:
        image: of H x W pixels.
        attention: (g * g,) >= 0, row by row, not all 0.
    """
    side = math.isqrt(len(attention))
    regions = np.reshape(attention, (side, side)).astype(np.float32) / max(attention)
    # Smoothly, as the regions that the encoder sees overlap.
    smooth = Image.fromarray(regions).resize(image.size, Image.Resampling.BICUBIC)
    light = 1 - _SHADE * (1 - np.asarray(smooth).clip(0, 1))
    return (light[..., None] * np.asarray(image)).round().astype(np.uint8)


def _draw_images(axes: Axes, top: float, example: Example) -> float:
    """The image as it is, then as the model looks at it for each word; gives where they end."""
    image = Image.open(io.BytesIO(base64.b64decode(example["jpeg"]))).convert("RGB")
    image = image.resize((_PIXELS, _PIXELS))
    x, y, wide, high = example["box"]
    words = [example["category"], *example["words"][:MOST_WORDS]]
    for place, word in enumerate(words):
        line, column = divmod(place, COLUMNS)
        left, upper = column * _ACROSS, top + line * _DOWN
        look = lit(image, example["attention"][place - 1]) if place else image
        axes.imshow(look, extent=(left, left + 1, upper + 1, upper), interpolation="none")
        corner = (left + x, upper + y)
        for colour, thick in ((WHITE, 3), (BLACK, 1)):  # one of which is seen on every ground
            axes.add_patch(Rectangle(corner, wide, high, fill=False, ec=colour, lw=thick))
        below = axes.text(left + 0.5, upper + 1.15, word, ha="center", size=_TEXT)
        below.set_parse_math(False)
        if place == 1 + example["word"]:
            below.set_bbox({"edgecolor": VERMILION, "facecolor": "none", "pad": 3})
    return top + math.ceil(len(words) / COLUMNS) * _DOWN
