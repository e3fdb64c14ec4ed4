"""The layouts of CIFAR, on small made-up files: equal when whole, one clear line when not."""

from __future__ import annotations

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
from study.tasks.mosaics.cifar import CIFAR10, CIFAR100
from study.tasks.mosaics.layouts import FileNames, Images, find, read
from tests.made_up.cifar import (
    WRITERS,
    Split,
    encoded,
    make,
    python2_pickle,
    write_class_folders,
    write_official,
    write_parquet,
)

BOTH = pytest.mark.parametrize("names", [CIFAR10, CIFAR100], ids=["cifar10", "cifar100"])
LAYOUTS = pytest.mark.parametrize("layout", WRITERS)


def read_dir(folder: Path, names: FileNames = CIFAR10) -> Split:
    return read(find(folder, names), names)


def assert_reads(folder: Path, names: FileNames, expected: Split) -> None:
    """Bitwise."""
    for got, whole in zip(read_dir(folder, names), expected, strict=True):
        np.testing.assert_array_equal(got.images, whole.images, strict=True)
        np.testing.assert_array_equal(got.labels, whole.labels, strict=True)


def refusal(folder: Path, names: FileNames = CIFAR10) -> str:
    """The message of the `RequestError` of reading `folder`: one line, not a long one."""
    with pytest.raises(RequestError) as caught:
        read_dir(folder, names)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


@BOTH
@LAYOUTS
def test_every_layout_gives_the_images(tmp_path: Path, names: FileNames, layout: str) -> None:
    folder = WRITERS[layout](tmp_path / "data", names, make(names))
    assert find(folder, names).layout == layout
    assert_reads(folder, names, make(names))


@BOTH
def test_official_parent_may_be_given(tmp_path: Path, names: FileNames) -> None:
    write_official(tmp_path / names.folder, names, make(names))
    assert_reads(tmp_path, names, make(names))


@pytest.mark.parametrize("subfolder", ["data", "plain_text", "cifar100"])
def test_parquet_may_lie_in_a_folder_of_the_given_one(tmp_path: Path, subfolder: str) -> None:
    write_parquet(tmp_path / subfolder, CIFAR100, make(CIFAR100))
    assert_reads(tmp_path, CIFAR100, make(CIFAR100))


def test_parquet_shards_are_put_in_order(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", CIFAR10, make(CIFAR10, 26, 13), shards=12, column="image")
    assert_reads(tmp_path, CIFAR10, make(CIFAR10, 26, 13))


def test_parquet_without_metadata(tmp_path: Path) -> None:
    folder = write_parquet(tmp_path / "data", CIFAR10, make(CIFAR10))
    for path in folder.iterdir():
        pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    assert_reads(tmp_path, CIFAR10, make(CIFAR10))


def test_class_folders_go_class_by_class_where_names_repeat(tmp_path: Path) -> None:
    images = make(CIFAR10)[0].images
    for split in ("train", "test"):
        for row, name in enumerate(["ship/10.png", "ship/9.png", "bird/9.png", "bird/10.png"]):
            path = tmp_path / split / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(images[row]))
    expected = Images(images[[2, 3, 1, 0]], np.array([2, 2, 8, 8]))
    assert_reads(tmp_path, CIFAR10, (expected, expected))


def test_class_folders_names_formats_and_other_files(tmp_path: Path) -> None:
    grey = np.full((32, 32), 77, np.uint8)
    for split in ("train", "test"):
        for row, (folder, kind) in enumerate(
            [("Cat", "PNG"), ("FROG", "BMP"), ("truck", "JPEG"), ("dog", "WebP")]
        ):
            path = tmp_path / split / folder / f"{row}.{kind}"
            path.parent.mkdir(parents=True)
            path.write_bytes(encoded(grey, kind))
            (path.parent / "notes.txt").touch()
            (path.parent / ".hidden.png").touch()
        (tmp_path / split / ".cache").mkdir()
        (tmp_path / split / "labels.csv").touch()
    train, _ = read_dir(tmp_path)
    np.testing.assert_array_equal(train.labels, [3, 6, 9, 5])
    assert (abs(train.images.astype(int) - 77) <= 1).all()


# Hostile files


class _Hostile:
    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.call[0], self.call[1:]


@pytest.mark.parametrize("file", ["data_batch_3", "batches.meta"])
@pytest.mark.parametrize("protocol", [0, 4])
@pytest.mark.parametrize("means", ["system", "open", "eval"])
def test_a_hostile_pickle_executes_nothing(
    tmp_path: Path, file: str, protocol: int, means: str
) -> None:
    mark = tmp_path / "mark"
    call = {
        "system": (os.system, f"touch {mark}"),
        "open": (open, str(mark), "w"),
        "eval": (eval, f"open({str(mark)!r}, 'w').close()"),
    }[means]
    folder = write_official(tmp_path / "data", CIFAR10, make(CIFAR10))
    (folder / file).write_bytes(pickle.dumps({"data": _Hostile(*call)}, protocol))
    message = refusal(folder)
    assert str(folder / file) in message
    assert "as no file of CIFAR does" in message
    assert not mark.exists()


def test_the_hostile_pickle_is_one(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    pickle.loads(pickle.dumps(_Hostile(os.system, f"touch {mark}"), 2))
    assert mark.exists()


# Files that cannot be used: each breaks a whole data set and returns what the message must hold.


def test_refuses_a_directory(tmp_path: Path) -> None:
    assert f"{tmp_path}/none does not exist." in refusal(tmp_path / "none")
    assert f"{tmp_path} is empty: no CIFAR-10 found. Accepted layouts: " in refusal(tmp_path)
    (tmp_path / "data_batch_1.bin").touch()
    assert "is not a directory. Unpack it" in refusal(tmp_path / "data_batch_1.bin")
    assert f"{tmp_path} holds only data_batch_1.bin: no CIFAR-10 found." in refusal(tmp_path)


def rewrite(path: Path, **changes: object) -> Path:
    """Changes keys of an official file; None removes one."""
    content = pickle.loads(path.read_bytes(), encoding="latin1")
    content = {key: value for key, value in {**content, **changes}.items() if value is not None}
    path.write_bytes(python2_pickle(content))
    return path


OFFICIAL = {
    "missing batch": lambda folder: (
        (folder / "data_batch_4").unlink(),
        "data_batch_4 not found",
    ),
    "truncated": lambda folder: (
        os.truncate(folder / "data_batch_2", 5000),
        "data_batch_2 cannot be read (",
    ),
    "no pickle": lambda folder: (
        (folder / "test_batch").write_text("<html>not found</html>"),
        "test_batch cannot be read (",
    ),
    "labels are fractions": lambda folder: (
        rewrite(folder / "data_batch_2", labels=[0, 9, 1.5, 3]),
        "data_batch_2 cannot be read (",
    ),
    "too few labels": lambda folder: (
        rewrite(folder / "data_batch_2", labels=[1, 2]),
        "data_batch_2 cannot be read (",
    ),
    "no labels": lambda folder: (
        rewrite(folder / "data_batch_2", labels=None, fine_labels=[1]),
        "data_batch_2 cannot be read (it has no 'labels').",
    ),
    "floats": lambda folder: (
        rewrite(folder / "test_batch", data=np.zeros((10, 3072))),
        "test_batch cannot be read (its pixels are float64, must be uint8)",
    ),
    "other order": lambda folder: (
        rewrite(folder / "batches.meta", label_names=list(CIFAR10.class_names[::-1])),
        "batches.meta cannot be read (it calls class 0 'truck', CIFAR-10 'airplane').",
    ),
}


@pytest.mark.parametrize("case", OFFICIAL)
def test_refuses_official(tmp_path: Path, case: str) -> None:
    folder = write_official(tmp_path / "data", CIFAR10, make(CIFAR10))
    _, expected = OFFICIAL[case](folder)
    message = refusal(folder)
    assert str(folder) in message
    assert expected in message


def change_table(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def set_column(path: Path, index: int, column: str, values: list) -> None:
    change_table(path, lambda table: table.set_column(index, column, pa.array(values)))


def set_row(path: Path, column: str, row: int, value: object) -> None:
    def change(table: pa.Table) -> pa.Table:
        values = table[column].to_pylist()
        values[row] = value
        index = table.column_names.index(column)
        return table.set_column(index, column, pa.array(values, table[column].type))

    change_table(path, change)


def image_row(content: bytes | None) -> dict[str, object]:
    return {"bytes": content, "path": "x.png"}


def damaged_png() -> bytes:
    """A PNG that opens, but whose pixels cannot be decoded."""
    data = bytearray(encoded(make(CIFAR10)[0].images[0]))
    data[60:120] = bytes(60)
    return bytes(data)


TRAIN_PARQUET = "train-00000-of-00001.parquet"
PARQUET: dict[str, tuple[Callable[[Path], object], str]] = {
    "no test split": (
        lambda path: (path.parent / "test-00000-of-00001.parquet").unlink(),
        "{folder} has no test*.parquet: the test split is missing.",
    ),
    "missing shard": (
        lambda path: path.rename(path.with_name("train-00001-of-00003.parquet")),
        "train-00001-of-00003.parquet is one of 3 files, 1 of them found in {folder}.",
    ),
    "truncated": (lambda path: os.truncate(path, 3000), f"{TRAIN_PARQUET} cannot be read ("),
    "a Git LFS pointer": (
        lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\n"),
        f"{TRAIN_PARQUET} cannot be read (",
    ),
    "no label": (
        lambda path: set_row(path, "label", 7, None),
        f"{TRAIN_PARQUET} cannot be read (it has no label in row 7).",
    ),
    "no label column": (
        lambda path: change_table(path, lambda table: table.drop_columns("label")),
        f"{TRAIN_PARQUET} cannot be read (it has no column label, only img).",
    ),
    "images are no struct": (
        lambda path: set_column(path, 0, "img", ["x"] * 20),
        f"{TRAIN_PARQUET} cannot be read (",
    ),
    "damaged image": (
        lambda path: set_row(path, "img", 7, image_row(damaged_png())),
        f"row 7 of {{folder}}/{TRAIN_PARQUET} cannot be read (",
    ),
    "no image": (
        lambda path: set_row(path, "img", 7, image_row(None)),
        f"row 7 of {{folder}}/{TRAIN_PARQUET} cannot be read (cannot identify image file).",
    ),
    "other size": (
        lambda path: set_row(path, "img", 7, image_row(encoded(np.zeros((16, 28, 3), np.uint8)))),
        "(it is 28 x 16 pixels, must be 32 x 32).",
    ),
    "other classes": (
        lambda path: change_table(
            path,
            lambda table: table.replace_schema_metadata(
                {"huggingface": table.schema.metadata[b"huggingface"].replace(b"frog", b"toad")}
            ),
        ),
        f"{TRAIN_PARQUET} cannot be read (it calls class 6 'toad', CIFAR-10 'frog').",
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
    break_it(folder / TRAIN_PARQUET)
    assert expected.format(folder=folder) in refusal(folder)


def test_refuses_the_other_data_set(tmp_path: Path) -> None:
    ten = write_parquet(tmp_path / "ten", CIFAR10, make(CIFAR10))
    assert "(it has no column fine_label, only img, label)." in refusal(ten, CIFAR100)
    hundred = write_parquet(tmp_path / "hundred", CIFAR100, make(CIFAR100))
    assert "(it has no column label, only img, fine_label, coarse_label)." in refusal(hundred)
    write_official(tmp_path / "official" / CIFAR100.folder, CIFAR100, make(CIFAR100))
    message = refusal(tmp_path / "official")
    assert "holds only cifar-100-python: no CIFAR-10 found." in message


def a_png(folder: Path) -> Path:
    return sorted((folder / "train").rglob("*.png"))[0]


FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no test split": (
        lambda folder: shutil.rmtree(folder / "test"),
        "{folder} has no folder test/: the test split is missing.",
    ),
    "empty split": (
        lambda folder: (shutil.rmtree(folder / "test"), (folder / "test").mkdir()),
        "{folder}/test holds no images in class folders such as airplane/ (.png, .jpg,",
    ),
    "no such class": (
        lambda folder: (folder / "train" / "autombile").mkdir(),
        "{folder}/train/autombile: unknown CIFAR-10 class 'autombile'. Did you mean 'automobile'?",
    ),
    "other size": (
        lambda folder: a_png(folder).write_bytes(encoded(np.zeros((64, 48, 3), np.uint8))),
        "{png} cannot be read (it is 48 x 64 pixels, must be 32 x 32).",
    ),
    "damaged": (lambda folder: a_png(folder).write_bytes(damaged_png()), "{png} cannot be read ("),
    "an image format of which decoding is not trusted": (
        lambda folder: a_png(folder).write_bytes(encoded(np.zeros((32, 32), np.uint8), "TIFF")),
        "{png} cannot be read (cannot identify image file).",
    ),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_refuses_class_folders(tmp_path: Path, case: str) -> None:
    folder = write_class_folders(tmp_path / "data", CIFAR10, make(CIFAR10))
    png = a_png(folder)
    break_it, expected = FOLDERS[case]
    break_it(folder)
    assert expected.format(folder=folder, png=png) in refusal(folder)
