"""Small images of several sizes, a brightness a class, in the layouts of images of your own."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

COUNTS: Mapping[str, int] = {"heron": 15, "stork": 10, "reed": 20, "water": 5}
SIDE = 12


def made_up(label: int, number: int, size: tuple[int, int] = (SIDE, SIDE)) -> np.ndarray:
    """An image (height, width, 3) uint8, the same for the same arguments."""
    rng = np.random.default_rng((label, number))
    noise = rng.integers(-20, 21, size=(size[1], size[0], 3))
    return (60 * label + 30 + noise).clip(0, 255).astype(np.uint8)


def encoded(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def put(path: Path, pixels: np.ndarray) -> None:
    """Writes a PNG, in folders that may be missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(pixels))


def write_folders(
    folder: Path, counts: Mapping[str, int] = COUNTS, split: str = "", first: int = 0
) -> Path:
    """Class folders in `folder`, or in its folder `split`, of images of several sizes.

    Args:
        first: number of the first image of each class.
    """
    for label, (name, count) in enumerate(counts.items()):
        for number in range(first, first + count):
            size = (SIDE + number % 5, SIDE + number % 3)
            put(folder / split / name / f"{number}.png", made_up(label, number, size))
    return folder


def described(names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The metadata of a Parquet file whose columns number classes of these names."""
    features = {column: {"names": [*of], "_type": "ClassLabel"} for column, of in names.items()}
    return {"huggingface": json.dumps({"info": {"features": features}})}


def write_own_parquet(
    path: Path,
    labels: list[Any],
    column: str = "label",
    categories: bool = False,
    listed: list[str] | None = None,
) -> Path:
    """A file of an image for each label.

    Args:
        categories: whether labels are written once, as pandas writes categories.
        listed: names of the classes that labels number, as Hugging Face notes them.
    """
    images = [{"bytes": encoded(made_up(0, row)), "path": None} for row in range(len(labels))]
    values = pa.array(labels)
    path.parent.mkdir(parents=True, exist_ok=True)
    written = values.dictionary_encode() if categories else values
    table = pa.table({"image": images, column: written})
    if listed:
        table = table.replace_schema_metadata(described({column: listed}))
    pq.write_table(table, path)
    return path


def write_ubyte(folder: Path, compressed: bool = False, count: int = 30) -> Path:
    """The four files of MNIST, of three classes."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part, n in (("train", count), ("t10k", count // 3)):
        images = rng.integers(256, size=(n, 28, 28), dtype=np.uint8)
        for name, values in (("images-idx3", images), ("labels-idx1", np.arange(n) % 3)):
            header = bytes((0, 0, 8, values.ndim))
            header += b"".join(size.to_bytes(4, "big") for size in values.shape)
            data = header + values.astype(np.uint8).tobytes()
            path = folder / f"{part}-{name}-ubyte{'.gz' if compressed else ''}"
            path.write_bytes(gzip.compress(data) if compressed else data)
    return folder
