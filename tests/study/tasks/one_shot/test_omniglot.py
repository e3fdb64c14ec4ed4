"""Omniglot: its archives in any company, what is wrong with one, and the real drawings."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from study import tasks
from study.cell import Options
from study.errors import RequestError
from study.tasks.one_shot import omniglot
from study.tasks.one_shot.characters import Characters
from study.tasks.one_shot.omniglot import load_omniglot
from study.tasks.sources.places import Places
from tests.conftest import REAL_DATA, needs_data
from tests.made_up.omniglot import (
    member,
    members,
    png,
    stroke,
    write_archive,
    write_omniglot,
)
from tests.study.tasks.test_base_images import entries

BACKGROUND = "images_background"


def load(folder: Path, pixels: int = 8, cache: Path | None = None) -> Characters:
    return load_omniglot(Places(str(folder), str(cache or folder.parent / "cache")), pixels)


def assert_equal(one: Characters, other: Characters) -> None:
    """Bitwise."""
    for field in fields(Characters):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(ours, np.ndarray):
            np.testing.assert_array_equal(ours, theirs, strict=True)
        else:
            assert ours == theirs


# What is read


def test_drawings_are_ink_on_an_empty_ground(tmp_path: Path) -> None:
    data = load(write_omniglot(tmp_path / "data"), pixels=105)
    assert data.images.shape == (36, 105, 105)
    first = data.names[data.characters[0]]
    assert first == "Greek/character01"
    ink = ~np.asarray(stroke(0, 1))
    np.testing.assert_array_equal(data.images[0], np.where(ink, 255, 0))


def test_characters_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    data = load(write_omniglot(tmp_path / "data"))
    assert len(data.names) == 12
    assert list(data.names) == sorted(set(data.names))
    np.testing.assert_array_equal(data.characters, np.repeat(np.arange(12), 3))


def test_resized_drawings_keep_their_ink(tmp_path: Path) -> None:
    folder = write_omniglot(tmp_path / "data")
    whole, small = load(folder, 105), load(folder, 32)
    assert small.images.shape == (36, 32, 32)
    share = [each.images.mean(axis=(1, 2)) / 255 for each in (whole, small)]
    np.testing.assert_allclose(*share, rtol=0.15)
    assert whole.digest != small.digest


def test_an_archive_more_or_less_makes_no_difference_to_the_drawings(tmp_path: Path) -> None:
    """As Greek and Latin are in both small archives, and all of both in the large one."""
    apart, one = tmp_path / "apart", tmp_path / "one"
    one.mkdir()
    apart.mkdir()
    write_archive(one / f"{BACKGROUND}.zip", members(BACKGROUND, range(9)))
    for stem, chosen in (
        (f"{BACKGROUND}_small1", range(6)),
        (f"{BACKGROUND}_small2", range(3, 9)),
    ):
        write_archive(apart / f"{stem}.zip", members(stem, chosen))
    both = tmp_path / "both"
    shutil.copytree(apart, both)
    shutil.copy(one / f"{BACKGROUND}.zip", both)
    first = load(one)
    assert len(first.images) == 27
    assert_equal(load(apart), first)
    assert_equal(load(both), first)


def test_members_that_are_no_drawings_are_left_out(tmp_path: Path) -> None:
    first = load(write_omniglot(tmp_path / "data"))
    path = tmp_path / "data" / f"{BACKGROUND}.zip"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/images_background/._Greek", b"?")
        archive.writestr("images_background/Greek/", b"")
        archive.writestr("images_background/read me.txt", b"?")
    assert_equal(load(tmp_path / "data"), first)


def test_the_second_load_opens_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_omniglot(tmp_path / "data")
    first, other = load(folder), load(folder, 9)
    monkeypatch.setattr(omniglot, "_read", None)
    assert_equal(load(folder), first)
    assert_equal(load(folder, 9), other)
    assert len(entries(tmp_path / "cache" / "prepared")) == 2


def test_a_changed_archive_is_read_again(tmp_path: Path) -> None:
    before = load(write_omniglot(tmp_path / "data"))
    after = load(write_omniglot(tmp_path / "data", drawings=4))
    assert len(after.images) == 48
    assert before.digest != after.digest


@pytest.mark.parametrize(("pixels", "rule"), [(3, "an integer >= 4"), (106, "at most 105")])
def test_pixels_out_of_range_are_refused(pixels: int, rule: str) -> None:
    with pytest.raises(RequestError, match=f"pixels must be {rule}, got {pixels}"):
        tasks.info("omniglot", Options(pixels=pixels))


# What is wrong with an archive


def _whole() -> dict[str, bytes]:
    return members(BACKGROUND, range(6))


def _with(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda path: write_archive(path, {**_whole(), name: data})


def _cut(path: Path) -> None:
    write_archive(path, _whole())
    path.write_bytes(path.read_bytes()[:-200])


FIRST = member(BACKGROUND, 0, 1)
FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no zip": (lambda path: path.write_bytes(b"<html>"), "{path} cannot be read (File is not a"),
    "truncated": (_cut, "{path} cannot be read ("),
    "foreign": (
        lambda path: write_archive(path, {"photos/cat/1.png": b"?"}),
        "{path.parent} holds only images_background.zip: no drawing of Omniglot found",
    ),
    "no image": (_with(FIRST, b"?"), FIRST + " in {path} cannot be read (cannot identify image"),
    "half an image": (
        _with(FIRST, png(stroke(0, 1))[:-30]),
        FIRST + " in {path} cannot be read (",
    ),
    "not square": (
        _with(FIRST, png(Image.new("1", (105, 104)))),
        FIRST + " in {path} cannot be read (it is 105 x 104 pixels, must be 105 x 105)",
    ),
    "a bomb": (
        _with(FIRST, bytes(2_000_000)),
        FIRST + " in {path} cannot be read (it has 2,000,000 bytes)",
    ),
    "one drawing": (
        lambda path: write_archive(
            path, {**_whole(), member(BACKGROUND, 7, 1): png(stroke(7, 1))}
        ),
        "{path.parent} holds 1 drawing of Tagalog/character02, must hold at least 2",
    ),
    "few characters": (
        lambda path: write_archive(path, members(BACKGROUND, range(5))),
        "{path.parent} holds 5 characters of Omniglot, must hold at least 6",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_named(tmp_path: Path, fault: str) -> None:
    path = tmp_path / f"{BACKGROUND}.zip"
    write, expected = FAULTS[fault]
    write(path)
    with pytest.raises(RequestError) as caught:
        load(tmp_path, cache=tmp_path / "cache")
    message = str(caught.value)
    assert message.startswith(expected.format(path=path))
    assert "\n" not in message
    assert entries(tmp_path) == sorted([path.name, "cache"])
    assert entries(tmp_path / "cache" / "prepared") == []


def test_a_directory_without_an_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "images_evaluation").mkdir()
    words = f"{tmp_path} holds only images_evaluation: no archive of Omniglot found"
    with pytest.raises(RequestError, match=words):
        load(tmp_path)


# The real drawings


@needs_data
def test_the_small_archives_have_242_characters(tmp_path: Path) -> None:
    data = load(REAL_DATA / "omniglot", cache=tmp_path)
    assert len(data.names) == 242
    assert len({name.split("/")[0] for name in data.names}) == 8
    np.testing.assert_array_equal(np.bincount(data.characters), [20] * 242)
    assert 0.03 < data.images.mean() / 255 < 0.12  # mostly empty ground
    assert data.note == (
        "Omniglot: 242 characters of 8 alphabets (of 1,623 in the whole data set); 153 train, 26 "
        "validate, 63 test"
    )
