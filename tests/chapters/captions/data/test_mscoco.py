"""MSCOCO: what is left out and counted, bad files; of what is read, see the golden record."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chapters.captions.data.mscoco import Coco, load_coco
from study.errors import RequestError
from study.tasks.sources.places import Places
from tests.chapters.captions.coco_files import Content, coco, write_coco
from tests.conftest import REAL_DATA, needs_data


def read(folder: Path) -> Coco:
    return load_coco(Places(str(folder), str(folder.parent / "cache")))


def changed(tmp_path: Path, change: Callable[[Content], object]) -> Path:
    content = coco(3, 3)
    change(content)
    return write_coco(tmp_path / "coco", content)


def test_of_two_layouts_the_papers_is_read(tmp_path):
    write_coco(tmp_path / "coco", year=2014)
    assert read(write_coco(tmp_path / "coco", coco(5, 5), year=2017)).year == 2014
    shutil.rmtree(tmp_path / "coco" / "val2014")
    assert read(tmp_path / "coco").year == 2017


# What is left out


def drop_image(content: Content) -> None:
    del content["val"]["images"][0]


def no_words(content: Content) -> None:
    content["train"]["captions"][0]["caption"] = " ... !"


def no_captions(content: Content) -> None:
    del content["train"]["captions"][:5]


def crowd(content: Content) -> None:
    first = content["train"]["boxes"][0]
    content["train"]["boxes"].append({**first, "id": 1, "iscrowd": 1, "bbox": [0, 0, 9, 9]})


def box(*values: float) -> Callable[[Content], None]:
    def change(content: Content) -> None:
        content["train"]["boxes"][0]["bbox"] = list(values)

    return change


@pytest.mark.parametrize(
    ("change", "images", "captions", "objects"),
    [
        (drop_image, 5, 25, 5),
        (no_words, 6, 29, 6),
        (no_captions, 5, 25, 5),
        (crowd, 6, 30, 5),
        (box(50, 0, 9, 9), 6, 30, 5),
        (box(9, 9, 0, 9), 6, 30, 5),
        (box(40, 0, 8.01, 9), 6, 30, 6),
    ],
)
def test_what_cannot_be_used_is_left_out(tmp_path, change, images, captions, objects):
    found = read(changed(tmp_path, change))
    every = [image for part in found.parts.values() for image in part]
    assert len(every) == images
    assert sum(len(image.captions) for image in every) == captions
    assert sum(len(image.objects) for image in every) == objects
    assert len(found.left_out) == (change is no_captions)


def test_boxes_are_cut_at_the_edge_of_their_image(tmp_path):
    found = read(changed(tmp_path, box(-3, 20, 9, 30)))
    (cut,) = [b for image in found.parts["train"] for _, b in image.objects if b[0] == 0]
    assert cut == pytest.approx((0, 20 / 32, 6 / 48, 12 / 32))


def test_missing_and_damaged_images_are_left_out_and_named(tmp_path):
    folder = write_coco(tmp_path / "coco", coco(4, 3))
    damaged, missing, *rest = sorted((folder / "train2017").iterdir())
    os.truncate(damaged, damaged.stat().st_size - 40)
    missing.unlink()
    found = read(folder)
    assert len(found.parts["train"]) == 2
    assert found.left_out == [f"train2017/{path.name}" for path in (damaged, missing)]
    rest[0].write_bytes(b"")
    with pytest.raises(RequestError, match=r"train2017: 1 of the 4 images that captions_train201"):
        read(folder)


# What is refused


def test_a_directory_without_the_data_set_is_refused(tmp_path):
    folder = write_coco(tmp_path / "coco", coco(3, 3))
    (folder / "annotations" / "captions_val2017.json").unlink()
    shutil.rmtree(folder / "train2017")
    words = r"coco has no train2017 and no annotations/captions_val2017\.json\. .*val2014\.zip"
    with pytest.raises(RequestError, match=words):
        read(folder)


def with_value(kind: str, key: str, value: Any) -> Callable[[Path], object]:
    """The first entry of a sort has another value."""
    content = coco(3, 3)
    content["val"][kind][0][key] = value
    return lambda folder: write_coco(folder, content)


def with_captions(text: str) -> Callable[[Path], object]:
    file = "annotations/captions_train2017.json"
    return lambda folder: (write_coco(folder, coco(2, 2)) / file).write_text(text)


@pytest.mark.parametrize(
    ("write", "file", "reason"),
    [
        (with_value("captions", "caption", None), "captions_val", ""),
        (with_value("captions", "image_id", []), "captions_val", "unhashable"),
        (with_value("boxes", "category_id", 8), "instances_val", "it has no '8'"),
        (with_value("categories", "name", "mouse"), "instances_val", "its categories are not"),
        (with_captions('{"images": [{"id": 1, "fi'), "captions_train", "Unterminated string"),
        (with_captions('{"images": []}'), "captions_train", "it has no 'annotations'"),
    ],
)
def test_a_file_that_cannot_be_is_refused(tmp_path, write, file, reason):
    write(tmp_path / "coco")
    with pytest.raises(RequestError, match=rf"{file}2017\.json cannot be read \({reason}"):
        read(tmp_path / "coco")


@needs_data
def test_the_data_at_hand_are_whole(tmp_path):
    found = load_coco(Places(str(REAL_DATA / "coco"), str(tmp_path)))
    assert {part: len(images) for part, images in found.parts.items()} == {
        "train": 130, "val": 208,
    }  # fmt: skip
    assert (len(found.categories), found.left_out) == (80, [])
    assert all(len(image.captions) >= 5 for part in found.parts.values() for image in part)
