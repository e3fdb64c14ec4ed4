"""The figure of captions: where it is lit, which word is framed, and how much is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from analysis.figures.style import VERMILION
from chapters.captions.caption_figure import COLUMNS, MOST_WORDS, caption_figure, lit
from chapters.captions.evaluation.caption_examples import Example
from tests.chapters.captions.caption_results import example


def figure(*shown: Example) -> Figure:
    return caption_figure({f"caption {number}": each for number, each in enumerate(shown)})


def test_an_image_is_lit_where_the_attention_is() -> None:
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
def test_words_are_named_in_order_and_the_one_that_counts_is_framed(
    words: str, word: int, framed: list[str]
) -> None:
    (axes,) = figure({**example(words=words), "word": word}).axes
    heading, *texts = axes.texts
    assert heading.get_text().startswith("caption 0 (ball: score 0.20, attention in the box 0.40")
    assert [text.get_text() for text in texts] == ["ball", *words.split()]
    boxes = {text.get_text(): text.get_bbox_patch() for text in texts}
    found = {word: box.get_edgecolor() for word, box in boxes.items() if box}
    assert found == dict.fromkeys(framed, to_rgba(VERMILION))


def test_every_image_has_the_box() -> None:
    """At its place in the image."""
    (axes,) = figure({**example(words="a ball"), "box": [0.5, 0.25, 0.3, 0.2]}).axes
    boxes = [each for each in axes.patches if isinstance(each, Rectangle)]
    assert len(axes.images) == 3
    for image in axes.images:
        left, _, _, upper = image.get_extent()
        place = pytest.approx((left + 0.5, upper + 0.25, 0.3, 0.2))
        assert any((*box.get_xy(), box.get_width(), box.get_height()) == place for box in boxes)


def test_captions_of_any_length_fit() -> None:
    """A line has six images, the first without a word; of a long caption the rest is left out.

    The report shows figures 832 pixels wide, so words stay as large as they are drawn.
    """
    counts = (0, COLUMNS - 1, COLUMNS, MOST_WORDS, 2 * MOST_WORDS)
    drawn = [figure(example(words=" ".join(["grass"] * n))) for n in counts]
    shown = [len(each.axes[0].images) for each in drawn]
    assert shown == [1, COLUMNS, COLUMNS + 1, 1 + MOST_WORDS, 1 + MOST_WORDS]
    assert {each.bbox.width for each in drawn} == {832}
    none, line, more, most, cut = (each.bbox.height for each in drawn)
    assert none == line < more < most == cut
    assert figure(example(), example("b.jpg")).bbox.height == 2 * figure(example()).bbox.height
