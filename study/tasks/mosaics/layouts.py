"""The layouts in which labelled images lie in a directory: a pattern of names and a reader each.

class folders  DIR/<class>/*.png, or DIR/train/<class>/*.png and DIR/test/<class>/*.png
Parquet        train*.parquet and test*.parquet, with a column of images and one of labels
official       the files of CIFAR-10 or CIFAR-100, which torchvision checks and reads
ubyte          the four files of MNIST, FashionMNIST or KMNIST
"""

from __future__ import annotations

import gzip
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from study.errors import RequestError, as_seen
from study.tasks.mosaics.classes import class_name
from study.tasks.mosaics.decoding import MEND, Content
from study.tasks.sources.data_set import DataSet
from study.tasks.sources.directory import NAMED, of_no_split, one_folder, split_named
from study.tasks.sources.hub import named_classes
from study.tasks.sources.reading import reading
from study.tasks.task import SPLITS

if TYPE_CHECKING:
    import pandas as pd

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")

ALIKE = "All files need a column of images and a column label, written alike."
_BATCH_ROWS = 256


class Read(NamedTuple):
    """Labelled images, of which the pixels are not read yet.

    Attributes:
        rows: one row per image, those that train first, then those that validate and those that
            test. `split` is what its split is called, or empty; `label` what its class is called;
            `image` where it is, for messages.
        contents: of the images, in the order of the rows.
        classes: the names of the classes, in the order of their numbers; empty: none are listed.
    """

    rows: pd.DataFrame
    contents: Iterable[Content]
    classes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class ImageSet(DataSet):
    """A data set of labelled images: a published one, or any images of one's own.

    Attributes:
        layouts: in which it may lie, of `LAYOUTS`, in the order in which they are looked for.
        label_columns: names that the column of labels in Parquet files may have.
        class_names: in the order of the labels, as `class_name` gives them; empty: of one's own
            images, the data tell them.
    """

    layouts: Sequence[str]
    label_columns: Sequence[str]
    class_names: tuple[str, ...] = ()

    @property
    def own(self) -> bool:
        return not self.class_names

    def found(self, data_dir: Path, names: Sequence[str]) -> Found | None:
        """Its files in a directory; None: there are none.

        Args:
            data_dir: the directory.
            names: in it, see `study.tasks.sources.directory.listed`.

        Raises:
            RequestError: of one's own images, what may be a mistake lies among them.
        """
        for pattern, reader in (LAYOUTS[layout] for layout in self.layouts):
            if files := [file for name in names if (file := pattern.fullmatch(name))]:
                found = Found(self, data_dir, files, reader)
                if self.own and reader is _read_folders:
                    _require_images(found, names)
                return found
        return None


class Found(NamedTuple):
    """The files of labelled images in a directory.

    Attributes:
        wanted: the data set.
        data_dir: the directory.
        files: those of the layout in which the images lie, matches of its pattern.
        reader: of the layout.
    """

    wanted: ImageSet
    data_dir: Path
    files: Sequence[re.Match[str]]
    reader: Reader

    @property
    def folder(self) -> Path:
        """The one that holds all files; where several do, it raises a `RequestError`."""
        return one_folder(self.data_dir, [file.string for file in self.files])


Reader = Callable[[Found], Read]


def may_belong(name: str) -> bool:
    """Whether a file may be of labelled images, by its name relative to their directory."""
    return any(pattern.fullmatch(name) for pattern, _ in LAYOUTS.values())


Row = tuple[str, object, object]
"""What the split and the class of an image are called, and where it is."""


def _rows(rows: Iterable[Row]) -> pd.DataFrame:
    """As objects, for names are not changed, and not all of them are text."""
    import pandas as pd

    return pd.DataFrame(rows, columns=["split", "label", "image"], dtype=object)


def _rank(file: re.Match[str]) -> int:
    """The place of a file's split among the splits."""
    return SPLITS.index(split_named(file["split"] or "") or "train")


# Class folders


def _read_folders(found: Found) -> Read:
    """The images of each split class by class, 2 before 10.

    Of a published data set class by class only where a name occurs twice: an export may be named
    by the official index.
    """
    distinct = {(file["split"], file["stem"]) for file in found.files}
    by_class = found.wanted.own or len(distinct) < len(found.files)

    def place(file: re.Match[str]) -> tuple[Any, ...]:
        parts = re.split(r"(\d+)", file["stem"])
        natural = [int(part) if part.isdecimal() else part for part in parts]
        return _rank(file), file["label"] if by_class else "", natural, file.string

    files = sorted(found.files, key=place)
    rows = _rows((file["split"], file["label"], found.data_dir / file.string) for file in files)
    return Read(rows, rows["image"])


def _require_images(found: Found, names: Sequence[str]) -> None:
    """Refuses what may be a mistake in the folders of classes of a directory with these names.

    Raises:
        RequestError: a split or a class holds no image, or something else, too; or two classes
            have one name on some disks.
    """
    taken = {file.string for file in found.files}
    classes = {_folder(name) for name in taken}
    of_classes = {_folder(folder) for folder in classes}
    folders = [name[:-1] for name in names if name.endswith("/")]
    splits = [] if "" in of_classes else [folder for folder in folders if split_named(folder)]
    unlabelled = {_folder(name) for name in names if name.lower().endswith(IMAGE_SUFFIXES)}
    known, without = classes | of_classes, {*splits} - of_classes - unlabelled
    lower: dict[str, str] = {}
    for name in names:
        folder, inside = name.removesuffix("/"), _folder(name)
        if name.endswith("/"):
            if folder in without or (inside in known and folder not in known):
                raise RequestError(
                    f"{found.data_dir / folder} holds no image of a class. Put images right into "
                    f"folders of classes ({', '.join(IMAGE_SUFFIXES)}), or move it away."
                )
        elif inside in classes and name not in taken:
            raise RequestError(
                f"{found.data_dir / name} lies among images, but is none that is read. Move it "
                f"away: images are {', '.join(IMAGE_SUFFIXES)}."
            )
        if folder in classes and (other := lower.setdefault(name.lower(), name)) != name:
            raise RequestError(
                f"{found.data_dir / other} and {name[:-1]} differ in letter case alone: two "
                "classes here, but one where a disk or a copy ignores it. Rename one, or put "
                "their images together."
            )


def _folder(name: str) -> str:
    return name.removesuffix("/").rpartition("/")[0]


# Parquet


def _read_parquet(found: Found) -> Read:
    import pyarrow.parquet as pq

    folder = found.folder
    parts = Counter(file["split"] for file in found.files)
    if len(parts) > 1 and None in parts:
        of_none = next(file.string for file in found.files if file["split"] is None)
        raise of_no_split(found.data_dir / of_none)
    columns: dict[Path, str] = {}
    rows: list[Row] = []
    classes: Sequence[str] = ()
    for file in sorted(found.files, key=_rank):
        path, split = found.data_dir / file.string, file["split"]
        if file["parts"] and int(file["parts"]) != parts[split]:
            raise RequestError(
                f"{path} is one of {int(file['parts'])} files, {parts[split]} of them found in "
                f"{folder}. Copy the data set again."
            )
        with reading(path, ALIKE):
            columns[path], label, of_file = _columns(path, found.wanted)
            classes = classes or of_file
            values = pq.read_table(path, columns=[label])[label].to_pylist()
            if not values:
                raise ValueError("it holds no row")
            for row, value in enumerate(values):
                called = _called(row, value, of_file)
                rows.append((split or "", called, f"row {row} of {path}"))
    return Read(_rows(rows), _encoded(columns), classes)


def _columns(path: Path, wanted: ImageSet) -> tuple[str, str, Sequence[str]]:
    """The columns of images and labels, and the classes that labels number, if they do.

    Raises:
        ValueError: there is no such column.
    """
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    images = [each.name for each in schema if "bytes" in getattr(each.type, "names", ())]
    numbered = {name: _told_apart(names) for name, names in named_classes(path).items()}
    labels = [name for name in wanted.label_columns if name in schema.names][:1]
    if wanted.own and not labels:
        labels = [*numbered]
    if not images or len(labels) != 1:
        lacking = wanted.label_columns[0] if images else "of images (a struct {bytes, path})"
        raise ValueError(f"it has no column {lacking}, only {', '.join(schema.names)}")
    image = next((name for name in ("img", "image") if name in images), images[0])
    return image, labels[0], numbered.get(labels[0]) or wanted.class_names


def _told_apart(names: Sequence[str]) -> list[str]:
    """Plain names of classes; a second one of a name gets its number, as ImageNet's two cranes."""
    plain = [class_name(name) for name in names]
    return [
        name if plain.index(name) == number else f"{name} ({number})"
        for number, name in enumerate(plain)
    ]


def _called(row: int, value: Any, classes: Sequence[str]) -> str | int | float:
    """The class of a row, whose label may be a whole number that is written as a float.

    Raises:
        ValueError: it has none.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if classes:
        value = classes[value] if value in range(len(classes)) else None
    if value is None or value != value or not as_seen(str(value)):
        raise ValueError(f"it has no label in row {row}")
    if not isinstance(value, str | int | float):
        raise ValueError(f"its label in row {row} is neither text nor a number")
    return value


def _encoded(columns: Mapping[Path, str]) -> Iterator[bytes | None]:
    """The images of files, each of which has them in the column that is named."""
    import pyarrow.parquet as pq

    for path, column in columns.items():
        with reading(path, MEND), pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=[f"{column}.bytes"]):
                yield from batch.column(0).field("bytes").to_pylist()


# The official files of CIFAR, and those of MNIST

Arrays = tuple[np.ndarray, Sequence[object]]
"""Images (N, H, W, 3) or (N, H, W) uint8, and what the class of each is called."""


def _read_arrays(load: Callable[[Path, str], Arrays], found: Found) -> Read:
    """The images of both splits, which `load` gives."""
    folder, rows, pixels = found.folder, [], []
    with reading(folder):
        for split in ("train", "test"):
            images, labels = load(folder, split)
            if len(images) != len(labels):
                raise ValueError(f"{split} has {len(images)} images, but {len(labels)} labels")
            pixels.append(images)
            for number, label in enumerate(labels):
                rows.append((split, label, f"image {number} of {split} in {folder}"))
    return Read(_rows(rows), itertools.chain(*pixels))


def _of_cifar(kind: str, folder: Path, split: str) -> Arrays:
    """Files of other checksums are refused, so that no pickle of strangers is opened."""
    from torchvision import datasets

    here: Any = type(kind, (getattr(datasets, kind),), {"base_folder": ""})
    try:
        found = here(folder, train=split == "train")
    except RuntimeError as error:  # it advises what is of no use to who runs a command
        raise ValueError("a file is missing, or its checksum is not the published") from error
    return found.data, [found.classes[label] for label in found.targets]


def _of_mnist(folder: Path, split: str) -> Arrays:
    part = {"train": "train", "test": "t10k"}[split]
    labels = _ubyte(folder, f"{part}-labels-idx1-ubyte", axes=1)
    return _ubyte(folder, f"{part}-images-idx3-ubyte", axes=3), labels.tolist()


def _ubyte(folder: Path, name: str, axes: int) -> np.ndarray:
    """The bytes of a file: four that say what they are, the size of each axis, the values."""
    path = min(folder.glob(f"{name}*"), default=folder / name)
    with reading(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        data = file.read()
        shape = np.frombuffer(data, ">i4", axes, offset=4)
        return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


_SPLIT = "|".join(NAMED)
_IMAGE = r"(?P<label>[^/]+)/(?P<stem>[^/]+)\.(png|jpg|jpeg|bmp|webp)"
_PARQUET = rf"(?P<split>({_SPLIT})(?![a-z]))?[^/]*?(-of-(?P<parts>\d+))?\.parquet"

LAYOUTS: Mapping[str, tuple[re.Pattern[str], Reader]] = {
    name: (re.compile(pattern, re.IGNORECASE), read)
    for name, pattern, read in (
        (
            "CIFAR10",
            r"(cifar-10-batches-py/)?(data_batch_[1-5]|batches\.meta|test_batch)",
            partial(_read_arrays, partial(_of_cifar, "CIFAR10")),
        ),
        (
            "CIFAR100",
            "(cifar-100-python/)?(train|test|meta)",
            partial(_read_arrays, partial(_of_cifar, "CIFAR100")),
        ),
        (
            "MNIST",
            r"([^/]+/(raw/)?)?(train|t10k)-(images-idx3|labels-idx1)-ubyte(\.gz)?",
            partial(_read_arrays, _of_mnist),
        ),
        ("Parquet", f"([^/]+/)?{_PARQUET}", _read_parquet),
        ("folders of splits", rf"(?P<split>\s*({_SPLIT})\s*)/{_IMAGE}", _read_folders),
        ("class folders", f"(?P<split>){_IMAGE}", _read_folders),
    )
}
"""Name -> pattern of the names of its files relative to their directory, and its reader."""
