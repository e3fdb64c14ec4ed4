"""Draws scenes of two shapes, with captions and boxes, in the layout of MSCOCO.

    uv run python docs/captions/scenes.py DIR

Every caption names both shapes, their colours and which one is on the left, so a model can only
describe a scene if it looks at both. The pictures of docs/captions.md are made of such scenes,
since photographs of MSCOCO belong to others.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

SIDE = 112
SIZES = {"train": 600, "val": 300}
SHAPES = ("circle", "square", "triangle")
COLOURS = {
    "red": (200, 60, 50),
    "green": (60, 150, 70),
    "blue": (60, 90, 190),
    "yellow": (220, 190, 60),
}
SENTENCES = (
    "a {} {} on the left of a {} {}",
    "a {} {} and on the right a {} {}",
    "there is a {} {} beside a {} {}",
)


def main() -> None:
    """Writes the data set to the directory that the command line names."""
    folder = Path(sys.argv[1])
    (folder / "annotations").mkdir(parents=True, exist_ok=True)
    (folder / "category_words.txt").write_text("".join(f"{shape}\n" for shape in SHAPES))
    for seed, (name, count) in enumerate(SIZES.items()):
        (folder / f"{name}2017").mkdir(exist_ok=True)
        write(folder, name, count, np.random.default_rng(seed))


def write(folder: Path, name: str, count: int, rng: np.random.Generator) -> None:
    """Writes the images and annotations of one split."""
    images, captions, boxes = [], [], []
    for number in range(count):
        scene, left, right = drawn(rng)
        file = f"{number:012}.png"
        scene.save(folder / f"{name}2017" / file)
        images.append({"id": number, "file_name": file, "width": SIDE, "height": SIDE})
        for sentence in SENTENCES:
            text = sentence.format(left["colour"], left["shape"], right["colour"], right["shape"])
            captions.append({"id": len(captions), "image_id": number, "caption": text})
        for one in (left, right):
            boxes.append(
                {
                    "id": len(boxes), "image_id": number, "iscrowd": 0, "bbox": one["box"],
                    "category_id": SHAPES.index(one["shape"]) + 1,
                }
            )  # fmt: skip
    categories = [{"id": i, "name": shape} for i, shape in enumerate(SHAPES, 1)]
    for kind, found in (("captions", captions), ("instances", boxes)):
        content = {"images": images, "annotations": found, "categories": categories}
        (folder / "annotations" / f"{kind}_{name}2017.json").write_text(json.dumps(content))


def drawn(rng: np.random.Generator) -> tuple[Image.Image, dict[str, Any], dict[str, Any]]:
    """A scene, and its left and right shape with name, colour and box."""
    pixels = rng.normal(215, 6, (SIDE, SIDE, 1)).clip(0, 255).astype(np.uint8)
    scene = Image.fromarray(pixels.repeat(3, axis=2))
    found = []
    for middle in (SIDE // 4, 3 * SIDE // 4):
        shape, colour = str(rng.choice(SHAPES)), str(rng.choice(list(COLOURS)))
        size = int(rng.integers(26, 44))
        x = middle - size // 2 + int(rng.integers(-5, 6))
        y = int(rng.integers(4, SIDE - size - 4))
        corners = (x, y, x + size, y + size)
        draw = ImageDraw.Draw(scene)
        if shape == "circle":
            draw.ellipse(corners, COLOURS[colour])
        elif shape == "square":
            draw.rectangle(corners, COLOURS[colour])
        else:
            draw.polygon(
                [(x, y + size), (x + size, y + size), (x + size // 2, y)], COLOURS[colour]
            )
        found.append({"shape": shape, "colour": colour, "box": [x, y, size, size]})
    return scene, *found


if __name__ == "__main__":
    main()
