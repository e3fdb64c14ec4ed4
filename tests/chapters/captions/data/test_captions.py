"""Captions as tasks: numbers, splits by image, objects and notes."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from chapters.captions.data.captions import Captions, CaptionTask
from chapters.captions.data.vocabulary import END, PADDING, UNKNOWN
from study import tasks
from study.cell import Cell, Options
from study.tasks.sources.places import Places
from study.tasks.task import SPLITS
from tests.chapters.captions.coco_files import (
    CATEGORY_WORDS,
    OPTIONS,
    Content,
    coco,
    load,
    write_coco,
)
from tests.conftest import PROJECT, needs_cuda
from tests.made_up.gpu import waiting_refused
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


def texts(split: Captions) -> list[str]:
    """The captions, from their numbers."""
    return [
        " ".join(split.vocabulary[word] for word in words[: length - 1])
        for words, length in zip(split.words.tolist(), split.lengths.tolist(), strict=True)
    ]


def files(split: Captions) -> list[str]:
    """The files of the images."""
    return [image.file for image in split.captioned]


# What captions are


def test_numbers_stand_for_the_words_of_captions(task: CaptionTask) -> None:
    for split in task.splits(cell(task)).values():
        assert len(split.vocabulary) == task.num_classes == task.facts.input_shape[0]
        for caption, image in zip(texts(split), split.image_of.tolist(), strict=True):
            assert caption in split.captioned[image].captions
        for words, length in zip(split.words, split.lengths, strict=True):
            assert words[length - 1] == END
            assert (words[:length] != PADDING).all()
            assert (words[length:] == PADDING).all()
        assert split.words.shape[1] == split.lengths.max()
    lengths = task.splits(cell(task))["train"].lengths.tolist()
    assert task.facts.lengths == {each: lengths.count(each) for each in sorted(set(lengths))}


def test_seldom_words_are_one_word(folder: Path) -> None:
    options = Options(min_count=20, encoder="small")
    many = load(folder, options)
    split = many.splits(cell(many, options=options))["train"]
    assert (split.words == UNKNOWN).any()
    assert all(number != UNKNOWN for each in split.objects for number in each.words)


# Splits


def test_splits_are_by_image(task: CaptionTask) -> None:
    splits = task.splits(cell(task))
    assert {name: len(split) for name, split in splits.items()} == task.facts.sizes
    validation, test = (files(splits[name]) for name in ("validation", "test"))
    assert (splits["train"].num_images, len(validation), len(test)) == (12, 5, 4)
    assert len({*validation, *test}) == 9
    other = task.splits(cell(task, seed=1))
    assert {*files(splits["train"])} == {*files(other["train"])}


def test_fewer_captions_are_of_fewer_images(task: CaptionTask) -> None:
    """Whatever is left out of them, their references are all captions of an image."""
    few = task.splits(cell(task, n=12, validation_size=7, test_size=5))
    every = task.splits(cell(task))
    assert {name: (len(split), split.num_images) for name, split in few.items()} == {
        "train": (12, 3), "validation": (7, 2), "test": (5, 1),
    }  # fmt: skip
    for name, split in few.items():
        assert texts(split) == texts(every[name])[: len(split)]
        assert all(len(image.captions) == 5 for image in split.captioned)
        assert split.captioned == every[name].captioned[: split.num_images]
        assert {each.image for each in split.objects} == set(range(split.num_images))


@needs_cuda
def test_a_gpu_holds_the_images_of_a_split(task: CaptionTask) -> None:
    here = task.splits(cell(task, n=12))
    there = task.splits(cell(task, n=12), "cuda")
    other = task.splits(cell(task, n=60, seed=1), "cuda")
    for name in SPLITS:
        rows = torch.arange(5)
        with waiting_refused():
            batch = there[name].batch(rows.cuda(non_blocking=True), 8)
        for one, two in zip(here[name].batch(rows, 8), batch, strict=True):
            assert torch.equal(one, two.cpu())
        assert len(there[name].images) == there[name].num_images
    assert there["test"].images is other["test"].images


# Objects


def test_objects_are_categories_with_a_box_and_words(task: CaptionTask) -> None:
    for split in task.splits(cell(task)).values():
        assert [each.image for each in split.objects] == list(range(split.num_images))
        for each in split.objects:
            words = {split.vocabulary[number] for number in each.words}
            assert words == {each.category}  # no caption has a kitten or puppy
            assert any(each.category in text for text in split.captioned[each.image].captions)
            assert each.inside.shape == (M,)
            assert each.inside.mean() == pytest.approx(each.box[2] * each.box[3], abs=1e-6)


def test_notes_say_what_the_data_are(tmp_path: Path) -> None:
    content = coco(3, 2)
    del content["train"]["captions"][:5]
    for box in content["val"]["boxes"]:
        box["category_id"] = 9
    task = load(write_coco(tmp_path / "coco", content, year=2014))
    facts = (
        "layout of 2014", "train: 10 captions of 2 images, with 100.0 %", "and 2 objects",
        "validation: 5 captions of 1 images, with", "2 objects of 1 categories (traffic light)",
        "left out: 1 images", "(train2014/", "2 training images: a try-out",
    )  # fmt: skip
    notes = "\n".join(task.facts.notes)
    assert [fact for fact in facts if fact not in notes] == []
    assert task.splits(cell(task))["test"].objects == []


def test_the_digest_stands_for_all_that_counts(tmp_path: Path) -> None:
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


def test_a_plan_computes_no_features(tmp_path: Path) -> None:
    load(write_coco(tmp_path / "coco", coco(3, 3)))
    assert not list(tmp_path.glob("coco-cache/prepared/mscoco-features-*"))


def test_category_words_may_lie_elsewhere(folder: Path, task: CaptionTask, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text(CATEGORY_WORDS)
    places = Places(str(folder), str(tmp_path / "cache"), (("category_words", str(words)),))
    assert tasks.load("mscoco", places, OPTIONS).facts == task.facts


def test_the_scenes_of_the_documents_are_such_a_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each caption names both shapes, and a shape that is there once is an object."""
    monkeypatch.syspath_prepend(PROJECT / "docs" / "captions")
    scenes: Any = import_module("scenes")
    monkeypatch.setattr(scenes, "SIZES", {"train": 6, "val": 4})
    monkeypatch.setattr("sys.argv", ["scenes.py", str(tmp_path / "scenes")])
    scenes.main()
    task = load(tmp_path / "scenes")
    assert not any("left out" in note for note in task.facts.notes)
    for split in task.splits(cell(task)).values():
        for image, (_, _, captions, _) in enumerate(split.captioned):
            named = [[word for word in text.split() if word in scenes.SHAPES] for text in captions]
            assert all(sorted(shapes) == sorted(named[0]) for shapes in named)
            assert len(named[0]) == 2
            once = {shape for shape in named[0] if named[0].count(shape) == 1}
            assert {one.category for one in split.objects if one.image == image} == once
