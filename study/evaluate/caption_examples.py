"""Examples of captions for pictures: what was written, and the attention at each word."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from study.cell.seeds import stream_seed
from study.tasks.captions.captions import Captions

if TYPE_CHECKING:
    from study.evaluate.caption_image import Example

COUNT = 4


def chosen(split: Captions) -> list[int]:
    """The numbers of up to `COUNT` objects of different images, the same for every model.

    They are the first by a hash of image and category.
    """

    def place(number: int) -> int:
        one = split.objects[number]
        return stream_seed("examples", split.file_names[one.image], one.category)

    of_image: dict[int, int] = {}
    for number in sorted(range(len(split.objects)), key=place):
        of_image.setdefault(split.objects[number].image, number)
    return list(of_image.values())[:COUNT]


def example(
    split: Captions,
    number: int,
    words: Sequence[str],
    attention: Tensor,
    *,
    t: int,
    a_z: float,
    s_y: float,
) -> Example:
    """An object with the caption of its image, of Python's own types as JSON takes them.

    Args:
        split: of the object.
        number: of the object.
        words: of the caption.
        attention: (T, m) at each step, T at least the number of words.
        t: the word at which the object was most expected, 0 if there is no word.
        a_z: attention in its box at t.
        s_y: probability of its words at t.
    """
    one = split.objects[number]
    return {
        "image": split.file_names[one.image],
        "jpeg": base64.b64encode(split.thumbnail(one.image)).decode(),
        "category": one.category,
        "box": list(one.box),
        "words": list(words),
        "attention": [[round(a, 4) for a in each] for each in attention[: len(words)].tolist()],
        "word": int(t),
        "score": float(s_y),
        "attention_on_box": float(a_z),
    }
