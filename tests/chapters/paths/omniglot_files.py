"""A small data set in the layout of Omniglot's archives: black strokes on white."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SIDE = 105
ALPHABETS = ("Greek", "Japanese_(hiragana)", "N_Ko", "Tagalog")


def write_omniglot(folder: Path) -> Path:
    """Writes twelve characters, shared out among two archives; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, stem in enumerate(("images_background", "images_evaluation")):
        write_archive(folder / f"{stem}.zip", members(stem, range(place, 12, 2)))
    return folder


def members(stem: str, characters: Sequence[int]) -> dict[str, bytes]:
    """The members of an archive: path -> PNG; a character's drawings depend on nothing else."""
    return {
        member(stem, character, drawing): png(stroke(character, drawing))
        for character in characters
        for drawing in (1, 2, 3)
    }


def member(stem: str, character: int, drawing: int) -> str:
    """The path of a drawing; characters take turns among the alphabets."""
    turn, alphabet = divmod(character, len(ALPHABETS))
    name = f"{ALPHABETS[alphabet]}/character{turn + 1:02d}"
    return f"{stem}/{name}/{character + 1:04d}_{drawing:02d}.png"


def stroke(character: int, drawing: int) -> Image.Image:
    """A black line on white, of one bit a pixel; another one for each drawing."""
    rng = np.random.default_rng([character, drawing])
    image = Image.new("1", (SIDE, SIDE), 1)
    ends = rng.integers(SIDE, size=(4, 2))
    ImageDraw.Draw(image).line([(int(x), int(y)) for x, y in ends], fill=0, width=SIDE // 20)
    return image


def png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def write_archive(path: Path, content: Mapping[str, bytes]) -> Path:
    """A zip archive of these members, whose bytes do not depend on the time."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return path
