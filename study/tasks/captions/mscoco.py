"""Reads MSCOCO: the images that can be used, with their captions and boxes.

Annotations and images are looked through once. What they hold is kept in the cache under the
names, sizes and times of all files, so that no later start reads 20 GB again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from study.errors import RequestError
from study.tasks.captions.annotations import Annotated, read_part
from study.tasks.captions.image_files import Seen, look_through
from study.tasks.captions.layout import DATA_SET, PARTS, Layout, find
from study.tasks.captions.tally import BARE_IMAGES, LEFT_OUT, OTHER_SIZE, Tally
from study.tasks.sources.cache import CACHE_VARIABLE, cache_root, locked, whole
from study.tasks.sources.fetched import read_data_set
from study.tasks.sources.places import Places
from study.tasks.sources.reading import why

_PREPARED_VERSION = 1
"""Raised with what is read, or how."""

_FILE = "captioned.json"


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
        tally: of what was left out or mended.
    """

    layout: Layout
    categories: tuple[str, ...]
    parts: Mapping[str, tuple[Captioned, ...]]
    tally: Tally


def load_coco(places: Places) -> Coco:
    """MSCOCO as it lies in a directory or at a URL.

    Raises:
        RequestError: it is not at hand or incomplete; a file of annotations is damaged or holds
            what it cannot; or no image of a part can be used.
    """
    cache = cache_root(places.cache_dir)

    def load_from(folder: Path) -> Coco:
        layout = find(folder)
        kept = cache / "prepared" / f"mscoco-{_fingerprint(layout)}"
        return _prepared(kept, layout)

    return read_data_set(DATA_SET, places, load_from)


def _read(layout: Layout) -> Coco:
    """Reads the annotations and looks through all images."""
    tally = Tally()
    read = {part: read_part(layout, part, tally) for part in PARTS}
    train, val = (read[part].categories for part in PARTS)
    if train != val:
        raise RequestError(
            f"{layout.instances('val')} has other categories than {layout.instances('train')}. "
            "Pass the official files."
        )
    annotated = [image for part in PARTS for image in read[part].images]
    seen = look_through(layout.folder, [image.file for image in annotated])
    found = dict(zip((image.file for image in annotated), seen, strict=True))
    parts = {}
    for part in PARTS:
        before = tally.counts.copy()
        parts[part] = tuple(
            Captioned(image.file, usable.sha256, image.captions, image.objects)
            for image in read[part].images
            if (usable := _usable(image, found[image.file], tally)) is not None
        )
        if not parts[part]:
            counts = tally.counts - before
            raise RequestError(
                f"{layout.images(part)}: none of the {len(read[part].images):,} images that "
                f"{layout.captions(part).name} lists can be used ({_counted(counts)}). Unpack "
                f"{part}{layout.year}.zip in {layout.folder} again."
            )
    return Coco(layout, train, parts, tally)


def _usable(image: Annotated, seen: Seen | str, tally: Tally) -> Seen | None:
    """What was seen of an image; None if it must be left out."""
    if isinstance(seen, str):
        tally.add(seen, image.file)
        return None
    if not image.captions:
        tally.add(BARE_IMAGES, image.file)
        return None
    if seen.size != image.size:
        tally.add(OTHER_SIZE, image.file)
    return seen


def _counted(counts: Counter[str]) -> str:
    parts = [f"{sort}: {counts[sort]:,}" for sort in LEFT_OUT if counts[sort]]
    return ", ".join(parts) or "it lists none"


# The prepared form


def _fingerprint(layout: Layout) -> str:
    """16 hexadecimal digits that change with the name, size or time of any file."""
    digest = hashlib.sha256(f"{_PREPARED_VERSION} {layout.folder.absolute()}".encode())
    try:
        files = [file(part) for part in PARTS for file in (layout.captions, layout.instances)]
        known = [(path.name, path.stat()) for path in files]
        for part in PARTS:
            with os.scandir(layout.images(part)) as entries:
                names = sorted(entries, key=lambda entry: entry.name)
                known += [(entry.name, entry.stat()) for entry in names if entry.is_file()]
    except OSError as error:
        raise RequestError(f"{layout.folder} cannot be read ({why(error)}).") from error
    for name, status in known:
        line = f"\n{name}\t{status.st_size}\t{status.st_mtime_ns}"
        digest.update(line.encode(errors="surrogateescape"))
    return digest.hexdigest()[:16]


def _prepared(folder: Path, layout: Layout) -> Coco:
    """The prepared form in `folder`; if it is missing or damaged, made and kept there.

    If several processes of a machine ask at once, one makes it and the others wait. A cache that
    cannot be written costs a warning and time.
    """
    coco = _kept(folder, layout)
    if coco is not None:
        return coco
    with locked(folder):
        coco = _kept(folder, layout)  # another process may have made it meanwhile
        if coco is not None:
            return coco
        coco = _read(layout)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            with whole(folder) as partial:
                values = [coco.categories, coco.parts, coco.tally.counts, coco.tally.first]
                (partial / _FILE).write_text(json.dumps(values), encoding="utf-8")
        except OSError as error:
            warnings.warn(
                f"cannot keep in {folder} what is in {layout.folder} ({why(error)}); every run "
                f"will look through it again. Set {CACHE_VARIABLE} to a directory that can be "
                "written.",
                stacklevel=2,
            )
        return coco


def _kept(folder: Path, layout: Layout) -> Coco | None:
    """The prepared form; None if it is missing or damaged."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        text = (folder / _FILE).read_text(encoding="utf-8")
        categories, parts, counts, first = json.loads(text)
        tally = Tally()
        tally.counts.update(counts)
        tally.first.update(first)
        return Coco(
            layout,
            tuple(categories),
            {
                part: tuple(_captioned(*image) for image in images)
                for part, images in parts.items()
            },
            tally,
        )
    return None


def _captioned(file: str, sha256: str, captions: list[str], objects: list) -> Captioned:
    boxes = tuple((category, tuple(box)) for category, box in objects)
    return Captioned(file, sha256, tuple(captions), boxes)
