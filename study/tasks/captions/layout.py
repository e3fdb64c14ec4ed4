"""The official layouts of MSCOCO, of 2014 and of 2017, and how to get them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple, NoReturn

from study.errors import RequestError
from study.tasks.sources.data_set import DataSet
from study.tasks.sources.directory import listed

TITLE = "MSCOCO"
YEARS = (2014, 2017)
"""Of the layouts; the first is the paper's (section 5)."""

PARTS = ("train", "val")
CATEGORY_WORDS = "category_words.txt"

ACCEPTED = (
    "annotations/captions_*.json, annotations/instances_*.json and the folders train2014 and "
    "val2014, or the same of 2017, as the official zip files unpack in DIR"
)

_ANNOTATIONS = re.compile(r"annotations/(captions|instances)_(train|val)(2014|2017)\.json")
_IMAGE = re.compile(r"(train|val)(2014|2017)/[^/]+\.(jpg|jpeg|png)", re.IGNORECASE)


class Layout(NamedTuple):
    """Where a data set lies.

    Attributes:
        folder: that holds `annotations` and the folders of images.
        year: of the layout, one of `YEARS`.
        both: whether the other year's is there, too.
    """

    folder: Path
    year: int
    both: bool = False

    def captions(self, part: str) -> Path:
        """The file of captions of a part, one of `PARTS`."""
        return self.folder / "annotations" / f"captions_{part}{self.year}.json"

    def instances(self, part: str) -> Path:
        """The file of boxes of a part."""
        return self.folder / "annotations" / f"instances_{part}{self.year}.json"

    def images(self, part: str) -> Path:
        """The folder of the images of a part."""
        return self.folder / f"{part}{self.year}"

    def missing(self) -> list[str]:
        """What is not there, as names in `folder`.

        Raises:
            OSError: the folder cannot be read.
        """
        files = [file(part) for part in PARTS for file in (self.captions, self.instances)]
        lacking = [path for path in files if not path.is_file()]
        lacking += [self.images(part) for part in PARTS if not self.images(part).is_dir()]
        return [str(path.relative_to(self.folder)) for path in lacking]


def find(folder: Path) -> Layout:
    """The layout in a folder; of two whole ones that of 2014, as in the paper.

    Raises:
        RequestError: there is no such folder, or neither layout is whole; it names what is missing
            of the one that lacks least.
    """
    layouts = [Layout(folder, year) for year in YEARS]
    with listed(folder, TITLE):
        missing = [layout.missing() for layout in layouts]
    lacks, layout = min(zip(missing, layouts, strict=True), key=lambda pair: len(pair[0]))
    if lacks:
        raise RequestError(
            f"{folder} has no {' and no '.join(lacks)}. {TITLE} is {ACCEPTED}: {_archives()}."
        )
    return layout._replace(both=not any(missing))


def belongs(name: str) -> bool:
    """Whether a file is part of the data set, by its name relative to the directory."""
    return bool(name == CATEGORY_WORDS or _ANNOTATIONS.fullmatch(name) or _IMAGE.fullmatch(name))


def _download(folder: Path, where: str) -> NoReturn:
    raise RequestError(
        f"{TITLE} is not at hand, and its 20 GB are not downloaded for you. Get {_archives()}, "
        "unpack them in one folder DIR, and pass it with --data-dir DIR. The study digits needs "
        "no download."
    )


def _archives() -> str:
    """The official zip files, for people."""
    years = " or ".join(
        f"train{year}.zip, val{year}.zip and annotations_trainval{year}.zip" for year in YEARS
    )
    return f"{years} from https://cocodataset.org/#download"


DATA_SET = DataSet(TITLE, "mscoco", ACCEPTED, belongs, _download)
