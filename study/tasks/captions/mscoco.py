"""Reads MSCOCO: the images that can be used, with their captions and boxes.

Annotations and images are looked through once. What they hold is kept in the cache under the
names, sizes and times of all files, so that no later start reads 20 GB again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from study.errors import RequestError
from study.tasks.captions.annotations import read_part
from study.tasks.captions.image_files import look_through
from study.tasks.captions.layout import DATA_SET, PARTS, Layout, find
from study.tasks.sources.cached import cached, fingerprint
from study.tasks.sources.data_set import read_data_set
from study.tasks.sources.places import Places
from study.tasks.sources.reading import reading

_PREPARED_VERSION = 2
"""Raised with what is read, or how."""

_FILE = "captioned.json"

DAMAGED = "images that are missing or damaged"
BARE = "images without captions"


class Captioned(NamedTuple):
    """An image with its captions.

    Attributes:
        file: its name in the data set's folder, such as "val2017/000000000139.jpg".
        sha256: of the file, in hexadecimal digits.
        captions: at least one; the words of each, joined by blanks.
        objects: (number of a category, box) of the categories that have exactly one box, by
            category. A box is (x, y, w, h) in [0, 1], as fractions of the image.
    """

    file: str
    sha256: str
    captions: tuple[str, ...]
    objects: tuple[tuple[int, tuple[float, float, float, float]], ...]


@dataclass(frozen=True, eq=False)
class Coco:
    """The usable images of MSCOCO.

    Attributes:
        layout: where they are.
        categories: their names, in the order of their ids.
        parts: "train" and "val" -> images, at least one, in the order of their ids.
        left_out: why images are left out -> their files.
    """

    layout: Layout
    categories: tuple[str, ...]
    parts: Mapping[str, tuple[Captioned, ...]]
    left_out: Mapping[str, Sequence[str]]


def load_coco(places: Places) -> Coco:
    """MSCOCO as it lies in a directory or at a URL.

    Raises:
        RequestError: it is not at hand or incomplete; a file of annotations is damaged or holds
            what it cannot; or no image of a part can be used.
    """
    cache = places.cache

    def load_from(folder: Path) -> Coco:
        layout = find(folder)
        files = [file(part) for part in PARTS for file in (layout.captions, layout.instances)]
        with reading(folder):
            images = [sorted(layout.images(part).iterdir()) for part in PARTS]
        known = fingerprint(str(_PREPARED_VERSION), [*files, *images[0], *images[1]])
        kept = cache / "prepared" / f"mscoco-{known}"
        return cached(
            kept,
            lambda partial: _save(_read(layout), partial),
            lambda kept: _load(kept, layout),
        )

    return read_data_set(DATA_SET, places, load_from)


def _read(layout: Layout) -> Coco:
    """Reads the annotations and looks through all images."""
    read = {part: read_part(layout, part) for part in PARTS}
    train, val = (read[part].categories for part in PARTS)
    if train != val:
        raise RequestError(
            f"{layout.instances('val')} has other categories than {layout.instances('train')}. "
            "Pass the official files."
        )
    left_out: dict[str, list[str]] = {DAMAGED: [], BARE: []}
    parts = {}
    for part in PARTS:
        annotated = read[part].images
        seen = look_through(layout.folder, [image.file for image in annotated])
        usable = []
        for image, sha256 in zip(annotated, seen, strict=True):
            if sha256 is None:
                left_out[DAMAGED].append(image.file)
            elif not image.captions:
                left_out[BARE].append(image.file)
            else:
                usable.append(Captioned(image.file, sha256, image.captions, image.objects))
        if not usable:
            raise RequestError(
                f"{layout.images(part)}: none of the {len(annotated):,} images that "
                f"{layout.captions(part).name} lists can be used. Unpack {part}{layout.year}.zip "
                f"in {layout.folder} again."
            )
        parts[part] = tuple(usable)
    return Coco(layout, train, parts, left_out)


# The prepared form


def _save(coco: Coco, folder: Path) -> None:
    values = [coco.categories, coco.parts, coco.left_out]
    (folder / _FILE).write_text(json.dumps(values), encoding="utf-8")


def _load(folder: Path, layout: Layout) -> Coco:
    with reading(folder / _FILE):
        categories, parts, left_out = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        return Coco(
            layout,
            tuple(categories),
            {
                part: tuple(_captioned(*image) for image in images)
                for part, images in parts.items()
            },
            left_out,
        )


def _captioned(file: str, sha256: str, captions: list[str], objects: list) -> Captioned:
    boxes = tuple((category, tuple(box)) for category, box in objects)
    return Captioned(file, sha256, tuple(captions), boxes)
