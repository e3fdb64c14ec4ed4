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
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_official_files_pickled_again_by_python_3(
    tmp_path: Path, names: FileNames, protocol: int
) -> None:
    folder = write_official(
        tmp_path / "data", names, make(names), lambda value: pickle.dumps(value, protocol)
    )
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


@pytest.mark.parametrize("file", ["data_batch_3", "test_batch", "batches.meta"])
@pytest.mark.parametrize("protocol", [0, 2, 4])
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
    assert "which no image needs" in message
    assert not mark.exists()


def test_the_hostile_pickle_is_one(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    pickle.loads(pickle.dumps(_Hostile(os.system, f"touch {mark}"), 2))
    assert mark.exists()


# Files that cannot be used: each breaks a whole data set and returns what the message must hold.


def no_directory(folder: Path) -> list[str]:
    shutil.rmtree(folder)
    return [str(folder), "does not exist", "--data-dir"]


def a_file(folder: Path) -> list[str]:
    shutil.rmtree(folder)
    folder.touch()
    return [str(folder), "is not a directory", "Unpack"]


def empty(folder: Path) -> list[str]:
    shutil.rmtree(folder)
    folder.mkdir()
    return [str(folder), "is empty", "cifar-10-batches-py/", "Parquet", "class folders"]


def other_layout(folder: Path) -> list[str]:
    shutil.rmtree(folder)
    folder.mkdir()
    for name in ("data_batch_1.bin", "test_batch.bin"):
        (folder / name).touch()
    return [str(folder), "data_batch_1.bin", "cifar-10-batches-py/", "Parquet", "class folders"]


@pytest.mark.parametrize("break_it", [no_directory, a_file, empty, other_layout])
def test_refuses_directory(tmp_path: Path, break_it: Callable[[Path], list[str]]) -> None:
    folder = write_class_folders(tmp_path / "data", CIFAR10, make(CIFAR10))
    expected = break_it(folder)
    message = refusal(folder)
    assert all(part in message for part in expected), message


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
    "missing test split": lambda folder: (
        (folder / "test_batch").unlink(),
        "test_batch not found",
    ),
    "missing meta": lambda folder: ((folder / "batches.meta").unlink(), "batches.meta not found"),
    "truncated": lambda folder: (
        os.truncate(folder / "data_batch_2", 5000),
        "data_batch_2 is damaged",
    ),
    "empty file": lambda folder: (os.truncate(folder / "test_batch", 0), "test_batch is damaged"),
    "no pickle": lambda folder: (
        (folder / "test_batch").write_text("<html>not found</html>"),
        "test_batch is damaged",
    ),
    "no dictionary": lambda folder: (
        (folder / "test_batch").write_bytes(pickle.dumps(5)),
        "test_batch is damaged or no file of CIFAR-10 (it holds one int, no dictionary).",
    ),
    "label out of range": lambda folder: (
        rewrite(folder / "data_batch_2", labels=[0, 9, 12, 3]),
        f"labels out of range: 12 at image 2 of {folder / 'data_batch_2'}, must be 0..9.",
    ),
    "negative label": lambda folder: (
        rewrite(folder / "data_batch_2", labels=[0, 9, 1, -1]),
        f"labels out of range: -1 at image 3 of {folder / 'data_batch_2'}, must be 0..9.",
    ),
    "labels are text": lambda folder: (
        rewrite(folder / "data_batch_2", labels=["a", "b", "c", "d"]),
        "data_batch_2 must be integers",
    ),
    "ragged labels": lambda folder: (
        rewrite(folder / "data_batch_2", labels=[[1], [1, 2], 3, 4]),
        "data_batch_2 must be integers",
    ),
    "too few labels": lambda folder: (
        rewrite(folder / "data_batch_2", labels=[1, 2]),
        "data_batch_2 must be 4 of int64, one an image, got int64 of shape (2,)",
    ),
    "no labels": lambda folder: (
        rewrite(folder / "data_batch_2", labels=None, fine_labels=[1]),
        "data_batch_2 is no file of CIFAR-10: it has no 'labels', only",
    ),
    "no data": lambda folder: (
        rewrite(folder / "data_batch_2", data=None),
        "data_batch_2 is no file of CIFAR-10: it has no 'data'",
    ),
    "floats": lambda folder: (
        rewrite(folder / "test_batch", data=np.zeros((10, 3072))),
        "test_batch must be uint8 (N, 3072), got float64 (10, 3072)",
    ),
    "other width": lambda folder: (
        rewrite(folder / "test_batch", data=np.zeros((10, 784), np.uint8)),
        "test_batch must be uint8 (N, 3072), got uint8 (10, 784)",
    ),
    "data is a list": lambda folder: (
        rewrite(folder / "test_batch", data=[1, 2]),
        "test_batch must be uint8 (N, 3072), got list",
    ),
    "other class": lambda folder: (
        rewrite(folder / "batches.meta", label_names=["plane", *CIFAR10.class_names[1:]]),
        "batches.meta calls class 0 'plane', CIFAR-10 calls it 'airplane'",
    ),
    "other order": lambda folder: (
        rewrite(folder / "batches.meta", label_names=list(CIFAR10.class_names[::-1])),
        "batches.meta calls class 0 'truck'",
    ),
    "fewer classes": lambda folder: (
        rewrite(folder / "batches.meta", label_names=["cat"]),
        "batches.meta lists another number of classes than CIFAR-10 has: 1, not 10.",
    ),
    "no classes": lambda folder: (
        rewrite(folder / "batches.meta", label_names=None),
        "batches.meta is no file of CIFAR-10: it has no 'label_names'",
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
ROW_7 = f"row 7 of {{folder}}/{TRAIN_PARQUET}"
PARQUET: dict[str, tuple[Callable[[Path], object], str]] = {
    "no test split": (
        lambda path: (path.parent / "test-00000-of-00001.parquet").unlink(),
        "{folder} has no test*.parquet: the test split is missing.",
    ),
    "no train split": (lambda path: path.unlink(), "{folder} has no train*.parquet"),
    "missing shard": (
        lambda path: path.rename(path.with_name("train-00001-of-00003.parquet")),
        "train-00001-of-00003.parquet is one of 3 files, 1 of them found in {folder}.",
    ),
    "truncated": (lambda path: os.truncate(path, 3000), f"{TRAIN_PARQUET} is damaged"),
    "empty file": (lambda path: os.truncate(path, 0), f"{TRAIN_PARQUET} is damaged"),
    "a Git LFS pointer": (
        lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\n"),
        f"{TRAIN_PARQUET} is damaged or no Parquet file",
    ),
    "label out of range": (
        lambda path: set_row(path, "label", 7, 10),
        f"labels out of range: 10 at image 7 of {{folder}}/{TRAIN_PARQUET}, must be 0..9.",
    ),
    "hidden label": (
        lambda path: set_row(path, "label", 7, -1),
        f"labels out of range: -1 at image 7 of {{folder}}/{TRAIN_PARQUET}, must be 0..9.",
    ),
    "no label": (
        lambda path: set_row(path, "label", 7, None),
        f"{{folder}}/{TRAIN_PARQUET} has no label in row 7.",
    ),
    "labels are text": (
        lambda path: change_table(
            path,
            lambda table: table.set_column(1, "label", table["label"].cast(pa.string())),
        ),
        f"column label of {{folder}}/{TRAIN_PARQUET} must hold whole numbers, got string.",
    ),
    "no label column": (
        lambda path: change_table(path, lambda table: table.drop_columns("label")),
        f"{{folder}}/{TRAIN_PARQUET} has no column label, only img.",
    ),
    "no image column": (
        lambda path: change_table(path, lambda table: table.drop_columns("img")),
        f"{{folder}}/{TRAIN_PARQUET} has no column img, only label.",
    ),
    "images are no struct": (
        lambda path: change_table(
            path, lambda table: table.set_column(0, "img", table["label"].cast(pa.string()))
        ),
        f"column img of {{folder}}/{TRAIN_PARQUET} must be a struct {{{{bytes, path}}}}",
    ),
    "damaged image": (
        lambda path: set_row(path, "img", 7, image_row(damaged_png())),
        f"{ROW_7} is damaged or no PNG, JPEG, BMP or WebP image",
    ),
    "truncated image": (
        lambda path: set_row(path, "img", 7, image_row(damaged_png()[:50])),
        f"{ROW_7} is damaged",
    ),
    "no image": (
        lambda path: set_row(path, "img", 7, image_row(b"GIF89a")),
        f"{ROW_7} is damaged or no PNG, JPEG, BMP or WebP image (unknown format).",
    ),
    "no bytes": (
        lambda path: set_row(path, "img", 7, image_row(None)),
        f"{ROW_7} holds no image bytes",
    ),
    "no row": (lambda path: set_row(path, "img", 7, None), ROW_7),
    "other size": (
        lambda path: set_row(path, "img", 7, image_row(encoded(np.zeros((16, 28, 3), np.uint8)))),
        f"{ROW_7} is 28 x 16 pixels, must be 32 x 32.",
    ),
    "16 bits": (
        lambda path: set_row(path, "img", 7, image_row(encoded(np.zeros((32, 32), np.uint16)))),
        f"{ROW_7} has more than 8 bits a channel",
    ),
    "other classes": (
        lambda path: change_table(
            path,
            lambda table: table.replace_schema_metadata(
                {"huggingface": table.schema.metadata[b"huggingface"].replace(b"frog", b"toad")}
            ),
        ),
        f"{{folder}}/{TRAIN_PARQUET} calls class 6 'toad', CIFAR-10 calls it 'frog'.",
    ),
    "two data sets": (
        lambda path: shutil.copytree(path.parent, path.parent / "other"),
        "{folder} holds Parquet files of several data sets, in {folder}, {folder}/other.",
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
    assert "has no column fine_label, only img, label." in refusal(ten, CIFAR100)
    hundred = write_parquet(tmp_path / "hundred", CIFAR100, make(CIFAR100))
    assert "has no column label, only img, fine_label, coarse_label." in refusal(hundred)
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
    "no train split": (
        lambda folder: shutil.rmtree(folder / "train"),
        "{folder} has no folder train/: the train split is missing.",
    ),
    "empty split": (
        lambda folder: (shutil.rmtree(folder / "test"), (folder / "test").mkdir()),
        "{folder}/test holds no images in class folders such as airplane/ (.png, .jpg,",
    ),
    "images without class folders": (
        lambda folder: (
            shutil.rmtree(folder / "test"),
            (folder / "test").mkdir(),
            (folder / "test" / "0.png").touch(),
        ),
        "{folder}/test holds no images in class folders",
    ),
    "no such class": (
        lambda folder: (folder / "train" / "autombile").mkdir(),
        "{folder}/train/autombile: unknown CIFAR-10 class 'autombile'. Did you mean 'automobile'?",
    ),
    "other size": (
        lambda folder: a_png(folder).write_bytes(encoded(np.zeros((64, 48, 3), np.uint8))),
        "{png} is 48 x 64 pixels, must be 32 x 32.",
    ),
    "truncated": (lambda folder: os.truncate(a_png(folder), 1000), "{png} is damaged"),
    "damaged": (lambda folder: a_png(folder).write_bytes(damaged_png()), "{png} is damaged"),
    "empty file": (lambda folder: os.truncate(a_png(folder), 0), "{png} is damaged"),
    "a folder": (
        lambda folder: (folder / "train" / "bird" / "x.png").mkdir(parents=True, exist_ok=True),
        "{folder}/train/bird/x.png cannot be read (Is a directory).",
    ),
    "an image format of which decoding is not trusted": (
        lambda folder: a_png(folder).write_bytes(encoded(np.zeros((32, 32), np.uint8), "TIFF")),
        "{png} is damaged or no PNG, JPEG, BMP or WebP image (unknown format).",
    ),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_refuses_class_folders(tmp_path: Path, case: str) -> None:
    folder = write_class_folders(tmp_path / "data", CIFAR10, make(CIFAR10))
    png = a_png(folder)
    break_it, expected = FOLDERS[case]
    break_it(folder)
    assert expected.format(folder=folder, png=png) in refusal(folder)
