"""Reads the annotations of MSCOCO: images, their captions and the boxes of their categories.

No message quotes a caption.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from study.tasks.captions.layout import Layout
from study.tasks.captions.vocabulary import tokenise
from study.tasks.sources.reading import reading


class Annotated(NamedTuple):
    """An image as it is annotated.

    Attributes:
        file: its name in the data set's folder, such as "val2017/000000000139.jpg".
        captions: the words of each caption that has some, joined by blanks.
        objects: the categories that have exactly one box, in the order of the categories; each
            with its box (x, y, w, h) in [0, 1], as fractions of the image.
    """

    file: str
    captions: tuple[str, ...]
    objects: tuple[tuple[int, tuple[float, float, float, float]], ...]


class Part(NamedTuple):
    """The annotations of the training or the validation images.

    Attributes:
        categories: their names, in the order of their ids.
        images: in the order of their ids.
    """

    categories: tuple[str, ...]
    images: tuple[Annotated, ...]


def read_part(layout: Layout, part: str) -> Part:
    """Reads the annotations of a part, but for what is of images that it does not list.

    Args:
        part: one of `study.tasks.captions.layout.PARTS`.

    Raises:
        RequestError: a file cannot be read, is no JSON, or lacks something.
    """
    again = f"Unpack it again from annotations_trainval{layout.year}.zip."
    path = layout.captions(part)
    with reading(path, again):
        content = _parsed(path)
        images = {image["id"]: image for image in content["images"]}
        captions = _captions(content["annotations"], images)
    path = layout.instances(part)
    with reading(path, again):
        content = _parsed(path)
        categories = {category["id"]: category["name"] for category in content["categories"]}
        boxes = _boxes(content["annotations"], images, sorted(categories))
        return Part(
            tuple(categories[category] for category in sorted(categories)),
            tuple(
                Annotated(
                    f"{layout.images(part).name}/{_plain(images[key]['file_name'])}",
                    tuple(captions[key]),
                    _single(boxes[key]),
                )
                for key in sorted(images)
            ),
        )


def _parsed(path: Path) -> dict[str, Any]:
    """The content of a file, but for outlines, which are most of it and of no use here."""
    return dict(json.loads(path.read_bytes(), object_hook=_without_outline))


def _without_outline(values: dict[str, Any]) -> dict[str, Any]:
    values.pop("segmentation", None)
    return values


def _plain(name: str) -> str:
    """The name of a file; it leads nowhere else.

    Raises:
        ValueError: it does.
    """
    if Path(name).name != name:
        raise ValueError(f"the file_name {name!r} must be the plain name of a file")
    return name


def _captions(entries: list[dict[str, Any]], images: Mapping[int, Any]) -> dict[int, list[str]]:
    """Id of an image -> its captions, in the order of the file."""
    captions: dict[int, list[str]] = {key: [] for key in images}
    for entry in entries:
        words = tokenise(entry["caption"])
        if words and entry["image_id"] in images:
            captions[entry["image_id"]].append(" ".join(words))
    return captions


_Box = tuple[float, float, float, float]


def _boxes(
    entries: list[dict[str, Any]], images: Mapping[int, Mapping[str, Any]], categories: list[int]
) -> dict[int, list[tuple[int, _Box]]]:
    """Id of an image -> number of a category and box, for each box."""
    number_of = {category: number for number, category in enumerate(categories)}
    boxes: dict[int, list[tuple[int, _Box]]] = {key: [] for key in images}
    for entry in entries:
        number = number_of[entry["category_id"]]
        image = images.get(entry["image_id"])
        box = image and _inside(entry["bbox"], image["width"], image["height"])
        if box:
            boxes[entry["image_id"]].append((number, box))
    return boxes


def _inside(bbox: list[float], width: int, height: int) -> _Box | None:
    """What of a box is in its image, as fractions of the image; None: nothing."""
    x, y, w, h = bbox
    left, top, right, bottom = max(x, 0), max(y, 0), min(x + w, width), min(y + h, height)
    if left < right and top < bottom:
        return left / width, top / height, (right - left) / width, (bottom - top) / height
    return None


def _single(boxes: list[tuple[int, _Box]]) -> tuple[tuple[int, _Box], ...]:
    """The boxes of the categories that have exactly one, by category."""
    counts = Counter(category for category, _ in boxes)
    return tuple(sorted((c, box) for c, box in boxes if counts[c] == 1))
