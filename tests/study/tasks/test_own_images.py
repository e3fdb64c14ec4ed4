"""Images of your own: every layout, how they are resized and split, and one clear line if not."""

from __future__ import annotations

import json
import os
import shutil
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from study import run, tasks
from study.cell import NetworkSettings, Options
from study.errors import RequestError
from study.models import build, names, takes_network
from study.results import Results
from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.cifar import CIFAR10, CIFAR100
from study.tasks.mosaics.layouts import find_own, may_be_own
from study.tasks.mosaics.layouts.common import FileNames, decode, fitted
from study.tasks.mosaics.own_images import TEST_SHARE, VALIDATION_SHARE, load_own
from study.tasks.sources.places import Places
from tests.conftest import run_without_ray
from tests.made_up.cifar import make, write_official, write_parquet
from tests.made_up.commands import called, one_line
from tests.made_up.images import (
    COUNTS,
    SIDE,
    encoded,
    made_up,
    write_folders,
    write_own_parquet,
    write_ubyte,
)
from tests.study.tasks.test_base_images import assert_equal, entries

KNOWN = (CIFAR10, CIFAR100)


def load(folder: Path, pixels: int = SIDE, cache: str = "cache") -> BaseImages:
    return load_own(Places(str(folder), str(folder.parent / cache)), pixels)


def refusal(folder: Path) -> str:
    """The message of the `RequestError` of reading `folder`: one line, not a long one."""
    with pytest.raises(RequestError) as caught:
        load(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folders(tmp_path / "data")


# Class folders and their splits


def test_classes_are_the_folders(folder: Path) -> None:
    base = load(folder)
    assert base.class_names == ("heron", "reed", "stork", "water")
    assert (base.train_images.shape[1:], base.max_value) == ((SIDE, SIDE, 3), 255)
    counts = [np.bincount(each).tolist() for each in (base.train_labels, base.test_labels)]
    assert counts == [[12, 16, 8, 4], [3, 4, 2, 1]]


def test_without_splits_a_share_of_each_class_is_drawn_to_test(folder: Path) -> None:
    one = load(folder)
    assert len(one.test_labels) == round(TEST_SHARE * sum(COUNTS.values()))
    assert_equal(load(folder, cache="another"), one)
    assert "drawn by hash" in one.notes[0]
    every = {image.tobytes() for image in (*one.train_images, *one.test_images)}
    assert len(every) == sum(COUNTS.values())  # each once


@pytest.mark.parametrize("name", ["test", "Val", "valid", "validation", "dev", "TESTING", "test "])
def test_a_split_beside_train_tests(tmp_path: Path, name: str) -> None:
    write_folders(tmp_path / "data", split="train")
    base = load(write_folders(tmp_path / "data", {"heron": 2, "stork": 3}, name, first=50))
    assert np.bincount(base.train_labels).tolist() == [15, 20, 10, 5]
    assert np.bincount(base.test_labels, minlength=4).tolist() == [2, 0, 3, 0]
    assert f"train/ trains and validates, {name}/ tests" in base.notes[0]
    assert "few test images: heron (2), reed (0), stork (3), water (0)" in base.notes[2]


def test_a_validation_split_beside_a_test_split_is_trained_on_too(tmp_path: Path) -> None:
    """The task keeps a share of all for validation."""
    for split, first in (("train", 0), ("val", 50), ("test", 80)):
        write_folders(tmp_path / "data", split=split, first=first)
    base = load(tmp_path / "data")
    assert len(base.train_labels) == 2 * len(base.test_labels) == 2 * sum(COUNTS.values())
    assert "train/ and val/ train and validate, test/ tests" in base.notes[0]


def test_a_train_split_alone_is_divided(folder: Path) -> None:
    expected = load(folder)
    folder.rename(folder.parent / "train")
    (folder / "train").mkdir(parents=True)
    (folder.parent / "train").rename(folder / "train")
    base = load(folder)
    assert base.digest == expected.digest
    assert "; train/ alone is there: 20 % of the images of each class, drawn" in base.notes[0]


def test_folders_named_as_splits_may_be_classes(folder: Path) -> None:
    (folder / "water").rename(folder / "test")
    assert load(folder).class_names == ("heron", "reed", "stork", "test")


def test_other_files_beside_folders_and_hidden_ones_are_left_alone(folder: Path) -> None:
    expected = load(folder)
    (folder / "labels.csv").touch()
    (folder / ".cache").mkdir()
    (folder / "heron" / ".DS_Store").touch()
    (folder / "__MACOSX" / "heron").mkdir(parents=True)
    for name in ("._0.png", "~$0.png", "0.png~", "Thumbs.db", "Icon\r"):
        (folder / "heron" / name).write_bytes(b"no image")
    for name in (".ipynb_checkpoints", "@eaDir"):
        (folder / "heron" / name).mkdir()
    assert_equal(load(folder), expected)


# Classes


def test_names_that_look_alike_are_one_class(tmp_path: Path) -> None:
    """macOS writes accents apart from their letters."""
    apart, composed = "z\N{LATIN SMALL LETTER U}\N{COMBINING DIAERESIS}rich", "z\xfcrich"
    write_folders(tmp_path / "data", {apart: 8, "reed": 8, "water": 8}, "train")
    write_folders(tmp_path / "data", {f"{composed} ": 3, "reed": 3, "water\xa0": 3}, "test", 50)
    base = load(tmp_path / "data")
    assert base.class_names == ("reed", "water", composed)
    assert np.bincount(base.train_labels).tolist() == [8, 8, 8]
    assert np.bincount(base.test_labels).tolist() == [3, 3, 3]


def test_separators_of_names_are_written_otherwise(folder: Path) -> None:
    (folder / "reed").rename(folder / "reed+grass")
    (folder / "stork").rename(folder / "stork, white stork")
    names = load(folder).class_names
    assert names == ("heron", "reed/grass", "stork/white stork", "water")
    options = Options(foreground="reed/grass+stork/white stork", pixels=SIDE)
    assert tasks.load("images", Places(str(folder)), options).num_classes == 2


def test_classes_as_imagenet_calls_them(tmp_path: Path) -> None:
    """Synonyms with commas, and two classes of one name."""
    path = write_own_parquet(tmp_path / "data" / "train.parquet", [0, 1, 2] * 5)
    names = ["tench, Tinca tinca", "crane", "crane"]
    described = {"info": {"features": {"label": {"names": names}}}}
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(described)}), path)
    assert load(tmp_path / "data").class_names == ("tench/Tinca tinca", "crane", "crane (2)")


@pytest.mark.parametrize(
    "metadata",
    [
        {"huggingface": b"{"},
        {"huggingface": b'{"info": {"features": {"label": {"names": "abc"}}}}', "pandas": b"\xff"},
    ],
)
def test_metadata_that_cannot_be_read_are_none(tmp_path: Path, metadata: dict) -> None:
    path = write_own_parquet(tmp_path / "data" / "train.parquet", [0, 1, 2] * 5)
    expected = load(tmp_path / "data")
    pq.write_table(pq.read_table(path).replace_schema_metadata(metadata), path)
    assert_equal(load(tmp_path / "data"), expected)


def test_whole_numbers_may_be_written_as_floats(tmp_path: Path) -> None:
    write_own_parquet(tmp_path / "one" / "train.parquet", [3, 12, 1] * 5)
    write_own_parquet(tmp_path / "other" / "TRAIN.PARQUET", [3.0, 12.0, 1.0] * 5)
    one, other = (load(tmp_path / name) for name in ("one", "other"))
    assert one.digest == other.digest
    assert one.class_names == other.class_names == ("1", "3", "12")


# Equal images


def test_equal_images_are_never_in_two_splits(tmp_path: Path) -> None:
    """They count as one draw of the data, and are divided as if each was there once."""
    alone = load(write_folders(tmp_path / "alone"))
    folder = write_folders(tmp_path / "data")
    for path in list(folder.glob("*/*.png")):
        for copy in range(2):
            shutil.copy(path, path.with_name(f"{path.stem}-{copy}.png"))
    task = tasks.load(
        "images", Places(str(folder)), Options(foreground="heron+stork", pixels=SIDE)
    )
    base, kept = task.base, task._held_out()
    splits = [
        {image.tobytes() for image in images}
        for images in (base.train_images[~kept], base.train_images[kept], base.test_images)
    ]
    assert [len(each) for each in splits] == [40 - 10, 10, 10]
    assert len(set.union(*splits)) == 50
    assert len(base.train_images) + len(base.test_images) == 3 * 50
    assert len(np.unique(base.test_sources)) == 10
    assert base.digest != alone.digest


def test_images_that_are_trained_on_and_test_are_counted(tmp_path: Path) -> None:
    write_folders(tmp_path / "data", split="train")
    folder = write_folders(tmp_path / "data", split="test", first=50)
    assert not [note for note in load(folder).notes if "equal" in note]
    for number in (3, 4):
        shutil.copy(folder / f"train/reed/{number}.png", folder / f"test/reed/9{number}.png")
    assert load(folder).notes[-1] == (
        f"test images that are equal to images that train or validate: 2 of 52, the first "
        f"{folder}/test/reed/93.png. Take them out of one of the two"
    )


# How an image is made small


def test_an_image_of_the_size_asked_for_stays_as_it_is(tmp_path: Path) -> None:
    for label, name in enumerate(("a", "b", "c")):
        for number in range(5):
            path = tmp_path / "data" / "train" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(made_up(label, number)))
    shutil.copytree(tmp_path / "data" / "train", tmp_path / "data" / "test")
    base = load(tmp_path / "data")
    expected = [made_up(label, number) for label in range(3) for number in range(5)]
    np.testing.assert_array_equal(base.train_images, expected)
    np.testing.assert_array_equal(base.test_images, expected)


def test_the_middle_square_is_taken_and_averaged(tmp_path: Path) -> None:
    """Of stripes as thin as a pixel antialiasing leaves grey, of what lies outside nothing."""
    wide = np.zeros((80, 200, 3), np.uint8)
    wide[:, 60:140] = np.where(np.arange(80)[:, None] % 2, 200, 100)
    assert abs(fitted(Image.fromarray(wide), 8).astype(int) - 150).max() <= 16  # aliased: 50
    tall = wide.transpose(1, 0, 2)
    np.testing.assert_array_equal(
        fitted(Image.fromarray(tall), 8), fitted(Image.fromarray(wide), 8).transpose(1, 0, 2)
    )


def test_a_photo_is_turned_upright(tmp_path: Path) -> None:
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[:8] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).save(path, exif=exif)
    with Image.open(path) as image:
        np.testing.assert_array_equal(fitted(image, 16), np.rot90(pixels, 3))


def _chunk(name: bytes, data: bytes, checksum: bytes = b"") -> bytes:
    """A part of a PNG; its right checksum, if none is given."""
    right = zlib.crc32(name + data).to_bytes(4, "big")
    return len(data).to_bytes(4, "big") + name + data + (checksum or right)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")  # of Pillow
@pytest.mark.parametrize(
    "chunk",
    [
        _chunk(b"eXIf", b"garbage"),
        _chunk(b"eXIf", b"MM\0*\xff\xff\xff\xff"),
        _chunk(b"eXIf", b"MM\0*", checksum=b"\0\0\0\0"),
        _chunk(b"tEXt", b"Raw profile type exif\0\nexif\n 9\nzz\n"),
        _chunk(b"tEXt", b"a\0b", checksum=b"\0\0\0\0"),
        _chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(3_000_000))),
        _chunk(b"iCCP", b""),
        _chunk(b"gAMA", b"a"),
        _chunk(b"acTL", b""),
    ],
    ids=["EXIF", "offset", "checksum", "raw", "text", "large", "profile", "gamma", "animation"],
)
@pytest.mark.parametrize("behind", [False, True])
def test_metadata_that_cannot_be_read_do_not_damage_an_image(chunk: bytes, behind: bool) -> None:
    """Every viewer shows it."""
    names = FileNames("", (), pixels=SIDE)
    pixels = made_up(0, 0)
    png = encoded(pixels)
    place = len(png) - 12 if behind else 33  # before the end, or behind the header
    broken = png[:place] + chunk + png[place:]
    np.testing.assert_array_equal(decode(broken, names), pixels)
    with pytest.raises(OSError, match=r"truncated|identify|broken"):
        decode(broken[:60] + broken[-12:], names)


def test_damaged_metadata_are_read_over_in_silence(folder: Path) -> None:
    expected = load(folder)
    for path in folder.glob("reed/*.png"):
        png = path.read_bytes()
        path.write_bytes(png[:33] + _chunk(b"eXIf", b"MM\0*\xff\xff\xff\xff") + png[33:])
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        assert_equal(load(folder), expected)
    assert not given


def test_a_png_with_other_damaged_metadata_is_still_turned_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    png, turn = encoded(made_up(0, 0)), _chunk(b"eXIf", exif.tobytes()[6:])
    broken = png[:33] + turn + _chunk(b"gAMA", b"a") + png[33:]
    names = FileNames("", (), pixels=SIDE)
    np.testing.assert_array_equal(decode(broken, names), np.rot90(made_up(0, 0), 3))


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_is_white(mode: str) -> None:
    image = Image.new("LA" if mode == "LA" else "RGBA", (8, 8), 0)
    if mode == "P":
        image = Image.new("P", (8, 8), 0)
        image.info["transparency"] = 0
    assert (fitted(image, 8) == 255).all()


def test_a_large_jpeg_is_as_its_png(tmp_path: Path) -> None:
    """Though it is decoded at an eighth of its size."""
    ramp = np.linspace(0, 255, 640).astype(np.uint8)
    pixels = np.broadcast_to(ramp[:, None], (640, 640, 3)).transpose(1, 0, 2)
    found = []
    for kind in ("JPEG", "PNG"):
        path = tmp_path / kind
        Image.fromarray(np.ascontiguousarray(pixels)).save(path, kind)
        with Image.open(path) as image:
            found.append(fitted(image, SIDE).astype(int))
    assert abs(found[0] - found[1]).max() <= 3


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "WEBP"])
def test_grey_images_keep_one_channel(tmp_path: Path, kind: str) -> None:
    for name in ("a", "b", "c"):
        for number in range(5):
            path = tmp_path / "data" / name / f"{number}.{kind.lower()}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(np.full((20, 20), 50 * number, np.uint8), kind))
    base = load(tmp_path / "data")
    assert base.train_images.shape[1:] == (SIDE, SIDE, 1)
    info = tasks.info("images", Options(foreground="a+b", pixels=SIDE))
    facts = info.load(Places(str(tmp_path / "data"))).facts
    assert facts.input_shape == (1, SIDE, SIDE)
    assert info.made_up(facts, 5).facts.input_shape == facts.input_shape
    path.write_bytes(encoded(made_up(0, 0)))
    assert load(tmp_path / "data").train_images.shape[1:] == (SIDE, SIDE, 3)


# Other layouts


@pytest.mark.parametrize("names", KNOWN, ids=["cifar10", "cifar100"])
def test_cifar_is_read_in_its_official_layout(tmp_path: Path, names) -> None:
    one = load(write_official(tmp_path / names.folder, names, make(names)), pixels=32)
    np.testing.assert_array_equal(one.train_images, make(names)[0].images)
    assert one.class_names == names.class_names
    assert load(tmp_path / names.folder, pixels=16).test_images.shape == (10, 16, 16, 3)


def test_hugging_face_names_the_classes(tmp_path: Path) -> None:
    one = load(
        write_parquet(tmp_path / "one" / "data", CIFAR10, make(CIFAR10), shards=2).parent, 32
    )
    np.testing.assert_array_equal(one.train_images, make(CIFAR10)[0].images)
    assert one.class_names == CIFAR10.class_names


@pytest.mark.parametrize("categories", [False, True])
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([1, 12, 3] * 5, ("1", "3", "12")),
        (["c3", "a1", "b2"] * 5, ("a1", "b2", "c3")),
    ],
)
def test_other_labels_are_the_names(
    tmp_path: Path, labels: list, classes: tuple, categories: bool
) -> None:
    path = tmp_path / "data" / "images.parquet"
    write_own_parquet(path, labels, column="labels", categories=categories)
    base = load(tmp_path / "data")
    assert base.class_names == classes
    assert np.bincount(np.r_[base.train_labels, base.test_labels]).tolist() == [5, 5, 5]
    assert "drawn by hash" in base.notes[0]


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("place", ["", "raw", "MNIST/raw"])
def test_files_of_mnist(tmp_path: Path, compressed: bool, place: str) -> None:
    write_ubyte(tmp_path / "data" / place, compressed)
    base = load(tmp_path / "data", pixels=28)
    assert base.class_names == ("0", "1", "2")
    expected = np.random.default_rng(0).integers(256, size=(30, 28, 28), dtype=np.uint8)
    np.testing.assert_array_equal(base.train_images[..., 0], expected)
    assert base.train_images.shape[3] == 1
    assert load(tmp_path / "data", pixels=14).test_images.shape == (10, 14, 14, 1)


WRITERS: dict[str, Callable[[Path], object]] = {
    "folders": write_folders,
    "splits": lambda folder: [write_folders(folder, split=each) for each in ("train", "val")],
    "parquet": lambda folder: write_own_parquet(folder / "data" / "train.parquet", [1, 2, 3]),
    "ubyte": lambda folder: write_ubyte(folder / "MNIST" / "raw"),
    "official": lambda folder: write_official(folder / CIFAR10.folder, CIFAR10, make(CIFAR10)),
}


@pytest.mark.parametrize("layout", WRITERS)
def test_all_files_that_are_read_are_known_by_their_names(tmp_path: Path, layout: str) -> None:
    """So that a directory on shared storage is copied whole."""
    WRITERS[layout](tmp_path)
    for path in find_own(tmp_path, 32, KNOWN).found.files:
        assert may_be_own(path.relative_to(tmp_path).as_posix(), KNOWN)
    for other in ("labels.csv", "photo.png", "a/b/c/photo.png", ".git/config"):
        assert not may_be_own(other, KNOWN)


# The prepared form


def test_the_second_load_decodes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load(folder)
    monkeypatch.setattr("study.tasks.mosaics.own_images.read", None)
    assert_equal(load(folder), first)


def test_another_size_or_file_is_prepared_anew(folder: Path) -> None:
    first = load(folder)
    assert load(folder, pixels=8).digest != first.digest
    (folder / "heron" / "0.png").write_bytes(encoded(made_up(3, 99)))
    assert load(folder).digest != first.digest
    assert len(entries(folder.parent / "cache" / "prepared")) == 3


def test_a_renamed_class_is_other_data(folder: Path) -> None:
    first = load(folder)
    (folder / "heron").rename(folder / "crane")
    assert load(folder).digest != first.digest


# What cannot be used


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no directory": (shutil.rmtree, "{folder} does not exist. Pass the directory that holds"),
    "empty": (
        lambda folder: [shutil.rmtree(each) for each in folder.iterdir()],
        "{folder} is empty: no images of your own found. Accepted layouts: class folders (DIR/",
    ),
    "images without folders": (
        lambda folder: [shutil.rmtree(folder), _write(folder / "1.png", encoded(made_up(0, 0)))],
        "{folder} holds only 1.png: no images of your own found.",
    ),
    "one class": (
        lambda folder: [shutil.rmtree(folder / each) for each in ("stork", "reed", "water")],
        "{folder} holds 1 class (heron). Mosaics take 3 or more: two of the foreground, one of",
    ),
    "a class without images": (
        lambda folder: (folder / "egret").mkdir(),
        "{folder}/egret is the folder of a class and holds no image (.png, .jpg, .jpeg, .bmp, "
        ".webp). Put images there, or take the folder away.",
    ),
    "a file that is no image": (
        lambda folder: _write(folder / "heron" / "notes.txt", b"x"),
        "{folder}/heron/notes.txt is no image, among images of the class heron. Move it away;",
    ),
    "text that is called an image": (
        lambda folder: _write(folder / "heron" / "0.png", b"<html>"),
        "{folder}/heron/0.png cannot be read (cannot identify image file). Replace it, or take it "
        "away.",
    ),
    "truncated": (
        lambda folder: os.truncate(folder / "reed" / "3.png", 60),
        "{folder}/reed/3.png cannot be read (",
    ),
    "16 bits": (
        lambda folder: _write(folder / "reed" / "3.png", encoded(np.zeros((9, 9), np.uint16))),
        "{folder}/reed/3.png cannot be read (it has more than 8 bits a channel (I;16)).",
    ),
    "a class that is called rest": (
        lambda folder: (folder / "reed").rename(folder / "rest"),
        "{folder}: a class is called 'rest', which stands for all other classes in --set back",
    ),
    "no train split": (
        lambda folder: [shutil.rmtree(folder), write_folders(folder, split="test")],
        "there is test/, but no train split. Splits are train, validation (or val, valid, dev) ",
    ),
    "a class to test alone": (
        lambda folder: [
            shutil.rmtree(folder),
            write_folders(folder, split="train"),
            write_folders(folder, {"egret": 2}, split="test"),
        ],
        "{folder}/test/egret: there is no such class to train on. Add its images to {folder}/tr",
    ),
    "classes that get one name": (
        lambda folder: write_folders(folder, {"+": 2, ",": 2}),
        "{folder}: the classes '+' and ',' would both be called '/', since + and comma separate "
        "names. Rename one of them.",
    ),
    "two validation splits": (
        lambda folder: [write_folders(folder, split=each) for each in ("val", "valid")],
        "{folder}/valid and val/ are both of the validation split. Join them",
    ),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_refuses_folders(folder: Path, case: str) -> None:
    break_it, expected = FOLDERS[case]
    break_it(folder)
    assert expected.format(folder=folder) in refusal(folder)


OTHERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no image column": (
        lambda folder: _bare(folder / "a.parquet", {"label": [1, 2, 3]}),
        "a.parquet cannot be read (it has no column of images (a struct {{bytes, path}}), only l",
    ),
    "no label column": (
        lambda folder: write_own_parquet(folder / "a.parquet", [1, 2, 3], column="kind"),
        "a.parquet cannot be read (it has no column label, only image, kind). All files need",
    ),
    "labels are fractions": (
        lambda folder: write_own_parquet(folder / "a.parquet", [1.0, 2.5, 3.0]),
        "a.parquet cannot be read (Float value 2.5",
    ),
    "a label that is missing": (
        lambda folder: write_own_parquet(folder / "a.parquet", [1.0, 2.0, np.nan, 3.0]),
        "a.parquet cannot be read (it has no label in row 2).",
    ),
    "a blank label": (
        lambda folder: write_own_parquet(folder / "a.parquet", ["a", "b", "c", " "]),
        "a.parquet cannot be read (it has no label in row 3).",
    ),
    "a file of MNIST is missing": (
        lambda folder: (write_ubyte(folder / "raw") / "t10k-labels-idx1-ubyte").unlink(),
        "{folder}/raw is incomplete: t10k-labels-idx1-ubyte not found. Copy the data set again.",
    ),
    "a file of MNIST is cut off": (
        lambda folder: os.truncate(write_ubyte(folder / "raw") / "train-images-idx3-ubyte", 99),
        "train-images-idx3-ubyte cannot be read (",
    ),
}


def _bare(path: Path, columns: dict) -> None:
    pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize("case", OTHERS)
def test_refuses_other_layouts(tmp_path: Path, case: str) -> None:
    write_it, expected = OTHERS[case]
    folder = tmp_path / "data"
    folder.mkdir()
    write_it(folder)
    assert expected.format(folder=folder) in refusal(folder)


# The task and the command


def test_a_class_with_too_few_images_is_named(tmp_path: Path) -> None:
    folder = write_folders(tmp_path / "data", {**COUNTS, "egret": 2})
    with pytest.raises(RequestError, match=r"images: too few images of egret .* at least 3 train"):
        tasks.load("images", Places(str(folder)), Options(foreground="heron+egret", pixels=SIDE))


def test_networks_take_the_shape_of_the_images() -> None:
    for name in names("images"):
        assert takes_network(name, "images")
        for shape in ((1, 32, 32), (3, 16, 16), (3, 48, 48)):
            model = build(name, "images", shape, 4, further=(NetworkSettings(depth=-1),))
            flops = model.flops(shape)
            assert min(flops.focus, flops.classifier) > 0


def test_a_name_with_a_blank_is_quoted_as_a_shell_takes_it(folder: Path) -> None:
    (folder / "heron").rename(folder / "grey heron")
    with pytest.raises(RequestError, match=r"--set 'foreground=grey heron\+reed'; all other"):
        tasks.load("images", Places(str(folder)), Options(pixels=SIDE))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            [],
            "images takes a foreground, the classes that are labels: two or more of heron (12 "
            "train, 3 test), reed (16 train, 4 test), stork (8 train, 2 test), water (4 train, 1 "
            "test). Give it with --set foreground=heron+reed; all other classes are then",
        ),
        (["foreground=heron+stock"], "unknown class 'stock'. Did you mean 'stork'? Valid: heron,"),
        (["foreground=heron"], "foreground must name two classes or more, got 'heron'."),
        (
            ["foreground=heron+stork", "background=rees"],
            "unknown class 'rees'. Did you mean 'reed'?",
        ),
        (["pixels=3"], "pixels must be an integer >= 4, got 3."),
        (
            ["foreground=heron+stork", "architecture=scripts", "pixels=12"],
            "pixels must be more, or the architecture one with less pooling (small, perceptron), ",
        ),
    ],
)
def test_a_request_that_cannot_be_met_is_one_line(
    folder: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--set", *options] if options else []
    status, line = one_line(run.main, capsys, "images", "--data-dir", str(folder), *given)
    assert status == 2
    assert message in line


def test_no_directory_says_what_to_pass(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"pass them with --data-dir DIR\. Accepted: class fol"):
        load_own(Places(cache_dir=str(tmp_path)), SIDE)


TINY = [
    "--set", "foreground=heron+stork", "background=rest", "pixels=8", "m=3", "n=20", "epochs=1",
    "paradigm=soft,lvml", "lr=0.01", "confirm=100,101", "evaluations=1", "train_metrics_size=10",
    "validation_size=10", "test_size=10", "batch_size=10",
]  # fmt: skip


def test_a_plan_lists_the_classes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["images", "--data-dir", str(folder), "--plan", *TINY]
    status, printed, errors = called(run.main, capsys, *asked)
    assert (status, errors) == (0, "")
    assert "foreground heron+stork, pixels 8, data " in printed
    assert "heron (12 train, 3 test), reed (16 train, 4 test)" in " ".join(printed.split())
    assert "few test images: heron (3)" in " ".join(printed.split())


def test_a_study_of_a_folder_ends_with_its_report(folder: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    places = ["--data-dir", str(folder), "--results", str(results)]
    run_without_ray(["images", *places, "--tracking", "none", *TINY])
    cells = Results(results).cells()
    assert cells["status"].tolist() == ["done"] * 4
    assert cells["num_classes"].tolist() == [2] * 4
    text = (results / "report" / "images" / "report.md").read_text()
    assert "foreground heron+stork" in text
    assert "pixels 8" in text
    assert "heron (12 train, 3 test)" in text


def test_a_quarter_of_the_train_images_validates(folder: Path) -> None:
    options = Options(foreground="heron+stork", pixels=SIDE)
    task = tasks.load("images", Places(str(folder)), options)
    assert VALIDATION_SHARE == 0.25
    assert task._held_out().sum() == 3 + 4 + 2 + 1
