"""The figure of captions: where it is lit, and which word is framed."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from PIL import Image

from analysis.figures.style import VERMILION
from chapters.captions.caption_figure import caption_figure, lit
from chapters.captions.evaluation.caption_examples import Example
from tests.chapters.captions.caption_results import example


def figure(*shown: Example) -> Figure:
    return caption_figure({f"caption {number}": each for number, each in enumerate(shown)})


def test_an_image_is_lit_where_the_attention_is():
    """Of a white image only the light is seen; it is that of the regions, row by row."""
    white = Image.new("RGB", (60, 60), "white")
    attention = np.zeros((3, 3))
    attention[0, 2], attention[2, 0] = 0.8, 0.4
    light = lit(white, attention.ravel().tolist())[:, :, 0] / 255
    regions = light.reshape(3, 20, 3, 20)[:, 10, :, 10]
    assert regions[0, 2] == pytest.approx(1, abs=0.05)
    assert regions[1, 1] < regions[2, 0] < regions[0, 2]
    assert light.min() == pytest.approx(0.3, abs=0.01)  # it is dark, but can still be seen
    assert (lit(white, [1 / 49] * 49) == 255).all()


@pytest.mark.parametrize(
    ("words", "word", "framed"),
    [
        ("a ball on the grass", 0, ["a"]),
        ("a ball on the grass", 3, ["the"]),
        ("a ball", 2, []),  # the caption had ended
        ("", 0, []),
    ],
)
def test_words_are_named_in_order_and_the_one_that_counts_is_framed(words, word, framed):
    (axes,) = figure({**example(words=words), "word": word}).axes
    heading, *texts = axes.texts
    assert heading.get_text().startswith("caption 0 (ball: score 0.20, attention in the box 0.40")
    assert [text.get_text() for text in texts] == ["ball", *words.split()]
    boxes = {text.get_text(): text.get_bbox_patch() for text in texts}
    found = {word: box.get_edgecolor() for word, box in boxes.items() if box}
    assert found == dict.fromkeys(framed, to_rgba(VERMILION))
