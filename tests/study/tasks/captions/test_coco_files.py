"""MSCOCO: what is read, what is left out and counted, bad files."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from study.errors import RequestError
from study.tasks.captions import mscoco
from study.tasks.captions.mscoco import BARE, DAMAGED, Coco, load_coco
from study.tasks.sources.places import Places
from tests.conftest import REAL_DATA, needs_data
from tests.made_up.coco import CATEGORIES, SIZE, Content, coco, write_coco


def read(folder: Path) -> Coco:
    return load_coco(Places(str(folder), str(folder.parent / "cache")))


def refused(folder: Path) -> str:
    """The message of the error, which is one line."""
    with pytest.raises(RequestError) as caught:
        read(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(folder), "DIR")


def changed(tmp_path: Path, change: Callable[[Content], object]) -> Path:
    content = coco(3, 3)
    change(content)
    return write_coco(tmp_path / "coco", content)


# What is read


@pytest.mark.parametrize("year", [2014, 2017])
def test_reads_both_layouts(tmp_path: Path, year: int) -> None:
    content = coco()
    found = read(write_coco(tmp_path / "coco", content, year))
    assert (found.layout.year, found.layout.both) == (year, False)
    assert found.categories == tuple(CATEGORIES.values())
    assert not any(found.left_out.values())
    for part, images in found.parts.items():
        ids = sorted(image["id"] for image in content[part]["images"])
        assert [image.file for image in images] == [f"{part}{year}/{i:012}.jpg" for i in ids]
        for i, image in zip(ids, images, strict=True):
            captions = [c["caption"] for c in content[part]["captions"] if c["image_id"] == i]
            assert len(image.captions) == len(captions) == 5
            assert image.captions[4] == captions[4].lower().strip("!")
            ((category, (x, y, w, h)),) = image.objects
            (box,) = [b for b in content[part]["boxes"] if b["image_id"] == i]
            assert [*CATEGORIES][category] == box["category_id"]
            width, height = SIZE
            assert [x * width, y * height, w * width, h * height] == pytest.approx(box["bbox"])


def test_of_two_layouts_the_papers_is_read(tmp_path: Path) -> None:
    write_coco(tmp_path / "coco", year=2014)
    found = read(write_coco(tmp_path / "coco", coco(5, 5), year=2017))
    assert (found.layout.year, found.layout.both) == (2014, True)
    shutil.rmtree(tmp_path / "coco" / "val2014")
    assert read(tmp_path / "coco").layout.year == 2017


def test_categories_with_several_boxes_are_no_objects(tmp_path: Path) -> None:
    """A crowd is a box, too."""

    def crowd(content: Content) -> None:
        first = content["train"]["boxes"][0]
        content["train"]["boxes"].append({**first, "id": 1, "iscrowd": 1, "bbox": [0, 0, 9, 9]})

    found = read(changed(tmp_path, crowd))
    assert sorted(len(image.objects) for image in found.parts["train"]) == [0, 1, 1]


def test_nothing_is_looked_through_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_coco(tmp_path / "coco", coco(3, 3))
    first = read(folder)
    with monkeypatch.context() as patch:
        patch.setattr(mscoco, "_read", None)
        again = read(folder)
    assert (again.parts, again.categories) == (first.parts, first.categories)
    image = folder / first.parts["val"][0].file
    other = folder / first.parts["val"][1].file
    image.write_bytes(other.read_bytes())
    assert read(folder).parts["val"][0].sha256 == first.parts["val"][1].sha256


# What is left out


def drop_image(content: Content) -> None:
    del content["val"]["images"][0]


def no_words(content: Content) -> None:
    content["train"]["captions"][0]["caption"] = " ... !"


def no_captions(content: Content) -> None:
    first = content["train"]["images"][0]["id"]
    content["train"]["captions"] = [
        each for each in content["train"]["captions"] if each["image_id"] != first
    ]


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
        (box(50, 0, 9, 9), 6, 30, 5),
        (box(9, 9, 0, 9), 6, 30, 5),
        (box(9, 9, -4, 9), 6, 30, 5),
        (box(40, 0, 8.01, 9), 6, 30, 6),
    ],
)
def test_what_cannot_be_used_is_left_out(
    tmp_path: Path, change: Callable[[Content], None], images: int, captions: int, objects: int
) -> None:
    found = read(changed(tmp_path, change))
    every = [image for part in found.parts.values() for image in part]
    assert len(every) == images
    assert sum(len(image.captions) for image in every) == captions
    assert sum(len(image.objects) for image in every) == objects
    assert len(found.left_out[BARE]) == (change is no_captions)


def test_boxes_are_cut_at_the_edge_of_their_image(tmp_path: Path) -> None:
    content = coco(1, 1)
    box(-3, 20, 9, 30)(content)
    (image,) = read(write_coco(tmp_path / "coco", content)).parts["train"]
    ((_, cut),) = image.objects
    assert cut == pytest.approx((0, 20 / 32, 6 / 48, 12 / 32))


def test_missing_and_damaged_images_are_left_out_and_named(tmp_path: Path) -> None:
    folder = write_coco(tmp_path / "coco", coco(8, 3))
    damaged, missing, *_ = sorted((folder / "train2017").iterdir())
    os.truncate(damaged, damaged.stat().st_size - 40)
    missing.unlink()
    found = read(folder)
    assert len(found.parts["train"]) == 6
    assert found.left_out[DAMAGED] == [f"train2017/{path.name}" for path in (damaged, missing)]


def test_a_part_without_a_usable_image_is_refused(tmp_path: Path) -> None:
    folder = write_coco(tmp_path / "coco", coco(3, 3))
    first, *rest = (folder / "val2017").iterdir()
    first.write_bytes(b"")
    for path in rest:
        path.unlink()
    assert refused(folder) == (
        "DIR/val2017: none of the 3 images that captions_val2017.json lists can be used. Unpack "
        "val2017.zip in DIR again."
    )


# What is refused


def test_a_directory_without_the_data_set_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere").startswith("DIR does not exist. ")
    folder = write_coco(tmp_path / "coco", coco(3, 3))
    (folder / "annotations" / "captions_val2017.json").unlink()
    shutil.rmtree(folder / "train2017")
    message = refused(folder)
    assert message.startswith(
        "DIR has no annotations/captions_val2017.json and no train2017. MSCOCO is annotations/"
    )
    assert "annotations_trainval2017.zip" in message


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"images": [{"id": 1, "fi', "Unterminated string starting at: line 1 column 23"),
        ("", "Expecting value"),
        ("[]", "it has no 'images'"),
        ('{"images": []}', "it has no 'annotations'"),
        ('{"images": 3}', ""),
    ],
)
def test_a_file_that_is_not_of_the_layout_is_refused(
    tmp_path: Path, content: str, reason: str
) -> None:
    folder = write_coco(tmp_path / "coco", coco(2, 2))
    (folder / "annotations" / "captions_train2017.json").write_text(content)
    message = refused(folder)
    assert message.startswith(f"DIR/annotations/captions_train2017.json cannot be read ({reason}")
    assert message.endswith("Unpack it again from annotations_trainval2017.zip.")


def test_ids_and_sizes_may_be_written_as_floats(tmp_path: Path) -> None:
    folder = write_coco(tmp_path / "coco", coco(2, 2))
    expected = read(folder)
    for path in (folder / "annotations").iterdir():
        path.write_text(re.sub(r'("(\w*id|width|height)": \d+)', r"\1.0", path.read_text()))
    assert '"width": 48.0' in path.read_text()
    assert read(folder).parts == expected.parts


def set_value(kind: str, key: str, value: Any) -> Callable[[Content], None]:
    def change(content: Content) -> None:
        content["train"][kind][0][key] = value

    return change


def other_categories(content: Content) -> None:
    content["val"]["categories"] = content["val"]["categories"][:2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (set_value("images", "file_name", "../other.jpg"), "must be the plain name of a file"),
        (set_value("captions", "caption", None), "captions_train2017.json cannot be read ("),
        (set_value("boxes", "bbox", [1, 2, 3]), "instances_train2017.json cannot be read ("),
        (
            set_value("boxes", "category_id", 8),
            "instances_train2017.json cannot be read (it has",
        ),
        (other_categories, "has other categories than DIR/annotations/instances_train2017.json."),
    ],
)
def test_an_entry_that_cannot_be_is_refused(
    tmp_path: Path, change: Callable[[Content], None], reason: str
) -> None:
    content = coco(2, 2)
    folder = write_coco(tmp_path / "coco", content)
    change(content)
    for part, values in content.items():
        for kind, key in (("captions", "captions"), ("instances", "boxes")):
            path = folder / "annotations" / f"{kind}_{part}2017.json"
            path.write_text(json.dumps({**values, "annotations": values[key]}))
    message = refused(folder)
    assert message.startswith("DIR/annotations/")
    assert reason in message


@needs_data
def test_the_data_at_hand_are_whole(tmp_path: Path) -> None:
    found = load_coco(Places(str(REAL_DATA / "coco"), str(tmp_path)))
    assert {part: len(images) for part, images in found.parts.items()} == {
        "train": 130, "val": 208,
    }  # fmt: skip
    assert len(found.categories) == 80
    assert not any(found.left_out.values())
    assert all(len(image.captions) >= 5 for part in found.parts.values() for image in part)
