"""Reads the annotations of MSCOCO: images, their captions and the boxes of their categories.

No message quotes a caption; messages name the file and the id.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from study.errors import RequestError
from study.tasks.captions.layout import TITLE, Layout
from study.tasks.captions.tally import CUT, OUTSIDE, STRAY_BOXES, STRAY_CAPTIONS, WORDLESS, Tally
from study.tasks.captions.vocabulary import tokenise
from study.tasks.sources.json_values import expect, whole
from study.tasks.sources.reading import why

_IMAGE: Mapping[str, type] = {"id": int, "file_name": str, "width": int, "height": int}
_CAPTION: Mapping[str, type] = {"id": int, "image_id": int, "caption": str}
_BOX: Mapping[str, type] = {"id": int, "image_id": int, "category_id": int, "bbox": list}
_CATEGORY: Mapping[str, type] = {"id": int, "name": str}

_ROUNDING = 0.02
"""Pixels by which a box may seem to leave its image: corner and size are rounded to hundredths."""


class Annotated(NamedTuple):
    """An image as it is annotated.

    Attributes:
        id: of the image.
        file: its name in the data set's folder, such as "val2017/000000000139.jpg".
        size: (width, height) in pixels, as annotated.
        captions: the words of each caption, joined by blanks.
        objects: the categories that have exactly one box, in the order of the categories; each
            with its box (x, y, w, h) in [0, 1], as fractions of the image.
    """

    id: int
    file: str
    size: tuple[int, int]
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


def read_part(layout: Layout, part: str, tally: Tally) -> Part:
    """Reads the annotations of a part.

    Args:
        part: one of `study.tasks.captions.layout.PARTS`.
        tally: counts what is left out or mended.

    Raises:
        RequestError: a file cannot be read, is no JSON, or holds what that file cannot.
    """
    path = layout.captions(part)
    content = _read(path, layout)
    images = _by_id(path, _entries(path, content, "images", _IMAGE), "image")
    for image in images.values():
        _check_image(path, image)
    captions = _captions(_entries(path, content, "annotations", _CAPTION), images, tally)

    path = layout.instances(part)
    content = _read(path, layout)
    categories = _by_id(path, _entries(path, content, "categories", _CATEGORY), "category")
    number_of = {category: number for number, category in enumerate(sorted(categories))}
    boxes = _boxes(path, _entries(path, content, "annotations", _BOX), images, number_of, tally)
    return Part(
        tuple(categories[category]["name"] for category in number_of),
        tuple(
            Annotated(
                key,
                f"{layout.images(part).name}/{images[key]['file_name']}",
                (images[key]["width"], images[key]["height"]),
                tuple(captions[key]),
                _single(boxes[key]),
            )
            for key in sorted(images)
        ),
    )


# The files


def _read(path: Path, layout: Layout) -> dict[str, Any]:
    """Reads and parses a file, but for outlines, which are most of it and of no use here.

    Raises:
        RequestError: it cannot be read, is no JSON or no object.
    """
    again = f"Unpack it again from annotations_trainval{layout.year}.zip."
    try:
        content = json.loads(path.read_bytes(), object_hook=_without_outline)
    except OSError as error:
        raise RequestError(f"{path} cannot be read ({why(error)}).") from error
    except json.JSONDecodeError as error:
        raise RequestError(
            f"{path} is no JSON, or not all of it: {error.msg}, line {error.lineno}, column "
            f"{error.colno:,}. {again}"
        ) from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{path} is not UTF-8: byte {error.start:,}. {again}") from error
    except (ValueError, RecursionError) as error:
        raise RequestError(
            f"{path} holds numbers or lists that no file of {TITLE} holds. {again}"
        ) from error
    try:
        expect(content, dict, "the content")
    except RequestError as error:
        raise RequestError(f"{path}: {error} {again}") from error
    return content


def _without_outline(values: dict[str, Any]) -> dict[str, Any]:
    values.pop("segmentation", None)
    return values


def _entries(
    path: Path, content: Mapping[str, Any], key: str, fields: Mapping[str, type]
) -> list[dict[str, Any]]:
    """The entries of a list, each an object that has these fields.

    Raises:
        RequestError: the list or a field is missing, or of another type.
    """
    place = ""
    try:
        if key not in content:
            raise RequestError(f"{key!r} is missing: it is none of {TITLE}'s files.")
        expect(content[key], list, repr(key))
        for number, entry in enumerate(content[key], 1):
            place = f", entry {number:,} of {key!r}"
            expect(entry, dict, "it")
            for field, kind in fields.items():
                if field not in entry:
                    raise RequestError(f"{field!r} is missing.")
                if kind is int:
                    entry[field] = whole(entry[field])
                expect(entry[field], kind, repr(field))
                if field == "id":
                    place += f", id {entry['id']}"
    except RequestError as error:
        raise RequestError(f"{path}{place}: {error} Pass the official file.") from error
    return content[key]


def _by_id(path: Path, entries: list[dict[str, Any]], what: str) -> dict[int, dict[str, Any]]:
    by_id = {entry["id"]: entry for entry in entries}
    if len(by_id) < len(entries):
        twice, _ = Counter(entry["id"] for entry in entries).most_common(1)[0]
        raise RequestError(f"{path}, {what} {twice} is there more than once. Leave one.")
    return by_id


# Images, captions and boxes


def _check_image(path: Path, image: Mapping[str, Any]) -> None:
    where = f"{path}, image {image['id']}"
    name, width, height = image["file_name"], image["width"], image["height"]
    if not name or Path(name).name != name or name.startswith(".") or not name.isprintable():
        raise RequestError(
            f"{where}: its file_name must be the plain name of a file. Pass the official file."
        )
    if width < 1 or height < 1:
        raise RequestError(
            f"{where}: width and height must be > 0, got {width} and {height}. Pass the official "
            "file."
        )


def _captions(
    entries: list[dict[str, Any]], images: Mapping[int, Any], tally: Tally
) -> dict[int, list[str]]:
    """Id of an image -> its captions, in the order of the file."""
    captions: dict[int, list[str]] = {key: [] for key in images}
    for entry in entries:
        words = tokenise(entry["caption"])
        if entry["image_id"] not in images:
            tally.add(STRAY_CAPTIONS, f"caption {entry['id']}")
        elif not words:
            tally.add(WORDLESS, f"caption {entry['id']}")
        else:
            captions[entry["image_id"]].append(" ".join(words))
    return captions


_Box = tuple[float, float, float, float]


def _boxes(
    path: Path,
    entries: list[dict[str, Any]],
    images: Mapping[int, Mapping[str, Any]],
    number_of: Mapping[int, int],
    tally: Tally,
) -> dict[int, list[tuple[int, _Box]]]:
    """Id of an image -> number of a category and box, for each box."""
    boxes: dict[int, list[tuple[int, _Box]]] = {key: [] for key in images}
    for entry in entries:
        if entry["category_id"] not in number_of:
            raise RequestError(
                f"{path}, box {entry['id']}: no category has the id {entry['category_id']}. Pass "
                "the official file."
            )
        if entry["image_id"] not in images:
            tally.add(STRAY_BOXES, f"box {entry['id']}")
            continue
        box = _inside(path, entry, images[entry["image_id"]], tally)
        if box is not None:
            boxes[entry["image_id"]].append((number_of[entry["category_id"]], box))
    return boxes


def _inside(
    path: Path, entry: Mapping[str, Any], image: Mapping[str, Any], tally: Tally
) -> _Box | None:
    """What of a box is in its image, as fractions of the image; None: nothing.

    Raises:
        RequestError: it is not four finite numbers.
    """
    bbox = entry["bbox"]
    if len(bbox) != 4 or not all(type(n) in (int, float) and math.isfinite(n) for n in bbox):
        raise RequestError(
            f"{path}, box {entry['id']}: its bbox must be four numbers, x, y, width and height. "
            "Pass the official file."
        )
    x, y, w, h = bbox
    width, height = image["width"], image["height"]
    left, top, right, bottom = max(x, 0), max(y, 0), min(x + w, width), min(y + h, height)
    if left >= right or top >= bottom:
        tally.add(OUTSIDE, f"box {entry['id']}")
        return None
    if max(-x, -y, x + w - width, y + h - height) > _ROUNDING:
        tally.add(CUT, f"box {entry['id']}")
    return left / width, top / height, (right - left) / width, (bottom - top) / height


def _single(boxes: list[tuple[int, _Box]]) -> tuple[tuple[int, _Box], ...]:
    """The boxes of the categories that have exactly one, by category."""
    counts = Counter(category for category, _ in boxes)
    return tuple(sorted((c, box) for c, box in boxes if counts[c] == 1))
