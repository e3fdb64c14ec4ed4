"""A small data set in the layout of Omniglot's archives: black strokes on white."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

ALPHABETS = ("Greek", "Japanese_(hiragana)", "N_Ko", "Tagalog")


def write_omniglot(
    folder: Path,
    characters: int = 12,
    drawings: int = 3,
    side: int = 105,
    archives: Sequence[str] = ("images_background", "images_evaluation"),
) -> Path:
    """Writes so many characters, shared out among archives; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, stem in enumerate(archives):
        chosen = range(place, characters, len(archives))
        write_archive(folder / f"{stem}.zip", members(stem, chosen, drawings, side))
    return folder


def members(
    stem: str, characters: Sequence[int], drawings: int = 3, side: int = 105
) -> dict[str, bytes]:
    """The members of an archive: path -> PNG; a character's drawings depend on nothing else."""
    return {
        member(stem, character, drawing): png(stroke(character, drawing, side))
        for character in characters
        for drawing in range(1, drawings + 1)
    }


def member(stem: str, character: int, drawing: int) -> str:
    """The path of a drawing; characters take turns among the alphabets."""
    turn, alphabet = divmod(character, len(ALPHABETS))
    name = f"{ALPHABETS[alphabet]}/character{turn + 1:02d}"
    return f"{stem}/{name}/{character + 1:04d}_{drawing:02d}.png"


def stroke(character: int, drawing: int, side: int = 105) -> Image.Image:
    """A black line on white, of one bit a pixel; another one for each drawing."""
    rng = np.random.default_rng([character, drawing])
    image = Image.new("1", (side, side), 1)
    ends = rng.integers(side, size=(4, 2))
    ImageDraw.Draw(image).line([(int(x), int(y)) for x, y in ends], fill=0, width=side // 20)
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
