"""Labelled images are the same in every layout; what cannot be used is named on one line."""

from __future__ import annotations

import dataclasses
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.cifar import CIFAR10, CIFAR100
from study.tasks.mosaics.labelled_images import load as load_images
from study.tasks.mosaics.layouts import ImageSet
from study.tasks.mosaics.own_images import OWN_IMAGES
from study.tasks.sources.places import Places
from tests.conftest import REAL_DATA, needs_data
from tests.made_up.cifar import (
    WRITERS,
    as_official,
    make,
    write_class_folders,
    write_official,
    write_parquet,
)
from tests.made_up.commands import refusal
from tests.made_up.images import (
    SIDE,
    encoded,
    made_up,
    put,
    write_folders,
    write_own_parquet,
    write_ubyte,
)


def load(folder: Path, names: ImageSet = CIFAR10, side: int = SIDE) -> BaseImages:
    """The images; made-up ones of your own have `side` pixels, those of CIFAR 32."""
    places = Places(str(folder), str(folder.parent / "cache"))
    inner = folder / names.folder
    with as_official(inner if inner.exists() else folder):
        return load_images(names, places, side if names is OWN_IMAGES else 32)


def assert_reads(folder: Path, names: ImageSet, count: tuple[int, int] = (20, 10)) -> None:
    """Bitwise."""
    base, (train, test) = load(folder, names), make(names, *count)
    found = (base.train_images, base.train_labels, base.test_images, base.test_labels)
    for ours, theirs in zip(found, (*train, *test), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
    assert base.class_names == names.class_names


@pytest.mark.parametrize("names", [CIFAR10, CIFAR100], ids=["CIFAR-10", "CIFAR-100"])
@pytest.mark.parametrize("layout", WRITERS)
def test_every_layout_gives_the_images(tmp_path, names, layout):
    """Some may lie in a folder of the given one."""
    inner = {"official": names.folder, "parquet": "plain_text"}
    WRITERS[layout](tmp_path / "data" / inner.get(layout, ""), names, make(names))
    assert_reads(tmp_path / "data", names)


def test_parquet_in_parts_and_without_metadata(tmp_path):
    folder = write_parquet(tmp_path / "data", CIFAR10, make(CIFAR10, 26, 13), 12, "image")
    assert_reads(folder, CIFAR10, (26, 13))
    for path in folder.iterdir():
        pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    assert_reads(folder, CIFAR10, (26, 13))


def test_labels_go_by_the_names_that_a_file_lists(tmp_path):
    backwards = CIFAR10.class_names[::-1]
    split = [each._replace(labels=9 - each.labels) for each in make(CIFAR10)]
    listing = dataclasses.replace(CIFAR10, class_names=backwards)
    assert_reads(write_parquet(tmp_path / "data", listing, split), CIFAR10)


def test_class_folders_go_class_by_class_where_names_repeat(tmp_path):
    images = make(CIFAR10)[0].images
    for split in ("train", "test"):
        for row, name in enumerate(["Ship/10.PNG", "Ship/9.png", "Bird/9.png", "Bird/10.png"]):
            put(tmp_path / "data" / split / name, images[row])
        (tmp_path / "data" / split / "Bird" / "notes.txt").touch()
    base = load(tmp_path / "data")
    np.testing.assert_array_equal(base.train_images, images[[2, 3, 1, 0]])
    assert base.train_labels.tolist() == [2, 2, 8, 8]


# Images of your own


@pytest.mark.parametrize("layout", WRITERS)
def test_any_images_are_read_as_those_of_cifar(tmp_path, layout):
    """With the classes that their files tell, and made smaller."""
    WRITERS[layout](tmp_path / "data", CIFAR10, make(CIFAR10, 100, 20))
    base, train = load(tmp_path / "data", OWN_IMAGES, 32), make(CIFAR10, 100, 20)[0]
    assert base.class_names == CIFAR10.class_names
    assert sorted(map(bytes, base.train_images)) == sorted(map(bytes, train.images))
    assert load(tmp_path / "data", OWN_IMAGES).train_images.shape == (100, SIDE, SIDE, 3)


@pytest.mark.parametrize("categories", [False, True])
@pytest.mark.parametrize(
    ("labels", "listed", "classes"),
    [
        ([3, 12, 1] * 5, None, ("1", "3", "12")),
        ([3.0, 12.0, 1.0] * 5, None, ("1", "3", "12")),
        (["c3", "a1", "b2"] * 5, None, ("a1", "b2", "c3")),
        # Of ImageNet: synonyms with commas, and two classes of one name.
        (
            [0, 1, 2] * 5,
            ["tench, Tinca tinca", "crane", "crane"],
            ("tench/Tinca tinca", "crane", "crane (2)"),
        ),
    ],
)
def test_labels_number_the_classes_that_are_listed_else_they_are_their_names(
    tmp_path,
    labels,
    listed,
    classes,
    categories,
):
    """A column that lists classes may have any name."""
    column = "kind" if listed else "labels"
    write_own_parquet(tmp_path / "data" / "images.PARQUET", labels, column, categories, listed)
    base = load(tmp_path / "data", OWN_IMAGES)
    assert base.class_names == classes
    assert np.bincount(np.r_[base.train_labels, base.test_labels]).tolist() == [5, 5, 5]


@pytest.mark.parametrize(("place", "compressed"), [("", False), ("MNIST/raw", True)])
def test_files_of_mnist(tmp_path, place, compressed):
    write_ubyte(tmp_path / "data" / place, compressed)
    base = load(tmp_path / "data", OWN_IMAGES, 28)
    assert base.class_names == ("0", "1", "2")
    expected = np.random.default_rng(0).integers(256, size=(30, 28, 28), dtype=np.uint8)
    np.testing.assert_array_equal(base.train_images, expected[..., None])
    assert load(tmp_path / "data", OWN_IMAGES).test_images.shape == (10, SIDE, SIDE, 1)


@needs_data
def test_the_real_images(tmp_path):
    base = load_images(CIFAR10, Places(str(REAL_DATA / "cifar10"), str(tmp_path)), 32)
    assert base.digest == "064b8f2ed0ea63ce"


# What cannot be used: each breaks a whole data set, and the message holds what it broke.


class _Hostile:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("file", ["data_batch_3", "batches.meta"])
def test_a_pickle_of_another_checksum_is_not_opened(tmp_path, file):
    folder, mark = write_official(tmp_path / "data", CIFAR10, make(CIFAR10)), tmp_path / "mark"
    places = Places(str(folder), str(tmp_path / "cache"))
    with as_official(folder):
        (folder / file).write_bytes(pickle.dumps(_Hostile(mark)))
        said = refusal(lambda: load_images(CIFAR10, places, 32))
    assert "its checksum is not the published" in said
    assert not mark.exists()
    pickle.loads((folder / file).read_bytes())
    assert mark.exists()  # so it was hostile


CUT_OFF = encoded(made_up(0, 0))[:60]


def drop_column(path: Path, column: str) -> None:
    pq.write_table(pq.read_table(path).drop_columns(column), path)


def set_row(path: Path, column: str, value: object) -> None:
    """Row 7."""
    table = pq.read_table(path)
    rows = table.to_pylist()
    rows[7][column] = value
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)


def cifar_parquet(folder: Path) -> Path:
    return write_parquet(folder, CIFAR10, make(CIFAR10))


def cifar_folders(folder: Path) -> Path:
    return write_class_folders(folder, CIFAR10, make(CIFAR10))


def nothing(folder: Path) -> None:
    folder.mkdir()


TRAIN = "train-00000-of-00001.parquet"
UNUSABLE: dict[Callable[[Path], object], dict[str, tuple[Callable[[Path], object], str]]] = {
    cifar_parquet: {
        "a part is missing": (
            lambda folder: (folder / TRAIN).rename(folder / "train-00001-of-00003.parquet"),
            "train-00001-of-00003.parquet is one of 3 files, 1 of them",
        ),
        "no class": (lambda folder: set_row(folder / TRAIN, "label", -1), "no label in row 7"),
        "no label column": (
            lambda folder: drop_column(folder / TRAIN, "label"),
            "{train} cannot be read (it has no column label, only img, coarse_label)",
        ),
        "a damaged row": (
            lambda folder: set_row(folder / TRAIN, "img", {"bytes": CUT_OFF, "path": ""}),
            "row 7 of {train} cannot be read (",
        ),
        "two data sets": (
            lambda folder: shutil.copytree(folder, folder / "other"),
            "{folder} holds several data sets, in {folder}, {folder}/other.",
        ),
    },
    cifar_folders: {
        "no test split": (
            lambda folder: shutil.rmtree(folder / "test"),
            "{folder} has no test split",
        ),
        "no such class": (
            lambda folder: min((folder / "train").iterdir()).rename(folder / "train" / "airplne"),
            "unknown class 'airplne'. Did you mean 'airplane'?",
        ),
    },
    write_folders: {
        "no class folders": (
            lambda folder: [shutil.rmtree(folder), nothing(folder), (folder / "1.png").touch()],
            "{folder} holds only 1.png: no images of your own found.",
        ),
        "one class": (
            lambda folder: [shutil.rmtree(folder / each) for each in ("stork", "reed", "water")],
            "{folder} holds 1 class (heron). Mosaics need 3 or more",
        ),
        "a class without images": (
            lambda folder: nothing(folder / "egret"),
            "{folder}/egret holds no image of a class. Put images right into folders",
        ),
        "a folder in a class": (
            lambda folder: shutil.copytree(folder / "reed", folder / "reed" / "more"),
            "{folder}/reed/more holds no image of a class.",
        ),
        "a split without images": (
            lambda folder: [
                shutil.rmtree(folder),
                write_folders(folder, split="train"),
                nothing(folder / "test"),
            ],
            "{folder}/test holds no image of a class.",
        ),
        "a class that is called none": (
            lambda folder: (folder / "reed").rename(folder / "none"),
            "{folder}: a class is called 'none', which stands for all",
        ),
        "a file that is no image": (
            lambda folder: (folder / "heron" / "notes.txt").touch(),
            "{folder}/heron/notes.txt lies among images, but is none that is read.",
        ),
        "a damaged image": (
            lambda folder: os.truncate(folder / "reed" / "3.png", 60),
            "{folder}/reed/3.png cannot be read (",
        ),
        "a pipe among images": (
            lambda folder: os.mkfifo(folder / "reed" / "pipe.png"),
            "{folder}/reed/pipe.png is a named pipe",
        ),
        "classes that are one on some disks": (
            lambda folder: shutil.copytree(folder / "reed", folder / "Reed"),
            "{folder}/Reed and reed differ in letter case alone",
        ),
        "no train split": (
            lambda folder: [shutil.rmtree(folder), write_folders(folder, split="test")],
            "{folder} has test, but no train split.",
        ),
        "classes that get one name": (
            lambda folder: write_folders(folder, {"+": 2, ",": 2}),
            "{folder}: the classes '+' and ',' would both be called '/'",
        ),
    },
    nothing: {
        "no image column": (
            lambda folder: drop_column(write_own_parquet(folder / "a.parquet", [1]), "image"),
            "a.parquet cannot be read (it has no column of images",
        ),
        "a label that is missing": (
            lambda folder: write_own_parquet(folder / "a.parquet", [1.0, 2.0, np.nan, 3.0]),
            "a.parquet cannot be read (it has no label in row 2)",
        ),
        "a blank label": (
            lambda folder: write_own_parquet(folder / "a.parquet", ["a", "b", "c", " "]),
            "a.parquet cannot be read (it has no label in row 3)",
        ),
        "a list of labels": (
            lambda folder: write_own_parquet(folder / "a.parquet", [["a"], ["b"], ["c"]]),
            "a.parquet cannot be read (its label in row 0 is neither text nor a number)",
        ),
        "numbers and text": (
            lambda folder: [
                write_own_parquet(folder / f"train-{number}.parquet", labels)
                for number, labels in enumerate(([1, 2], ["a"]))
            ],
            "{folder} cannot be read (",
        ),
        "a file of MNIST is missing": (
            lambda folder: (write_ubyte(folder / "raw") / "t10k-labels-idx1-ubyte").unlink(),
            "{folder}/raw/t10k-labels-idx1-ubyte cannot be read (No such file",
        ),
    },
}
"""What is written -> how it is broken, and what is said of it."""


@pytest.mark.parametrize(
    ("write", "break_it", "fact"),
    [
        pytest.param(write, *each, id=name)
        for write, cases in UNUSABLE.items()
        for name, each in cases.items()
    ],
)
def test_what_cannot_be_used_is_named(
    tmp_path,
    write,
    break_it,
    fact,
):
    folder = tmp_path / "data"
    write(folder)
    break_it(folder)
    names = CIFAR10 if write in (cifar_parquet, cifar_folders) else OWN_IMAGES
    message = refusal(lambda: load(folder, names))
    assert fact.format(folder=folder, train=folder / TRAIN) in message
