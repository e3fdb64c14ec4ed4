"""Omniglot: its archives in any company, what is wrong with one, and the real drawings."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from chapters.paths.one_shot.characters import Characters
from chapters.paths.one_shot.omniglot import load_omniglot
from study.tasks.sources.places import Places
from tests.chapters.paths.omniglot_files import (
    member,
    members,
    png,
    stroke,
    write_archive,
    write_omniglot,
)
from tests.conftest import REAL_DATA, needs_data
from tests.made_up.commands import refusal

BACKGROUND = "images_background"


def load(folder: Path, pixels: int = 8, cache: Path | None = None) -> Characters:
    return load_omniglot(Places(str(folder), str(cache or folder.parent / "cache")), pixels)


# What is read


def test_an_archive_more_or_less_makes_no_difference_to_the_drawings(tmp_path):
    """As Greek and Latin are in both small archives, and all of both in the large one."""
    parts = {"": range(9), "_small1": range(6), "_small2": range(3, 9)}
    for folder, chosen in (("one", [""]), ("apart", ["_small1", "_small2"]), ("all", parts)):
        (tmp_path / folder).mkdir()
        for part in chosen:
            stem = f"{BACKGROUND}{part}"
            write_archive(tmp_path / folder / f"{stem}.zip", members(stem, parts[part]))
    one = load(tmp_path / "one")
    assert len(one.images) == 27
    assert load(tmp_path / "apart").digest == load(tmp_path / "all").digest == one.digest


def test_members_that_are_no_drawings_are_left_out(tmp_path):
    first = load(write_omniglot(tmp_path / "data"))
    with zipfile.ZipFile(tmp_path / "data" / f"{BACKGROUND}.zip", "a") as archive:
        for name in ("__MACOSX/images_background/._Greek", f"{BACKGROUND}/Greek/", "read me.txt"):
            archive.writestr(name, b"")
    assert load(tmp_path / "data").digest == first.digest


# What is wrong with an archive

FIRST = member(BACKGROUND, 0, 1)


def _with(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda path: write_archive(path, {**members(BACKGROUND, range(6)), name: data})


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no zip": (lambda path: path.write_bytes(b"<html>"), "{path} cannot be read ("),
    "half an image": (
        _with(FIRST, png(stroke(0, 1))[:-30]),
        f"{FIRST} in {{path}} cannot be read (",
    ),
    "a bomb": (
        _with(FIRST, bytes(2_000_000)),
        f"{FIRST} in {{path}} cannot be read (it has 2,000,000 bytes)",
    ),
    "foreign": (
        lambda path: write_archive(path, {"photos/cat/1.png": b"?"}),
        "{path.parent} holds 0 characters",
    ),
    "one drawing": (
        _with(member(BACKGROUND, 7, 1), png(stroke(7, 1))),
        "{path.parent} holds 7 characters of Omniglot and at least 1 drawings",
    ),
    "unpacked": (
        lambda path: path.with_suffix("").mkdir(),
        "{path.parent} holds only images_background: no archive of Omniglot",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_named_and_nothing_is_kept(tmp_path, fault):
    path = tmp_path / "data" / f"{BACKGROUND}.zip"
    path.parent.mkdir()
    write, expected = FAULTS[fault]
    write(path)
    assert refusal(lambda: load(path.parent)).startswith(expected.format(path=path))
    assert not list(tmp_path.glob("cache/prepared/[!.]*"))


@needs_data
def test_the_small_archives_have_242_characters(tmp_path):
    data = load(REAL_DATA / "omniglot", 32, cache=tmp_path)
    assert len(data.names) == 242
    np.testing.assert_array_equal(np.bincount(data.characters), [20] * 242)
    assert 0.03 < data.images.mean() / 255 < 0.12  # mostly empty ground
    assert data.digest == "5557a977c60efca7"
    assert "of 8 alphabets; 153 train, 26 validate, 63 test" in data.note
