"""Draws captions with Pillow: over the image, where the attention of each word rests."""

from __future__ import annotations

import base64
import functools
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image, ImageDraw, ImageFont

MOST_WORDS = 15
"""Words of a caption that are drawn; of a longer one the rest is left out."""

# Pixels.
_CELL = 128  # side of an image
_GAP = 9
_MARGIN = 14
_NAME, _SENTENCE, _WORD = 32, 28, 30  # height of a line
_HEADING = _NAME + _SENTENCE  # above the images of a caption
_BETWEEN = 16  # captions
_COLUMNS = 6
_WIDTH = 2 * _MARGIN + _COLUMNS * _CELL + (_COLUMNS - 1) * _GAP

_BLACK, _GREY, _WHITE, _MARK = (0, 0, 0), (95, 95, 95), (255, 255, 255), (213, 94, 0)

_SHADE = 0.7
"""How much of its light a region without attention loses."""


class Example(TypedDict):
    """A caption that a model wrote of an image, and an object in the image.

    Attributes:
        image: name of its file.
        jpeg: the image as a square JPEG file in base64.
        category: of the object.
        box: x, y, width and height of the object, fractions of the image.
        word: index of the step at which the category's words have most probability.
        score: that probability, s_y.
        attention_on_box: attention inside the box at that step, a_z.
        words: of the caption, without its end.
        attention: of each word, of the g * g regions row by row, summing to 1.
    """

    image: str
    jpeg: str
    category: str
    box: list[float]
    word: int
    score: float
    attention_on_box: float
    words: list[str]
    attention: list[list[float]]


def examples_of(text: str) -> list[Example]:
    """The examples of the column `examples` of `study.results.EVALUATIONS_SCHEMA`."""
    examples: list[Example] = json.loads(text)
    return examples


def captions_png(examples: Mapping[str, Example]) -> bytes:
    """`captions_image` as a PNG file."""
    file = io.BytesIO()
    captions_image(examples).save(file, "PNG")
    return file.getvalue()


def captions_image(examples: Mapping[str, Example]) -> Image.Image:
    """Draws captions one below the other, each word with its attention over the image.

    Args:
        examples: name -> what it wrote, e.g. a paradigm; at least one.

    Returns:
        Of each caption first the image with the box of the category, then an image a word: lit
        where the attention is as large as the word's largest, the darker the less it is. The word
        at which the category is most probable is framed.
    """
    heights = [_height(example) for example in examples.values()]
    height = 2 * _MARGIN + sum(heights) + _BETWEEN * (len(heights) - 1)
    picture = Image.new("RGB", (_WIDTH, height), _WHITE)
    top = _MARGIN
    for (name, example), each in zip(examples.items(), heights, strict=True):
        _draw_caption(picture, top, name, example)
        top += each + _BETWEEN
    return picture


def lit(image: Image.Image, attention: ArrayLike) -> Image.Image:
    """An image that is as it was where attention is largest, and dark where there is none.

    Args:
        image: RGB, of any size.
        attention: (g * g,) >= 0, row by row, not all 0.
    """
    weights = np.asarray(attention, np.float32)
    side = math.isqrt(len(weights))
    regions = Image.fromarray((weights / weights.max()).reshape(side, side))
    # Smoothly, as the regions that the encoder sees overlap.
    share = np.asarray(regions.resize(image.size, Image.Resampling.BICUBIC)).clip(0, 1)
    light = 1 - _SHADE * (1 - share[:, :, None])
    return Image.fromarray((light * np.asarray(image)).round().astype(np.uint8))


def _height(example: Example) -> int:
    shown = 1 + min(len(example["words"]), MOST_WORDS)
    return _HEADING + math.ceil(shown / _COLUMNS) * (_CELL + _WORD)


def _draw_caption(picture: Image.Image, top: int, name: str, example: Example) -> None:
    draw = ImageDraw.Draw(picture)
    words = example["words"][:MOST_WORDS]
    draw.text((_MARGIN, top + _NAME / 2), name, _BLACK, _font(19), anchor="lm")
    scores = (
        f"{example['category']}: score {example['score']:.2f}, "
        f"attention in the box {example['attention_on_box']:.2f}"
    )
    draw.text((_WIDTH - _MARGIN, top + _NAME / 2), scores, _BLACK, _font(16), anchor="rm")
    sentence = " ".join(words) + (" ..." if len(words) < len(example["words"]) else "")
    font = _fitted(sentence, 17, _WIDTH - 2 * _MARGIN)
    middle = top + _NAME + _SENTENCE / 2 - 4
    draw.text((_MARGIN, middle), sentence or "(no words)", _GREY, font, anchor="lm")

    image = Image.open(io.BytesIO(base64.b64decode(example["jpeg"]))).convert("RGB")
    image = image.resize((_CELL, _CELL), Image.Resampling.LANCZOS)
    box = example["box"]
    _draw_cell(picture, (_MARGIN, top + _HEADING), _boxed(image, box), example["category"], _GREY)
    pairs = zip(words, example["attention"][:MOST_WORDS], strict=True)
    for step, (word, attention) in enumerate(pairs):
        line, column = divmod(1 + step, _COLUMNS)
        left = _MARGIN + column * (_CELL + _GAP)
        upper = top + _HEADING + line * (_CELL + _WORD)
        _draw_cell(picture, (left, upper), _boxed(lit(image, attention), box), word, _BLACK)
        if step == example["word"]:
            frame = (left - 4, upper - 4, left + _CELL + 3, upper + _CELL + 3)
            draw.rectangle(frame, outline=_MARK, width=4)


def _boxed(image: Image.Image, box: Sequence[float]) -> Image.Image:
    """An image with the box of the object; of a white line around a black one, one is seen."""
    boxed = image.copy()
    draw = ImageDraw.Draw(boxed)
    x, y, width, height = (_CELL * part for part in box)
    left, upper = max(x, 0), max(y, 0)
    right, lower = min(x + width, _CELL) - 1, min(y + height, _CELL) - 1
    for inset, colour in enumerate((_WHITE, _BLACK, _WHITE)):
        corners = (left + inset, upper + inset, right - inset, lower - inset)
        if corners[0] <= corners[2] and corners[1] <= corners[3]:  # else the box is too small
            draw.rectangle(corners, outline=colour)
    return boxed


def _draw_cell(
    picture: Image.Image,
    place: tuple[int, int],
    image: Image.Image,
    below: str,
    ink: tuple[int, int, int],
) -> None:
    """An image, and a word below it."""
    picture.paste(image, place)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((*place, place[0] + _CELL - 1, place[1] + _CELL - 1), outline=_GREY)
    middle = (place[0] + _CELL / 2, place[1] + _CELL + _WORD / 2 - 1)
    draw.text(middle, below, ink, _fitted(below, 17, _CELL + _GAP), anchor="mm")


def _fitted(text: str, size: int, width: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The font of a size, or of a smaller one in which the text is no wider than there is room."""
    sizes = (each for each in range(size, 8, -1) if _font(each).getlength(text) < width)
    return _font(next(sizes, 8))


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
