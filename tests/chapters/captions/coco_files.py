"""A small data set in the official layout of MSCOCO: drawn squares on grey, and what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from chapters.captions.data.captions import CaptionTask
from chapters.captions.settings import DecoderSettings
from study import tasks
from study.cell import Budget, Cell, Options, Schedule
from study.tasks.sources.places import Places
from tests.conftest import lasting, tiny_cell

OPTIONS = Options(min_count=1, encoder="small")
M = 4
SIZES = DecoderSettings(embedding=6, attention=6, hidden=8, dropout=0.2, longest=6)
CATEGORIES = {3: "cat", 5: "dog", 9: "traffic light"}
"""Id -> name; as in the official files, ids have gaps."""

CATEGORY_WORDS = "cat, kitten\ndog, puppy, hot dog\ntraffic light, stop light\n"
SIZE = (48, 32)
"""(width, height) of an image."""

_COLOURS = ("red", "green", "blue", "white")
_SENTENCES = (
    "A {colour} {animal} on the left.",
    "The {colour} {animal}'s place is grey",
    "some {animal}, {colour}",
    "a {animal} that is {colour} sits on a grey and even floor",
    "{colour} {animal}!",
)

Content = dict[str, dict[str, Any]]
"""Part -> `images`, `captions`, `categories` and `boxes`, as the JSON files list them."""


def coco(train: int = 12, val: int = 9) -> Content:
    """Annotations of so many images, each with five captions and one box."""
    rng = np.random.default_rng(0)
    return {"train": _part(rng, 100, train), "val": _part(rng, 500, val)}


def write_coco(
    folder: Path,
    content: Content | None = None,
    year: int = 2017,
    category_words: str = CATEGORY_WORDS,
) -> Path:
    """Writes annotations and draws the images that they list; returns the folder."""
    (folder / "annotations").mkdir(parents=True, exist_ok=True)
    for name, part in (content or coco()).items():
        images = folder / f"{name}{year}"
        images.mkdir(exist_ok=True)
        for image in part["images"]:
            boxes = [box["bbox"] for box in part["boxes"] if box["image_id"] == image["id"]]
            _draw(images / image["file_name"], image["id"], boxes)
        for kind, values in (
            ("captions", {"images": part["images"], "annotations": part["captions"]}),
            (
                "instances",
                {
                    "images": part["images"],
                    "annotations": part["boxes"],
                    "categories": part["categories"],
                },
            ),
        ):
            path = folder / "annotations" / f"{kind}_{name}{year}.json"
            path.write_text(json.dumps(values))
    (folder / "category_words.txt").write_text(category_words)
    return folder


def load(folder: Path, options: Options = OPTIONS) -> CaptionTask:
    """The task of a folder, whose cache lies beside it."""
    cache = folder.with_name(f"{folder.name}-cache")
    task = tasks.load("mscoco", Places(str(folder), str(cache)), options)
    assert isinstance(task, CaptionTask)
    return task


def _part(rng: np.random.Generator, first: int, count: int) -> dict[str, Any]:
    ids = [int(each) for each in first + 3 * rng.permutation(count)]
    part: dict[str, Any] = {
        "images": [
            {"id": i, "file_name": f"{i:012}.jpg", "width": SIZE[0], "height": SIZE[1]}
            for i in ids
        ],
        "captions": [],
        "boxes": [],
        "categories": [{"id": i, "name": name} for i, name in CATEGORIES.items()],
    }
    for i in ids:
        category = int(rng.choice([3, 5]))
        colour = str(rng.choice(_COLOURS))
        for sentence in _SENTENCES:
            text = sentence.format(colour=colour, animal=CATEGORIES[category])
            number = len(part["captions"]) + 10 * first
            part["captions"].append({"id": number, "image_id": i, "caption": text})
        side = int(rng.integers(8, 20))
        x, y = (int(rng.integers(0, edge - side)) for edge in SIZE)
        part["boxes"].append(
            {
                "id": i + 7000, "image_id": i, "category_id": category, "iscrowd": 0,
                "bbox": [x, y, side, side], "segmentation": [[x, y, x + side, y]],
            }
        )  # fmt: skip
    return part


def _draw(path: Path, seed: int, boxes: list[list[float]]) -> None:
    grey = seed % 100 + 50
    image = Image.new("RGB", SIZE, (grey,) * 3)
    for x, y, width, height in boxes:
        if width > 0 and height > 0:
            ImageDraw.Draw(image).rectangle((x, y, x + width, y + height), fill="navy")
    image.save(path, "JPEG", quality=90)


def caption_cell(task: CaptionTask, schedule: Schedule, **changes: Any) -> Cell:
    """A cell of a few steps."""
    sizes = task.facts.sizes
    values: dict[str, Any] = {
        "m": M,
        "n": sizes["train"],
        "architecture": "show-attend-tell",
        "batch_size": 8,
        "train_metrics_size": 10,
        "validation_size": sizes["validation"],
        "test_size": sizes["test"],
        "evaluation_points": (0.0, 0.5, 1.0),
        "budget": Budget(1),
        "settings": SIZES,
        "options": OPTIONS,
    }
    return lasting(tiny_cell(task, schedule, **(values | changes)), task, 1.5)
