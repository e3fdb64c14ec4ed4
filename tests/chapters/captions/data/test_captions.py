"""Captions as tasks: splits by image, objects, the digest; see tests/contracts/test_tasks.py."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from chapters.captions.data.captions import Captions, CaptionTask
from chapters.captions.data.vocabulary import UNKNOWN
from study.cell import Cell, Options
from tests.chapters.captions.coco_files import (
    CATEGORY_WORDS,
    OPTIONS,
    Content,
    coco,
    load,
    write_coco,
)
from tests.conftest import PROJECT
from tests.made_up.layouts import OF_TASK

M = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_coco(tmp_path_factory.mktemp("captions") / "coco")


@pytest.fixture(scope="module")
def task(folder: Path) -> CaptionTask:
    return load(folder)


def cell(task: CaptionTask, **changes: Any) -> Cell:
    """All captions, with a frozen encoder."""
    return replace(OF_TASK["mscoco"].cell(task, *task.facts.sizes.values()), **changes)


def files(split: Captions) -> list[str]:
    """The files of the images."""
    return [image.file for image in split.captioned]


# What captions are


def test_seldom_words_are_one_word(folder):
    options = Options(min_count=20, encoder="small")
    many = load(folder, options)
    split = many.splits(cell(many, options=options))["train"]
    assert (split.words == UNKNOWN).any()
    assert all(number != UNKNOWN for each in split.objects for number in each.words)


# Splits


def test_splits_are_by_image(task):
    splits = task.splits(cell(task))
    assert {name: len(split) for name, split in splits.items()} == task.facts.sizes
    validation, test = (files(splits[name]) for name in ("validation", "test"))
    assert (splits["train"].num_images, len(validation), len(test)) == (12, 5, 4)
    assert len({*validation, *test}) == 9
    other = task.splits(cell(task, seed=1))
    assert {*files(splits["train"])} == {*files(other["train"])}


def test_fewer_captions_are_of_fewer_images(task):
    """Whatever is left out of them, their references are all captions of an image."""
    few = task.splits(cell(task, n=12, validation_size=7, test_size=5))
    every = task.splits(cell(task))
    assert {name: (len(split), split.num_images) for name, split in few.items()} == {
        "train": (12, 3), "validation": (7, 2), "test": (5, 1),
    }  # fmt: skip
    for name, split in few.items():
        every_word = every[name].words[: len(split), : split.words.shape[1]]
        assert torch.equal(split.words, every_word)
        assert all(len(image.captions) == 5 for image in split.captioned)
        assert split.captioned == every[name].captioned[: split.num_images]
        assert {each.image for each in split.objects} == set(range(split.num_images))


# Objects


def test_objects_are_categories_with_a_box_and_words(task):
    for split in task.splits(cell(task)).values():
        assert [each.image for each in split.objects] == list(range(split.num_images))
        for each in split.objects:
            words = {split.vocabulary[number] for number in each.words}
            assert words == {each.category}  # no caption has a kitten or puppy
            assert any(each.category in text for text in split.captioned[each.image].captions)
            assert each.inside.shape == (M,)
            assert each.inside.mean() == pytest.approx(each.box[2] * each.box[3], abs=1e-6)


def test_the_digest_stands_for_all_that_counts(tmp_path):
    def digest(name: str, content: Content | None = None, **more: Any) -> str:
        options = more.pop("options", OPTIONS)
        folder = write_coco(tmp_path / name, content or coco(3, 3), **more)
        if name == "image":
            path = min((folder / "train2017").iterdir())
            path.write_bytes(path.read_bytes() + b"\0")
        return load(folder, options).facts.digest

    caption, box = coco(3, 3), coco(3, 3)
    caption["val"]["captions"][0]["caption"] = "a dog"
    box["val"]["boxes"][0]["bbox"][0] += 1
    digests = {
        digest("first"),
        digest("image"),
        digest("caption", caption),
        digest("box", box),
        digest("words", category_words=CATEGORY_WORDS.replace("kitten", "kitty")),
        digest("encoder", options=Options(min_count=1, encoder="lite0")),
    }
    assert len(digests) == 6
    assert digest("copy") in digests


def test_a_plan_computes_no_features(tmp_path):
    load(write_coco(tmp_path / "coco", coco(3, 3)))
    assert not list(tmp_path.glob("coco-cache/prepared/mscoco-features-*"))


def test_the_scenes_of_the_documents_are_such_a_data_set(tmp_path, monkeypatch):
    """Each caption names both shapes, and the objects are of these."""
    monkeypatch.syspath_prepend(PROJECT / "docs" / "captions")
    scenes: Any = import_module("scenes")
    monkeypatch.setattr(scenes, "SIZES", {"train": 6, "val": 4})
    monkeypatch.setattr("sys.argv", ["scenes.py", str(tmp_path / "scenes")])
    scenes.main()
    task = load(tmp_path / "scenes")
    assert not any("left out" in note for note in task.facts.notes)
    for split in task.splits(cell(task)).values():
        for one in split.objects:
            for text in split.captioned[one.image].captions:
                assert sum(word in scenes.SHAPES for word in text.split()) == 2
                assert one.category in text
