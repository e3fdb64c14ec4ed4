"""The layouts in which labelled images lie in a directory: finds their files, reads their labels.

    class folders  DIR/<class>/*.png, or DIR/train/<class>/*.png and DIR/test/<class>/*.png
    Parquet        train*.parquet and test*.parquet, with a column of images and one of labels
    official       the files of CIFAR-10 or CIFAR-100, which torchvision checks and reads
    ubyte          the four files of MNIST, FashionMNIST or KMNIST

A test split is what is called so, else a validation split. A validation split beside a test split
is joined to the train images, of which a task keeps a share for validation.
"""

from __future__ import annotations

import functools
import gzip
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from study.errors import RequestError, as_seen
from study.tasks.mosaics.classes import class_name
from study.tasks.mosaics.decoding import MEND, Encoded, all_decoded, fitted_arrays
from study.tasks.sources.directory import (
    SPLIT_NAMES,
    files_by_split,
    require_one,
    split_named,
    visible,
)
from study.tasks.sources.reading import reading
from study.tasks.sources.tables import named_classes

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")

ALIKE = "All files need a column of images and a column label, written alike."
_BATCH_ROWS = 256


class Names(NamedTuple):
    """Names of the files of a layout: of their folder, and of those of each split."""

    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]


OFFICIAL = {
    "CIFAR10": Names(
        "cifar-10-batches-py",
        (*(f"data_batch_{number}" for number in range(1, 6)), "batches.meta"),
        ("test_batch",),
    ),
    "CIFAR100": Names("cifar-100-python", ("train", "meta"), ("test",)),
}
"""Class of torchvision -> the files that it reads."""

UBYTE = Names(
    "raw",
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)


@dataclass(frozen=True)
class Wanted:
    """Labelled images that are looked for: a published data set, or any images of one's own.

    Attributes:
        title: for messages.
        accepted: the accepted layouts, for messages.
        official: whose official files are accepted, of `OFFICIAL`.
        label_columns: names that the column of labels in Parquet files may have.
        class_names: in the order of the labels, as `class_name` gives them; empty: of one's own
            images, the data tell them.
        misspelt: class names that published copies spell wrong, with the right ones.
    """

    title: str
    accepted: str
    official: tuple[str, ...]
    label_columns: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    misspelt: Mapping[str, str] = field(default_factory=dict)

    @property
    def own(self) -> bool:
        return not self.class_names


class Labelled(NamedTuple):
    """The images of some files, of which the labels are read.

    Attributes:
        called: the class of each image, as the files call it.
        classes: the names of the classes, in the order of their labels; None: none are listed.
        pixels: (side, whether other sizes are resized) -> (N, side, side, 3) uint8.
    """

    called: Sequence[Any]
    classes: Sequence[str] | None
    pixels: Callable[[int, bool], np.ndarray]


class Found(NamedTuple):
    """Files of labelled images.

    Attributes:
        layout: class folders, Parquet, official or ubyte.
        train: the files to train and validate on, in order.
        test: those to test on; empty: test images are to be drawn.
        note: which are of which split, for people.
        open: files of a split -> their images.
        left_out: images that lie in no folder of a class, or of no split beside some of splits.
    """

    layout: str
    train: tuple[Path, ...]
    test: tuple[Path, ...]
    note: str
    open: Callable[[tuple[Path, ...]], Labelled]
    left_out: Sequence[Path] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        return (*self.train, *self.test)


def may_belong(name: str) -> bool:
    """Whether a file may be of labelled images, by its name relative to their directory."""
    *folders, file = name.split("/")
    if file.lower().endswith(".parquet"):
        return len(folders) <= 1
    known = {each for names in (*OFFICIAL.values(), UBYTE) for each in names.train + names.test}
    is_known = file.lower().endswith(IMAGE_SUFFIXES) or file.removesuffix(".gz") in known
    return len(folders) <= 2 and is_known


def find_files(data_dir: Path, entries: Sequence[Path], wanted: Wanted) -> Found | None:
    """The files of labelled images in a directory; None if it holds none.

    Args:
        data_dir: the directory.
        entries: of it.
        wanted: what is looked for.

    Raises:
        RequestError: there is no train split; a class has no image, or something else among them.
    """
    return (
        _find_official(data_dir, wanted)
        or (_find_ubyte(data_dir) if wanted.own else None)
        or _find_parquet(data_dir, entries, wanted)
        or _find_folders(entries, wanted.own)
    )


def _divided(
    layout: str,
    parts: Mapping[str, tuple[Path, ...]],
    called: Mapping[str, str],
    read: Callable[[tuple[Path, ...]], Labelled],
) -> Found:
    """Files by split, and what each split is called, as what trains and what tests."""
    train, validation, test = (parts.get(each, ()) for each in ("train", "validation", "test"))
    if not train:
        there = " and ".join(called[each] for each in parts)
        raise RequestError(f"there is {there}, but no train split. Splits are {SPLIT_NAMES}.")
    note = called["train"]
    if not validation and not test:
        note += " alone is there"
    elif validation and test:
        note += f" and {called['validation']} train and validate, {called['test']} tests"
        train += validation
    else:
        note += f" trains and validates, {called['test' if test else 'validation']} tests"
    return Found(layout, train, test or validation, note, read)


# Class folders


def _find_folders(entries: Sequence[Path], own: bool) -> Found | None:
    """Folders of classes, maybe in folders of splits; None if there is no image in them."""
    folders = [entry for entry in entries if entry.is_dir()]
    parts: dict[str, tuple[Path, ...]] = {}
    called: dict[str, str] = {}
    for folder in folders:
        split = split_named(folder.name)
        classes = [entry for entry in visible(folder) if entry.is_dir()] if split else []
        if split and classes:
            parts[split] = parts.get(split, ()) + _images(classes, own)
            called[split] = f"{called[split]} and " if split in called else ""
            called[split] += f"{folder.name}/"
    if parts:
        found = _divided("class folders", parts, called, _open_folders)
        inner = [entry for folder in folders for entry in visible(folder)]
        others = (each for each in inner if each.is_dir() and not split_named(each.parent.name))
        entries = [*entries, *inner, *(image for each in others for image in visible(each))]
    elif paths := _images(folders, own):
        found = Found("class folders", paths, (), "there are no splits", _open_folders)
    else:
        return None
    left_out = (entry for entry in entries if entry.suffix.lower() in IMAGE_SUFFIXES)
    return found._replace(left_out=[entry for entry in left_out if entry.is_file()])


def _images(folders: Sequence[Path], own: bool) -> tuple[Path, ...]:
    """The images in folders of classes, class by class, 2 before 10.

    Of a published data set class by class only where a name occurs twice: an export may be named
    by the official index.

    Raises:
        RequestError: of images of one's own, a folder holds none, or something else, too; or two
            folders have one name on some disks.
    """
    paths: list[Path] = []
    lower: dict[str, Path] = {}
    for folder in folders:
        if own and (other := lower.setdefault(folder.name.lower(), folder)) != folder:
            raise RequestError(
                f"{other} and {folder.name} differ in letter case alone: two classes here, but "
                "one where a disk or a copy ignores it. Rename one, or put their images together."
            )
        entries = visible(folder)
        others = [each for each in entries if each.suffix.lower() not in IMAGE_SUFFIXES]
        if own and len(others) == len(entries):
            raise RequestError(
                f"{folder} is the folder of a class and holds no image "
                f"({', '.join(IMAGE_SUFFIXES)}). Put images there, or remove the folder."
            )
        if own and others:
            raise RequestError(
                f"{others[0]} is not an image, but lies among those of the class {folder.name}. "
                f"Move it away; images are {', '.join(IMAGE_SUFFIXES)}."
            )
        paths += [each for each in entries if each not in others]
    by_class = own or len({path.stem for path in paths}) < len(paths)

    def order(path: Path) -> tuple[Any, ...]:
        parts = re.split(r"(\d+)", path.stem)
        natural = [int(part) if part.isdecimal() else part for part in parts]
        return path.parent.name if by_class else "", natural, path.name

    return tuple(sorted(paths, key=order))


def _open_folders(paths: tuple[Path, ...]) -> Labelled:
    encoded = [(path, path.read_bytes) for path in paths]
    pixels = functools.partial(all_decoded, encoded, len(paths))
    return Labelled([path.parent.name for path in paths], None, pixels)


# Parquet


def _find_parquet(data_dir: Path, entries: Sequence[Path], wanted: Wanted) -> Found | None:
    """The Parquet files of a directory or of one subfolder; None if there are none."""
    parts = dict(files_by_split(data_dir, entries, (".parquet",)))
    if "" in parts:
        parts["train"] = parts.pop("")
    for path, count in ((path, len(paths)) for paths in parts.values() for path in paths):
        promised = re.search(r"-of-(\d+)\.parquet$", path.name.lower())
        if promised and int(promised[1]) != count:
            raise RequestError(
                f"{path} is one of {int(promised[1])} files, {count} of them found in "
                f"{path.parent}. Copy the data set again."
            )
    called = {split: paths[0].stem.split("-")[0] for split, paths in parts.items()}
    read = functools.partial(_open_parquet, wanted)
    return _divided("Parquet", parts, called, read) if parts else None


def _open_parquet(wanted: Wanted, paths: tuple[Path, ...]) -> Labelled:
    import pyarrow.parquet as pq

    called: list[Any] = []
    images = {}
    for path in paths:
        with reading(path, ALIKE):
            images[path], column, names = _columns(path, wanted)
            values = pq.read_table(path, columns=[column])[column].to_pylist()
            called += [_called(row, value, names) for row, value in enumerate(values)]
    pixels = functools.partial(all_decoded, _encoded(images), len(called))
    return Labelled(called, names, pixels)


def _columns(path: Path, wanted: Wanted) -> tuple[str, str, Sequence[str] | None]:
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
    return image, labels[0], numbered.get(labels[0]) or wanted.class_names or None


def _told_apart(names: Sequence[str]) -> list[str]:
    """Plain names of classes; a second one of a name gets its number, as ImageNet's two cranes."""
    plain = [class_name(name) for name in names]
    return [
        name if plain.index(name) == number else f"{name} ({number})"
        for number, name in enumerate(plain)
    ]


def _called(row: int, value: Any, names: Sequence[str] | None) -> Any:
    """The class of a row, whose label may be a whole number that is written as a float.

    Raises:
        ValueError: it has none.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if names is not None:
        value = names[value] if value in range(len(names)) else None
    if value is None or value != value or not as_seen(str(value)):
        raise ValueError(f"it has no label in row {row}")
    if not isinstance(value, str | int | float):
        raise ValueError(f"its label in row {row} is neither text nor a number")
    return value


def _encoded(columns: Mapping[Path, str]) -> Iterator[Encoded]:
    """The images of files, each of which has them in the column that is named."""
    import pyarrow.parquet as pq

    for path, column in columns.items():
        rows = itertools.count()
        with reading(path, MEND), pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=[f"{column}.bytes"]):
                for value in batch.column(0).field("bytes"):
                    yield f"row {next(rows)} of {path}", value.as_py


# The official files of CIFAR, and those of MNIST


def _find_official(data_dir: Path, wanted: Wanted) -> Found | None:
    """The official files in a directory or in its subfolder; None if there are none."""
    for kind in wanted.official:
        names = OFFICIAL[kind]
        for folder in (data_dir / names.folder, data_dir):
            train, test = ([folder / name for name in each] for each in (names.train, names.test))
            if any(path.is_file() for path in train + test):
                note = f"the train and test images of {kind}"
                read = functools.partial(_open_official, kind)
                return Found("official", tuple(train), tuple(test), note, read)
    return None


def _open_official(kind: str, paths: tuple[Path, ...]) -> Labelled:
    """Files of other checksums are refused, so that no pickle of strangers is opened."""
    from torchvision import datasets

    folder, train = paths[0].parent, paths[0].name in OFFICIAL[kind].train
    here: Any = type(kind, (getattr(datasets, kind),), {"base_folder": ""})
    with reading(folder):
        try:
            found = here(folder, train=train)
        except RuntimeError as error:  # it advises what is of no use to who runs a command
            raise ValueError("a file is missing, or its checksum is not the published") from error
    called = [found.classes[label] for label in found.targets]
    return Labelled(called, found.classes, lambda side, _: fitted_arrays(found.data, side))


def _find_ubyte(data_dir: Path) -> Found | None:
    """The four files of MNIST in one folder or its `raw/`; None if there are none."""
    every = (
        path.parent
        for inner in ("", "*/", f"*/{UBYTE.folder}/")
        for path in data_dir.glob(f"{inner}{UBYTE.train[0]}*")
    )
    folders = sorted(set(every))
    require_one(data_dir, folders)
    for folder in folders:
        train, test = (
            tuple(min(folder.glob(f"{name}*"), default=folder / name) for name in names)
            for names in (UBYTE.train, UBYTE.test)
        )
        return Found("ubyte", train, test, f"the train and test images of {folder}", _open_ubyte)
    return None


def _open_ubyte(paths: tuple[Path, ...]) -> Labelled:
    images, labels = (_ubyte(path, axes) for path, axes in zip(paths, (3, 1), strict=True))
    with reading(paths[1]):
        called = labels.reshape(len(images)).tolist()
    return Labelled(called, None, lambda side, _: fitted_arrays(images, side))


def _ubyte(path: Path, axes: int) -> np.ndarray:
    """The bytes of a file: four that say what they are, the size of each axis, the values."""
    with reading(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        data = file.read()
        shape = np.frombuffer(data, ">i4", axes, offset=4)
        return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)
