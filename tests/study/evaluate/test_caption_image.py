"""The picture of captions: where it is lit, which word is framed, and that every caption fits."""

from __future__ import annotations

import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from study.evaluate.caption_image import (
    _CELL,
    _GAP,
    _MARGIN,
    Example,
    captions_png,
    lit,
)
from tests.made_up.captions import example

VERMILION = (213, 94, 0)


def pixels(*shown: Example) -> NDArray[np.uint8]:
    """(height, width, 3) of the picture."""
    named = {f"caption {number}": each for number, each in enumerate(shown)}
    image = Image.open(io.BytesIO(captions_png(named)))
    assert image.format == "PNG"
    return np.asarray(image.convert("RGB"))


def test_an_image_is_lit_where_the_attention_is() -> None:
    """Of a white image only the light is seen; it is that of the regions, row by row."""
    white = Image.new("RGB", (60, 60), "white")
    attention = np.zeros((3, 3))
    attention[0, 2], attention[2, 0] = 0.8, 0.4
    light = np.asarray(lit(white, attention.ravel()))[:, :, 0] / 255
    regions = light.reshape(3, 20, 3, 20)[:, 10, :, 10]
    assert regions[0, 2] == pytest.approx(1, abs=0.05)
    assert regions[1, 1] < regions[2, 0] < regions[0, 2]
    assert light.min() == pytest.approx(0.3, abs=0.01)  # it is dark, but can still be seen
    assert (np.asarray(lit(white, np.full(49, 1 / 49))) == 255).all()


@pytest.mark.parametrize(
    ("words", "word", "framed"),
    [
        ("a ball on the grass", 0, [1]),
        ("a ball on the grass", 3, [4]),
        ("a ball", 2, []),
        ("", 0, []),
    ],
)
def test_the_word_that_counts_is_framed(words: str, word: int, framed: list[int]) -> None:
    """After the image by itself; of none where the caption had ended."""
    image = pixels({**example(words=words), "word": word})
    columns = np.flatnonzero((image == VERMILION).all(axis=2).any(axis=0))
    assert np.unique((columns - _MARGIN + _GAP // 2) // (_CELL + _GAP)).tolist() == framed


def test_captions_of_any_length_fit() -> None:
    """Six images a line, of which the first has no word; after fifteen words the rest is left out.

    The report shows pictures 832 pixels wide, so words stay as large as they are drawn.
    """
    shown = [pixels(example(words=" ".join(["grass"] * n))) for n in (0, 5, 6, 11, 12, 15, 40)]
    assert {image.shape[1] for image in shown} <= set(range(851))
    none, five, six, eleven, twelve, fifteen, forty = (len(image) for image in shown)
    assert none == five < six == eleven < twelve == fifteen == forty
    one, two = pixels(example()), pixels(example(), example("b.jpg"))
    assert len(one) < len(two) < 2 * len(one)


@pytest.mark.parametrize("box", [[0, 0, 1, 1], [0.9, 0.9, 0.2, 0.2], [-0.1, 0.5, 0.3, 3]])
def test_any_box_is_drawn(box: list[float]) -> None:
    """One too small to be seen, too; on every ground, as its line is white around black."""
    without, image = (pixels({**example(), "box": each}) for each in ([0.5, 0.5, 1e-4, 1e-4], box))
    drawn = {tuple(each) for each in image[(image != without).any(axis=2)].tolist()}
    assert drawn >= {(255, 255, 255), (0, 0, 0)}
