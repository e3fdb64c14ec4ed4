"""Examples of captions for pictures: what was written, and the attention at each word."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from study.cell.seeds import stream_seed

if TYPE_CHECKING:  # the report, which reads examples, needs no PyTorch
    from torch import Tensor

    from chapters.captions.data.captions import Captions
    from chapters.captions.evaluation.objects import Expected

COUNT = 4


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


def chosen(split: Captions) -> list[int]:
    """The numbers of up to `COUNT` objects of different images, the same for every model.

    They are the first by a hash of image and category.
    """

    def place(number: int) -> int:
        one = split.objects[number]
        return stream_seed("examples", split.captioned[one.image].file, one.category)

    of_image: dict[int, int] = {}
    for number in sorted(range(len(split.objects)), key=place):
        of_image.setdefault(split.objects[number].image, number)
    return list(of_image.values())[:COUNT]


def example(
    split: Captions,
    number: int,
    captions: Sequence[str],
    attention: Mapping[int, Tensor],
    expected: Expected,
) -> Example:
    """An object with the caption of its image, of Python's own types as JSON takes them.

    Args:
        split: of the object.
        number: of the object.
        captions: of each image, the words joined by blanks.
        attention: image -> (T, m) at each step, T at least the number of words.
        expected: all objects of the split.
    """
    one = split.objects[number]
    words = captions[one.image].split()
    looks = attention[one.image][: len(words)].tolist()
    return {
        "image": split.captioned[one.image].file,
        "jpeg": base64.b64encode(split.thumbnail(one.image)).decode(),
        "category": one.category,
        "box": list(one.box),
        "words": words,
        "attention": [[round(a, 4) for a in each] for each in looks],
        "word": int(expected.t[number]),
        "score": float(expected.s_y[number]),
        "attention_on_box": float(expected.a_z[number]),
    }
