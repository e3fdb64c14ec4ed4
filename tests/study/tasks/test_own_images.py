"""Images of your own: their splits, classes and notes, and what the command says."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from study import run, tasks
from study.cell import NetworkSettings, Options
from study.errors import RequestError
from study.models import build, names, takes_network
from study.results import Results
from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.labelled_images import load as load_images
from study.tasks.mosaics.mosaics import MosaicTask
from study.tasks.mosaics.own_images import OWN_IMAGES
from study.tasks.sources.places import Places
from study.terminal.command import DONE
from tests.made_up.commands import one_line
from tests.made_up.images import COUNTS, SIDE, made_up, put, write_folders


def load(folder: Path, pixels: int = SIDE, cache: str = "cache") -> BaseImages:
    return load_images(OWN_IMAGES, Places(str(folder), str(folder.parent / cache)), pixels)


def counts(base: BaseImages) -> list[list[int]]:
    """Train and test images of each class."""
    count = len(base.class_names)
    every = (base.train_labels, base.test_labels)
    return [np.bincount(labels, minlength=count).tolist() for labels in every]


def contents(images: np.ndarray) -> set[bytes]:
    return {image.tobytes() for image in images}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folders(tmp_path / "data")


# Splits


DRAWN = ": 20 % of the images of each class, drawn by hash"


@pytest.mark.parametrize(
    ("splits", "said", "tests"),
    [
        ("", f"40 to train and validate, 10 to test{DRAWN}", 0.2),
        ("train", f"40 of train to train and validate, 10 of train to test{DRAWN}", 0.2),
        *(
            (f"train/{name}", f"50 of train to train and validate, 50 of {name} to test", 1)
            for name in ("Val", "dev", "TESTING", "test ")
        ),
        ("train/val/test", "100 of train and val to train and validate, 50 of test to test", 1),
    ],
)
def test_a_test_split_tests_else_a_validation_split_else_a_share_of_each_class(
    tmp_path, splits, said, tests
):
    """A validation split beside a test split is trained on, too."""
    for number, split in enumerate(splits.split("/")):
        write_folders(tmp_path / "data", split=split, first=50 * number)
    base = load(tmp_path / "data")
    assert base.notes[0] == f"images: {said}"
    images, folders = np.array([COUNTS[name] for name in base.class_names]), splits.count("/") + 1
    assert counts(base) == [((folders - tests) * images).tolist(), (tests * images).tolist()]


def test_a_draw_is_the_same_wherever_the_images_lie(folder):
    """Of those that do not test, a quarter validates."""
    one = load(folder)
    assert task_of(folder).kept.sum() == 3 + 4 + 2 + 1
    assert load(folder, cache="another").digest == one.digest
    shutil.move(folder, folder.parent / "split" / "train")
    assert load(folder.parent / "split").digest == one.digest


def test_classes_of_few_test_images_are_named(tmp_path):
    write_folders(tmp_path / "data", split="train")
    base = load(write_folders(tmp_path / "data", {"heron": 2, "stork": 3}, "test", first=50))
    assert "few test images: heron (2), reed (0), stork (3), water (0)" in base.notes[2]


def test_folders_named_as_splits_may_be_classes(folder):
    (folder / "water").rename(folder / "test")
    assert load(folder).class_names == ("heron", "reed", "stork", "test")


def test_other_files_beside_folders_and_hidden_ones_are_left_alone(folder):
    expected = load(folder)
    (folder / "labels.csv").touch()
    (folder / "__MACOSX" / "heron").mkdir(parents=True)
    for name in ("._0.png", ".DS_Store", "Thumbs.db"):
        (folder / "heron" / name).write_bytes(b"no image")
    assert load(folder).digest == expected.digest


def test_images_in_no_folder_of_a_class_are_counted(folder, tmp_path):
    """Also where the others are prepared already."""
    expected = load(folder)
    for name in ("b.JPG", "a.png"):
        (folder / name).touch()
    found = load(folder)
    assert found.digest == expected.digest
    assert found.notes == (
        *expected.notes,
        "images outside of the folders that are read, which are left out: 2, the first "
        f"{folder}/a.png",
    )
    (folder / os.fsdecode(b"0\xff.png")).touch()  # no text, as which notes are recorded
    assert load(folder).notes[-1].endswith(rf"left out: 3, the first {folder}/0\udcff.png")
    apart = write_folders(tmp_path / "apart", split="train")
    (apart / "test").mkdir()
    (apart / "test" / "0.png").touch()  # without a label, as in a contest
    write_folders(apart, {"heron": 4}, "unknown")
    first = f"{apart}/test/0.png"
    assert load(apart).notes[-1].endswith(f"left out: 5, the first {first}")


def task_of(folder: Path, foreground: str = "heron+stork") -> MosaicTask:
    options = Options(foreground=foreground, pixels=SIDE)
    return tasks.load("images", Places(str(folder), str(folder.parent / "cache")), options)


# Classes


def test_names_that_look_alike_are_one_class(tmp_path):
    """macOS writes accents apart from their letters."""
    apart, composed = "z\N{LATIN SMALL LETTER U}\N{COMBINING DIAERESIS}rich", "z\xfcrich"
    write_folders(tmp_path / "data", {apart: 8, "reed": 8, "water": 8}, "train")
    write_folders(tmp_path / "data", {f"{composed} ": 3, "reed": 3, "Water\xa0": 3}, "test", 50)
    base = load(tmp_path / "data")
    assert base.class_names == ("reed", "water", composed)
    assert counts(base) == [[8, 8, 8], [3, 3, 3]]


def test_separators_of_names_are_written_otherwise(folder):
    (folder / "reed").rename(folder / "reed+grass")
    (folder / "stork").rename(folder / "stork, white stork")
    assert task_of(folder, "reed/grass+stork/white stork").num_classes == 2


# Equal images


def test_equal_images_are_never_in_two_splits(folder):
    """They count as one draw of the data, and are divided as if each was there once."""
    alone = load(folder)
    for path in list(folder.glob("*/*.png")):
        for copy in range(2):
            shutil.copy(path, path.with_name(f"{path.stem}-{copy}.png"))
    task = task_of(folder)
    base, kept = task.base, task.kept
    splits = [
        contents(images)
        for images in (base.train_images[~kept], base.train_images[kept], base.test_images)
    ]
    assert [len(each) for each in splits] == [40 - 10, 10, 10]
    assert len(set.union(*splits)) == 50
    assert len(base.train_images) + len(base.test_images) == 3 * 50
    assert len(np.unique(base.test_sources)) == 10
    assert base.digest != alone.digest


def test_images_that_are_trained_on_and_test_are_counted(tmp_path):
    write_folders(tmp_path / "data", split="train")
    folder = write_folders(tmp_path / "data", split="test", first=50)
    assert not [note for note in load(folder).notes if "equal" in note]
    for number in (3, 4):
        shutil.copy(folder / f"train/reed/{number}.png", folder / f"test/reed/9{number}.png")
    assert re.search(
        rf"equal .*: 2 of 52, the first {folder}/test/reed/93.png", load(folder).notes[-1]
    )


# Pixels


def test_grey_images_keep_one_channel(tmp_path):
    for number in range(15):
        grey = np.full((20, 20), 10 * number, np.uint8)
        put(tmp_path / "data" / "abc"[number % 3] / f"{number}.png", grey)
    assert task_of(tmp_path / "data", "a+b").facts.input_shape == (1, SIDE, SIDE)
    put(tmp_path / "data" / "c" / "14.png", made_up(0, 0))
    assert load(tmp_path / "data").train_images.shape[1:] == (SIDE, SIDE, 3)


def test_networks_take_the_shape_of_the_images():
    for name in names("images"):
        assert takes_network(name, "images")
        for shape in ((1, 32, 32), (3, 16, 16), (3, 48, 48)):
            model = build(name, "images", shape, 4, further=(NetworkSettings(depth=-1),))
            flops = model.flops(shape)
            assert min(flops.focus, flops.classifier) > 0


# The command


def test_the_foreground_is_asked_for_as_a_shell_takes_it(folder):
    """With how many images of each class there are."""
    (folder / "heron").rename(folder / "grey heron")
    asked = r"grey heron \(12 train, 3 test\), .*--set 'foreground=grey heron\+reed'"
    with pytest.raises(RequestError, match=asked):
        tasks.load("images", Places(str(folder)), Options(pixels=SIDE))


def test_a_network_that_takes_no_such_pixels_is_named(folder, capsys):
    given = ["--set", "foreground=heron+stork", "architecture=scripts", "pixels=12"]
    status, line = one_line(run.main, capsys, "images", "--data-dir", str(folder), *given)
    assert status == 2
    assert "pixels must be more" in line


def test_a_study_of_a_folder_trains_and_records_what_its_data_are(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("study.plan.estimate.MOST_STEPS", 3)  # timing takes longer than the study
    results = tmp_path / "results"
    command = (
        "images --shard 1/1 --set foreground=heron+stork background=rest pixels=8 m=3 n=20 "
        "epochs=1 paradigm=soft lr=0.01 seed=0 confirm=none evaluations=1 train_metrics_size=10 "
        "validation_size=10 test_size=10 batch_size=10"
    )
    places = "--data-dir", str(folder), "--results", str(results)
    assert run.main([*command.split(), *places]) == DONE
    (cell,) = Results(results).cells().to_dict("records")
    assert (cell["status"], cell["num_classes"]) == ("done", 2)
    assert "heron (12 train, 3 test)" in cell["data_notes"]
