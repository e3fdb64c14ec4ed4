"""Labelled images are the same in every layout; what cannot be used is named on one line."""

from __future__ import annotations

import json
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

from study.errors import RequestError
from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.cifar import CIFAR10, CIFAR100, load_cifar10, load_cifar100
from study.tasks.mosaics.layouts import OFFICIAL, Wanted, find_files, may_belong
from study.tasks.mosaics.own_images import WANTED, load_own
from study.tasks.sources.directory import visible
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
from tests.made_up.images import (
    SIDE,
    encoded,
    made_up,
    write_folders,
    write_own_parquet,
    write_ubyte,
)
from tests.study.tasks.test_base_images import assert_equal, entries

LOADERS = {"CIFAR-10": load_cifar10, "CIFAR-100": load_cifar100}
BOTH = pytest.mark.parametrize("names", [CIFAR10, CIFAR100], ids=LOADERS)
LAYOUTS = pytest.mark.parametrize("layout", WRITERS)


def load(folder: Path, names: Wanted = CIFAR10, cache: str = "cache") -> BaseImages:
    """The images; made-up ones of your own have `SIDE` pixels, those of CIFAR 32."""
    places = Places(str(folder), str(folder.parent / cache))
    inner = folder / OFFICIAL[names.official[0]].folder
    with as_official(inner if inner.exists() else folder):
        return load_own(places, SIDE) if names is WANTED else LOADERS[names.title](places)


def refusal(folder: Path, names: Wanted = CIFAR10) -> str:
    """The message of the `RequestError` of reading `folder`: one line."""
    with pytest.raises(RequestError) as caught:
        load(folder, names)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def assert_reads(folder: Path, names: Wanted, count: tuple[int, int] = (20, 10)) -> None:
    """Bitwise."""
    base, (train, test) = load(folder, names), make(names, *count)
    np.testing.assert_array_equal(base.train_images, train.images, strict=True)
    np.testing.assert_array_equal(base.train_labels, train.labels, strict=True)
    np.testing.assert_array_equal(base.test_images, test.images, strict=True)
    np.testing.assert_array_equal(base.test_labels, test.labels, strict=True)
    assert base.class_names == names.class_names


@BOTH
@LAYOUTS
def test_every_layout_gives_the_images(tmp_path: Path, names: Wanted, layout: str) -> None:
    folder = WRITERS[layout](tmp_path / "data", names, make(names))
    assert_reads(folder, names)


@BOTH
def test_a_data_set_may_lie_in_a_folder_of_the_given_one(tmp_path: Path, names: Wanted) -> None:
    write_official(tmp_path / "one" / OFFICIAL[names.official[0]].folder, names, make(names))
    write_parquet(tmp_path / "other" / "plain_text", names, make(names))
    assert_reads(tmp_path / "one", names)
    assert_reads(tmp_path / "other", names)


def test_parquet_in_parts_and_without_metadata(tmp_path: Path) -> None:
    folder = write_parquet(tmp_path / "data", CIFAR10, make(CIFAR10, 26, 13), 12, "image")
    assert_reads(folder, CIFAR10, (26, 13))
    for path in folder.iterdir():
        pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    assert_reads(folder, CIFAR10, (26, 13))


def test_labels_go_by_the_names_that_a_file_lists(tmp_path: Path) -> None:
    backwards = CIFAR10.class_names[::-1]
    split = [each._replace(labels=9 - each.labels) for each in make(CIFAR10)]
    listing = Wanted("", "", CIFAR10.official, ("label",), backwards)
    assert_reads(write_parquet(tmp_path / "data", listing, split), CIFAR10)


def test_class_folders_go_class_by_class_where_names_repeat(tmp_path: Path) -> None:
    images = make(CIFAR10)[0].images
    for split in ("train", "test"):
        for row, name in enumerate(["Ship/10.PNG", "Ship/9.png", "Bird/9.png", "Bird/10.png"]):
            path = tmp_path / "data" / split / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(images[row]))
            (path.parent / "notes.txt").touch()
    base = load(tmp_path / "data")
    np.testing.assert_array_equal(base.train_images, images[[2, 3, 1, 0]])
    assert base.train_labels.tolist() == [2, 2, 8, 8]


# Images of your own


@BOTH
@LAYOUTS
def test_any_images_are_read_as_those_of_cifar(tmp_path: Path, names: Wanted, layout: str) -> None:
    """Made smaller, and with the classes that their files tell."""
    count = 10 * len(names.class_names)
    folder = WRITERS[layout](tmp_path / "data", names, make(names, count, 20))
    if layout == "parquet" and names is CIFAR100:  # which lists its fine classes alone
        assert load(folder, WANTED).class_names[26] == "cra"
        return
    with as_official(folder):
        base = load_own(Places(str(folder), str(tmp_path / "cache")), 32)
    assert base.class_names == names.class_names
    train = make(names, count, 20)[0]
    assert sorted(map(bytes, base.train_images)) == sorted(map(bytes, train.images))
    assert load(folder, WANTED).train_images.shape == (count, SIDE, SIDE, 3)


@pytest.mark.parametrize("categories", [False, True])
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([3, 12, 1] * 5, ("1", "3", "12")),
        ([3.0, 12.0, 1.0] * 5, ("1", "3", "12")),
        (["c3", "a1", "b2"] * 5, ("a1", "b2", "c3")),
    ],
)
def test_labels_that_number_no_classes_are_their_names(
    tmp_path: Path, labels: list[Any], classes: tuple[str, ...], categories: bool
) -> None:
    write_own_parquet(tmp_path / "data" / "images.PARQUET", labels, "labels", categories)
    base = load(tmp_path / "data", WANTED)
    assert base.class_names == classes
    assert np.bincount(np.r_[base.train_labels, base.test_labels]).tolist() == [5, 5, 5]


def list_classes(path: Path, names: list[str], column: str = "label") -> None:
    described = {"info": {"features": {column: {"names": names, "_type": "ClassLabel"}}}}
    metadata = {"huggingface": json.dumps(described)}
    pq.write_table(pq.read_table(path).replace_schema_metadata(metadata), path)


def test_classes_as_imagenet_calls_them(tmp_path: Path) -> None:
    """Synonyms with commas, two of one name; where a column lists classes, it has any name."""
    path = write_own_parquet(tmp_path / "data" / "train.parquet", [0, 1, 2] * 5, "kind")
    list_classes(path, ["tench, Tinca tinca", "crane", "crane"], "kind")
    names = load(tmp_path / "data", WANTED).class_names
    assert names == ("tench/Tinca tinca", "crane", "crane (2)")


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("place", ["", "raw", "MNIST/raw"])
def test_files_of_mnist(tmp_path: Path, compressed: bool, place: str) -> None:
    write_ubyte(tmp_path / "data" / place, compressed)
    base = load_own(Places(str(tmp_path / "data"), str(tmp_path)), 28)
    assert base.class_names == ("0", "1", "2")
    expected = np.random.default_rng(0).integers(256, size=(30, 28, 28), dtype=np.uint8)
    np.testing.assert_array_equal(base.train_images, expected[..., None])
    assert load(tmp_path / "data", WANTED).test_images.shape == (10, SIDE, SIDE, 1)


OWN: dict[str, Callable[[Path], object]] = {
    "folders": write_folders,
    "splits": lambda folder: [write_folders(folder, split=each) for each in ("train", "val")],
    "parquet": lambda folder: write_own_parquet(folder / "data" / "train.parquet", [1, 2, 3]),
    "ubyte": lambda folder: write_ubyte(folder / "MNIST" / "raw"),
    **{
        layout: lambda folder, write=write: write(folder / "data", CIFAR10, make(CIFAR10))
        for layout, write in WRITERS.items()
    },
}


@pytest.mark.parametrize("layout", OWN)
def test_all_files_that_are_read_are_known_by_their_names(tmp_path: Path, layout: str) -> None:
    """So that a directory on shared storage is copied whole."""
    OWN[layout](tmp_path)
    place = tmp_path / "data" if layout in WRITERS else tmp_path
    found = find_files(place, visible(place), WANTED)
    assert found is not None
    for path in found.files:
        assert may_belong(path.relative_to(place).as_posix())
    for other in ("labels.csv", "a/b/c/photo.png", ".git/config", "results/cells/train.parquet"):
        assert not may_belong(other)


# The prepared form


def test_the_second_load_reads_no_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load(write_folders(tmp_path / "data"), WANTED)
    monkeypatch.setattr("study.tasks.mosaics.labelled_images._read", None)
    assert_equal(load(tmp_path / "data", WANTED), first)


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    folder = write_official(tmp_path / "data", CIFAR10, make(CIFAR10))
    load(folder)
    status = (folder / "test_batch").stat()
    os.utime(folder / "test_batch", ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    load(folder)
    assert len(entries(tmp_path / "cache" / "prepared")) == 2


@needs_data
def test_the_real_images(tmp_path: Path) -> None:
    base = load_cifar10(Places(str(REAL_DATA / "cifar10"), str(tmp_path)))
    assert base.train_images.shape == (50_000, 32, 32, 3)
    np.testing.assert_array_equal(np.bincount(base.train_labels), [5_000] * 10)
    np.testing.assert_array_equal(np.bincount(base.test_labels), [1_000] * 10)
    assert base.digest == "064b8f2ed0ea63ce"


# What cannot be used: each breaks a whole data set, and the message holds what it broke.


class _Hostile:
    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.call[0], self.call[1:]


@pytest.mark.parametrize("file", ["data_batch_3", "batches.meta"])
def test_a_pickle_of_another_checksum_is_not_opened(tmp_path: Path, file: str) -> None:
    folder, mark = write_official(tmp_path / "data", CIFAR10, make(CIFAR10)), tmp_path / "mark"
    with as_official(folder):
        (folder / file).write_bytes(pickle.dumps(_Hostile(os.system, f"touch {mark}")))
        with pytest.raises(RequestError, match=f"{folder} cannot be read .*checksum"):
            load_cifar10(Places(str(folder), str(tmp_path / "cache")))
    assert not mark.exists()
    pickle.loads((folder / file).read_bytes())
    assert mark.exists()  # so it was hostile


def set_row(path: Path, column: str, row: int, value: object) -> None:
    table = pq.read_table(path)
    values = table[column].to_pylist()
    values[row] = value
    index = table.column_names.index(column)
    pq.write_table(table.set_column(index, column, pa.array(values, table[column].type)), path)


def damaged_png() -> bytes:
    """A PNG that opens, but whose pixels cannot be decoded."""
    data = bytearray(encoded(make(CIFAR10)[0].images[0]))
    data[60:120] = bytes(60)
    return bytes(data)


TRAIN = "train-00000-of-00001.parquet"
PARQUET: dict[str, tuple[Callable[[Path], object], str]] = {
    "no test split": (
        lambda path: (path.parent / "test-00000-of-00001.parquet").unlink(),
        "{folder} has no test split",
    ),
    "missing part": (
        lambda path: path.rename(path.with_name("train-00001-of-00003.parquet")),
        "train-00001-of-00003.parquet is one of 3 files, 1 of them",
    ),
    "truncated": (lambda path: os.truncate(path, 3000), "{path} cannot be read ("),
    "no label": (
        lambda path: set_row(path, "label", 7, None),
        "{path} cannot be read (it has no ",
    ),
    "no class": (lambda path: set_row(path, "label", 7, -1), "no label in row 7"),
    "no label column": (
        lambda path: pq.write_table(pq.read_table(path).drop_columns("label"), path),
        "{path} cannot be read (it has no column label, only img, coarse_label)",
    ),
    "damaged image": (
        lambda path: set_row(path, "img", 7, {"bytes": damaged_png(), "path": ""}),
        "row 7 of {path} cannot be read (",
    ),
    "other classes": (
        lambda path: list_classes(path, [each[:-1] for each in CIFAR10.class_names]),
        "unknown class",
    ),
    "two data sets": (
        lambda path: shutil.copytree(path.parent, path.parent / "other"),
        "{folder} holds several data sets, in {folder}, {folder}/other.",
    ),
}


@pytest.mark.parametrize("case", PARQUET)
def test_refuses_parquet(tmp_path: Path, case: str) -> None:
    folder = write_parquet(tmp_path / "data", CIFAR10, make(CIFAR10))
    break_it, expected = PARQUET[case]
    break_it(folder / TRAIN)
    assert expected.format(folder=folder, path=folder / TRAIN) in refusal(folder)


def test_refuses_the_other_data_set(tmp_path: Path) -> None:
    ten = write_parquet(tmp_path / "ten", CIFAR10, make(CIFAR10))
    assert "no column fine_label, only img, label" in refusal(ten, CIFAR100)
    write_official(tmp_path / "official" / "cifar-100-python", CIFAR100, make(CIFAR100))
    assert "holds only cifar-100-python: no CIFAR-10 found." in refusal(tmp_path / "official")


def a_png(folder: Path) -> Path:
    return sorted((folder / "train").rglob("*.png"))[0]


CIFAR_FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no directory": (shutil.rmtree, "{folder} does not exist."),
    "no test split": (lambda folder: shutil.rmtree(folder / "test"), "{folder} has no test split"),
    "no such class": (
        lambda folder: a_png(folder).parent.rename(folder / "train" / "airplne"),
        "unknown class 'airplne'. Did you mean 'airplane'?",
    ),
    "damaged": (lambda folder: a_png(folder).write_bytes(damaged_png()), "{png} cannot be read ("),
}


@pytest.mark.parametrize("case", CIFAR_FOLDERS)
def test_refuses_folders_of_cifar(tmp_path: Path, case: str) -> None:
    folder = write_class_folders(tmp_path / "data", CIFAR10, make(CIFAR10))
    png = a_png(folder)
    break_it, expected = CIFAR_FOLDERS[case]
    break_it(folder)
    assert expected.format(folder=folder, png=png) in refusal(folder)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


OWN_FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no directory": (shutil.rmtree, "{folder} does not exist."),
    "empty": (
        lambda folder: [shutil.rmtree(each) for each in folder.iterdir()],
        "{folder} is empty: no images of your own found. Accepted layouts: class folders (DIR/",
    ),
    "no class folders": (
        lambda folder: [shutil.rmtree(folder), _write(folder / "1.png", encoded(made_up(0, 0)))],
        "{folder} holds only 1.png: no images of your own found.",
    ),
    "one class": (
        lambda folder: [shutil.rmtree(folder / each) for each in ("stork", "reed", "water")],
        "{folder} holds 1 class (heron). Mosaics take 3 or more",
    ),
    "a class without images": (
        lambda folder: (folder / "egret").mkdir(),
        "{folder}/egret is the folder of a class and holds no image",
    ),
    "a file that is no image": (
        lambda folder: _write(folder / "heron" / "notes.txt", b"x"),
        "{folder}/heron/notes.txt is no image, among images of the class heron.",
    ),
    "a damaged image": (
        lambda folder: os.truncate(folder / "reed" / "3.png", 60),
        "{folder}/reed/3.png cannot be read (",
    ),
    "a class that is called rest": (
        lambda folder: (folder / "reed").rename(folder / "rest"),
        "{folder}: a class is called 'rest'",
    ),
    "no train split": (
        lambda folder: [shutil.rmtree(folder), write_folders(folder, split="test")],
        "there is test/, but no train split.",
    ),
    "a class to test alone": (
        lambda folder: [
            shutil.rmtree(folder),
            write_folders(folder, split="train"),
            write_folders(folder, {"egret": 2}, split="test"),
        ],
        "unknown class 'egret'",
    ),
    "classes that get one name": (
        lambda folder: write_folders(folder, {"+": 2, ",": 2}),
        "{folder}: the classes '+' and ',' would both be called '/'",
    ),
}


@pytest.mark.parametrize("case", OWN_FOLDERS)
def test_refuses_folders_of_your_own(tmp_path: Path, case: str) -> None:
    folder = write_folders(tmp_path / "data")
    break_it, expected = OWN_FOLDERS[case]
    break_it(folder)
    assert expected.format(folder=folder) in refusal(folder, WANTED)


OTHERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no image column": (
        lambda folder: _write_table(folder / "a.parquet", {"label": [1, 2, 3]}),
        "a.parquet cannot be read (it has no column of images",
    ),
    "no label column": (
        lambda folder: write_own_parquet(folder / "a.parquet", [1, 2, 3], column="kind"),
        "a.parquet cannot be read (it has no column label, only image, kind)",
    ),
    "a label that is missing": (
        lambda folder: write_own_parquet(folder / "a.parquet", [1.0, 2.0, np.nan, 3.0]),
        "a.parquet cannot be read (it has no label in row 2)",
    ),
    "a blank label": (
        lambda folder: write_own_parquet(folder / "a.parquet", ["a", "b", "c", " "]),
        "a.parquet cannot be read (it has no label in row 3)",
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
    "a file of MNIST is cut off": (
        lambda folder: os.truncate(write_ubyte(folder / "raw") / "train-images-idx3-ubyte", 99),
        "train-images-idx3-ubyte cannot be read (",
    ),
}


def _write_table(path: Path, columns: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize("case", OTHERS)
def test_refuses_other_layouts_of_your_own(tmp_path: Path, case: str) -> None:
    write_it, expected = OTHERS[case]
    write_it(tmp_path / "data")
    assert expected.format(folder=tmp_path / "data") in refusal(tmp_path / "data", WANTED)
