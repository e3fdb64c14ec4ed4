"""Images of your own: their splits, classes and notes, and what the command says."""

from __future__ import annotations

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
from study.tasks.mosaics.mosaics import MosaicTask
from study.tasks.mosaics.own_images import load_own
from study.tasks.sources.places import Places
from study.terminal.command import DONE
from tests.made_up.commands import one_line
from tests.made_up.images import COUNTS, SIDE, encoded, made_up, write_folders


def load(folder: Path, pixels: int = SIDE, cache: str = "cache") -> BaseImages:
    return load_own(Places(str(folder), str(folder.parent / cache)), pixels)


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


def test_without_splits_a_share_of_each_class_is_drawn_to_test(folder: Path) -> None:
    """Of the others, a quarter validates."""
    assert task_of(folder).kept.sum() == 3 + 4 + 2 + 1
    one = load(folder)
    assert one.class_names == ("heron", "reed", "stork", "water")
    assert counts(one) == [[12, 16, 8, 4], [3, 4, 2, 1]]
    assert load(folder, cache="another").digest == one.digest
    assert "drawn by hash" in one.notes[0]
    assert len(contents(one.train_images) | contents(one.test_images)) == sum(COUNTS.values())
    folder.rename(folder.parent / "train")
    folder.mkdir()
    (folder.parent / "train").rename(folder / "train")
    alone = load(folder)
    assert alone.digest == one.digest
    assert "train/ alone is there" in alone.notes[0]


@pytest.mark.parametrize("name", ["Val", "dev", "TESTING", "test "])
def test_a_split_beside_train_tests(tmp_path: Path, name: str) -> None:
    write_folders(tmp_path / "data", split="train")
    base = load(write_folders(tmp_path / "data", {"heron": 2, "stork": 3}, name, first=50))
    assert counts(base) == [[15, 20, 10, 5], [2, 0, 3, 0]]
    assert f"train/ trains and validates, {name}/ tests" in base.notes[0]
    assert "few test images: heron (2), reed (0), stork (3), water (0)" in base.notes[2]


def test_a_validation_split_beside_a_test_split_is_trained_on_too(tmp_path: Path) -> None:
    """The task keeps a share of all for validation."""
    for split, first in (("train", 0), ("val", 50), ("test", 80)):
        write_folders(tmp_path / "data", split=split, first=first)
    base = load(tmp_path / "data")
    assert len(base.train_labels) == 2 * len(base.test_labels) == 2 * sum(COUNTS.values())
    assert "train/ and val/ train and validate, test/ tests" in base.notes[0]


def test_folders_named_as_splits_may_be_classes(folder: Path) -> None:
    (folder / "water").rename(folder / "test")
    assert load(folder).class_names == ("heron", "reed", "stork", "test")


def test_other_files_beside_folders_and_hidden_ones_are_left_alone(folder: Path) -> None:
    expected = load(folder)
    (folder / "labels.csv").touch()
    (folder / "__MACOSX" / "heron").mkdir(parents=True)
    for name in ("._0.png", ".DS_Store", "Thumbs.db"):
        (folder / "heron" / name).write_bytes(b"no image")
    assert load(folder).digest == expected.digest


def test_images_in_no_folder_of_a_class_are_counted(folder: Path, tmp_path: Path) -> None:
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
    apart = write_folders(tmp_path / "apart", split="train")
    (apart / "test").mkdir()
    (apart / "test" / "0.png").touch()  # without a label, as in a contest
    write_folders(apart, {"heron": 4}, "other")
    first = f"{apart}/test/0.png"
    assert load(apart).notes[-1].endswith(f"left out: 5, the first {first}")


def task_of(folder: Path, foreground: str = "heron+stork") -> MosaicTask:
    options = Options(foreground=foreground, pixels=SIDE)
    return tasks.load("images", Places(str(folder), str(folder.parent / "cache")), options)


# Classes


def test_names_that_look_alike_are_one_class(tmp_path: Path) -> None:
    """macOS writes accents apart from their letters."""
    apart, composed = "z\N{LATIN SMALL LETTER U}\N{COMBINING DIAERESIS}rich", "z\xfcrich"
    write_folders(tmp_path / "data", {apart: 8, "reed": 8, "water": 8}, "train")
    write_folders(tmp_path / "data", {f"{composed} ": 3, "reed": 3, "Water\xa0": 3}, "test", 50)
    base = load(tmp_path / "data")
    assert base.class_names == ("reed", "water", composed)
    assert counts(base) == [[8, 8, 8], [3, 3, 3]]


def test_separators_of_names_are_written_otherwise(folder: Path) -> None:
    (folder / "reed").rename(folder / "reed+grass")
    (folder / "stork").rename(folder / "stork, white stork")
    assert task_of(folder, "reed/grass+stork/white stork").num_classes == 2


# Equal images


def test_equal_images_are_never_in_two_splits(folder: Path) -> None:
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


def test_images_that_are_trained_on_and_test_are_counted(tmp_path: Path) -> None:
    write_folders(tmp_path / "data", split="train")
    folder = write_folders(tmp_path / "data", split="test", first=50)
    assert not [note for note in load(folder).notes if "equal" in note]
    for number in (3, 4):
        shutil.copy(folder / f"train/reed/{number}.png", folder / f"test/reed/9{number}.png")
    assert re.search(
        rf"equal .*: 2 of 52, the first {folder}/test/reed/93.png", load(folder).notes[-1]
    )


# Pixels


def test_grey_images_keep_one_channel(tmp_path: Path) -> None:
    for number in range(15):
        path = tmp_path / "data" / "abc"[number % 3] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(np.full((20, 20), 10 * number, np.uint8)))
    assert task_of(tmp_path / "data", "a+b").facts.input_shape == (1, SIDE, SIDE)
    path.write_bytes(encoded(made_up(0, 0)))
    assert load(tmp_path / "data").train_images.shape[1:] == (SIDE, SIDE, 3)


def test_networks_take_the_shape_of_the_images() -> None:
    for name in names("images"):
        assert takes_network(name, "images")
        for shape in ((1, 32, 32), (3, 16, 16), (3, 48, 48)):
            model = build(name, "images", shape, 4, further=(NetworkSettings(depth=-1),))
            flops = model.flops(shape)
            assert min(flops.focus, flops.classifier) > 0


# The command


def test_the_foreground_is_asked_for_as_a_shell_takes_it(folder: Path) -> None:
    """With how many images of each class there are."""
    (folder / "heron").rename(folder / "grey heron")
    asked = r"grey heron \(12 train, 3 test\), .*--set 'foreground=grey heron\+reed'"
    with pytest.raises(RequestError, match=asked):
        tasks.load("images", Places(str(folder)), Options(pixels=SIDE))


def test_a_network_that_takes_no_such_pixels_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--set", "foreground=heron+stork", "architecture=scripts", "pixels=12"]
    status, line = one_line(run.main, capsys, "images", "--data-dir", str(folder), *given)
    assert status == 2
    assert "pixels must be more" in line


def test_a_study_of_a_folder_trains_and_records_what_its_data_are(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
