"""MSCOCO in its official layouts: how to get it, and the images that can be used.

Annotations and images are looked through once. What they hold is kept in the cache under the
names, sizes and times of all files, so that no later start reads 20 GB again. No message quotes a
caption.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from chapters.captions.data.vocabulary import tokenise
from study.errors import RequestError
from study.tasks.sources.cached import cached, fingerprint
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.directory import listed
from study.tasks.sources.places import Places
from study.tasks.sources.reading import reading

if TYPE_CHECKING:  # which only the first look at the files takes
    import pandas as pd

Box = Sequence[float]
"""(x, y, w, h) in [0, 1], as fractions of the image; x and y are of the upper left corner."""

_YEARS = (2014, 2017)
"""Of the layouts; the first is the paper's (section 5)."""

_ACCEPTED = (
    "annotations/captions_*.json, annotations/instances_*.json and the folders train2014 and "
    "val2014, or the same of 2017, as the official zip files unpack in DIR"
)
_GET = (
    "train2014.zip, val2014.zip and annotations_trainval2014.zip, or those of 2017, from "
    "https://cocodataset.org/#download"
)

_FILE = re.compile(
    r"category_words\.txt|annotations/(captions|instances)_(train|val)(2014|2017)\.json"
    r"|(train|val)(2014|2017)/[^/]+\.(jpg|jpeg|png)",
    re.IGNORECASE,
)

_VERSION = 3
"""Raised with what is kept, or how."""

_KEPT = "captioned.json"


def _download(folder: Path, where: str) -> NoReturn:
    raise RequestError(
        f"MSCOCO is not at hand, and its 20 GB are not downloaded for you. Get {_GET}, unpack "
        "them in one folder DIR, and pass it with --data-dir DIR (data_dir in Python). The study "
        "digits needs no download."
    )


DATA_SET = DataSet(
    "MSCOCO", "mscoco", _ACCEPTED, lambda name: bool(_FILE.fullmatch(name)), _download
)


class Captioned(NamedTuple):
    """An image with its captions.

    Attributes:
        file: its name in the data set's folder, such as "val2017/000000000139.jpg".
        sha256: of the file, in hexadecimal digits.
        captions: at least one; the words of each, joined by blanks.
        objects: (number of a category, box) of the categories that have exactly one box, by
            category.
    """

    file: str
    sha256: str
    captions: Sequence[str]
    objects: Sequence[tuple[int, Box]]


class Coco(NamedTuple):
    """The usable images of MSCOCO.

    Attributes:
        folder: of the data set.
        year: of its layout, 2014 or 2017.
        categories: their names, in the order of their ids.
        parts: "train" and "val" -> images, at least two, in the order of their ids.
        left_out: the files of images that are missing, damaged or without captions.
    """

    folder: Path
    year: int
    categories: Sequence[str]
    parts: Mapping[str, Sequence[Captioned]]
    left_out: Sequence[str]


class _Files(NamedTuple):
    """What is there of a part: two files of annotations, and the folder of the images."""

    captions: Path
    instances: Path
    images: Path


def load_coco(places: Places) -> Coco:
    """MSCOCO as it lies in a directory or at a URL.

    Raises:
        RequestError: it is not at hand or incomplete; a file of annotations is damaged; or too few
            images of a part can be used.
    """

    def load_from(folder: Path) -> Coco:
        year = _year(folder)
        files = _files(folder, year)
        with reading(folder):
            paths = [path for of in files.values() for path in (*of, *sorted(of.images.iterdir()))]
        known = fingerprint(_VERSION, paths)

        def make(partial: Path) -> None:
            (partial / _KEPT).write_text(json.dumps(_look_through(files)), encoding="utf-8")

        def load(kept: Path) -> Coco:
            with reading(kept):
                categories, parts, left_out = json.loads((kept / _KEPT).read_bytes())
                named = {part: [Captioned(*image) for image in parts[part]] for part in parts}
                return Coco(folder, year, categories, named, left_out)

        return cached(places.cache / "prepared" / f"mscoco-{known}", make, load)

    return read_data_set(DATA_SET, places, load_from)


def _files(folder: Path, year: int) -> dict[str, _Files]:
    annotations = folder / "annotations"
    return {
        part: _Files(
            annotations / f"captions_{part}{year}.json",
            annotations / f"instances_{part}{year}.json",
            folder / f"{part}{year}",
        )
        for part in ("train", "val")
    }


def _year(folder: Path) -> int:
    """Of the layout in a folder; of two whole ones 2014, as in the paper.

    Raises:
        RequestError: there is no such folder, or neither layout is whole; it names what is missing
            of the one that lacks least.
    """
    missing = {}
    with listed(folder, DATA_SET.title):
        for year in _YEARS:
            files = itertools.chain(*_files(folder, year).values())
            missing[year] = [path for path in files if not path.exists()]
    year = min(_YEARS, key=lambda year: len(missing[year]))
    if missing[year]:
        lacking = " and no ".join(str(path.relative_to(folder)) for path in missing[year])
        raise RequestError(f"{folder} has no {lacking}. MSCOCO is {_ACCEPTED}: {_GET}.")
    return year


def _look_through(files: Mapping[str, _Files]) -> tuple[object, ...]:
    """The categories, parts and images left out of a `Coco`."""
    from chapters.captions.data.image_files import checksum, in_order  # which take Pillow

    categories: list[str] = []
    parts: dict[str, list[Captioned]] = {}
    left_out = []
    for part, (written, drawn, folder) in files.items():
        mend = f"Unpack it again from annotations_trainval{folder.name[-4:]}.zip."
        with reading(written, mend):
            images, captions = _captions(written)
            paths = [folder / name for name in images["file_name"]]
        with reading(drawn, mend):
            names, objects = _objects(drawn, images)
            if names != (categories or names):
                raise ValueError("its categories are not those of the training images")
        categories, parts[part] = names, []
        seen = in_order(checksum, paths, f"looking through {len(paths):,} images in {folder}")
        for key, path, sha256 in zip(images.index, paths, seen, strict=True):
            file = path.relative_to(folder.parent).as_posix()
            if sha256 and key in captions:
                parts[part].append(Captioned(file, sha256, captions[key], objects.get(key, [])))
            else:
                left_out.append(file)
        if len(parts[part]) < 2:
            raise RequestError(
                f"{folder}: {len(parts[part])} of the {len(paths):,} images that {written.name} "
                f"lists can be used, which is too few. Unpack {folder.name}.zip there again."
            )
    return categories, parts, left_out


def _captions(file: Path) -> tuple[pd.DataFrame, dict[int, list[str]]]:
    """The images by their ids, in order; id of an image -> its captions that have words."""
    import pandas as pd

    content = _without_outlines(file)
    captions = defaultdict(list)
    for caption in content["annotations"]:
        if words := tokenise(caption["caption"]):
            captions[caption["image_id"]].append(" ".join(words))
    return pd.DataFrame(content["images"]).set_index("id").sort_index(), captions


def _objects(
    file: Path, images: pd.DataFrame
) -> tuple[list[str], dict[int, list[tuple[int, Box]]]]:
    """Names of the categories; id of an image -> the boxes of those that have exactly one.

    Of a box counts what is in its image.
    """
    import pandas as pd

    content = _without_outlines(file)
    categories = sorted(content["categories"], key=itemgetter("id"))
    number_of = {category["id"]: number for number, category in enumerate(categories)}
    boxes = pd.DataFrame(content["annotations"], columns=["image_id", "category_id", "bbox"])
    boxes["number"] = boxes["category_id"].map(number_of.__getitem__)
    boxes = boxes[boxes["image_id"].isin(images.index)]
    sizes = images.loc[boxes["image_id"], ["width", "height"]].to_numpy()
    corner, size = np.hsplit(np.reshape(boxes["bbox"].tolist(), (-1, 4)), 2)
    start = np.maximum(corner, 0)
    inside = np.minimum(corner + size, sizes) - start
    boxes["box"] = np.hstack([start / sizes, inside / sizes]).tolist()
    boxes = boxes[(inside > 0).all(axis=1)].drop_duplicates(["image_id", "number"], keep=False)
    boxes = boxes.sort_values(["image_id", "number"])
    objects = defaultdict(list)
    for key, number, box in zip(boxes["image_id"], boxes["number"], boxes["box"], strict=True):
        objects[key].append((number, box))
    return [category["name"] for category in categories], objects


def _without_outlines(path: Path) -> Any:
    """The content of a file, but for outlines, which are most of it and of no use here.

    Of a file like 2014's instances of training images, 370 MB, that takes 10 s and .8 GB of
    memory; pycocotools, which keeps them, 16 s and 2.2 GB.
    """

    def dropped(values: dict[str, Any]) -> dict[str, Any]:
        values.pop("segmentation", None)
        return values

    return json.loads(path.read_bytes(), object_hook=dropped)
