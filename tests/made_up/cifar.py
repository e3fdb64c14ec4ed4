"""Small data sets in the layouts of CIFAR: random pixels, official class names."""

from __future__ import annotations

import io
import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from study.tasks.mosaics.cifar import CIFAR100
from study.tasks.mosaics.layouts import FileNames, Images

Split = tuple[Images, Images]


def make(names: FileNames, train: int = 20, test: int = 10) -> Split:
    """Images of random pixels and classes."""
    rng = np.random.default_rng(len(names.class_names))

    def split(count: int) -> Images:
        images = rng.integers(256, size=(count, 32, 32, 3), dtype=np.uint8)
        return Images(images, rng.integers(len(names.class_names), size=count))

    return split(train), split(test)


class _Python2Pickler(pickle._Pickler):
    """Writes text as Python 2 did, in which the official files were made."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=2)

    def save_text(self, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        self.write(pickle.BINSTRING + struct.pack("<i", len(data)) + data)
        self.memoize(text)

    dispatch = {  # noqa: RUF012
        **pickle._Pickler.dispatch,
        str: save_text,
        bytes: save_text,
    }


def python2_pickle(value: object) -> bytes:
    file = io.BytesIO()
    _Python2Pickler(file).dump(value)
    # The names and the arguments that NumPy had then.
    data = file.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")
    return data.replace(b"\x89\x88\x87", b"K\x00K\x01\x87")


def write_official(
    folder: Path,
    names: FileNames,
    split: Split,
    dump: Callable[[object], bytes] = python2_pickle,
) -> Path:
    """The official files in `folder` itself."""
    folder.mkdir(parents=True)
    train, test = split
    images, labels = (np.array_split(each, len(names.train)) for each in train)
    parts = zip(names.train, images, labels, strict=True)
    for name, pixels, classes in [*parts, (names.test[0], *test)]:
        content = {
            "batch_label": f"batch {name}",
            names.label_key: classes.tolist(),
            "data": pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1),
            "filenames": [f"{row}.png" for row in range(len(pixels))],
        }
        if names is CIFAR100:
            content["coarse_labels"] = [0] * len(pixels)
        (folder / name).write_bytes(dump(content))
    meta = {names.meta_key: list(names.class_names), "num_vis": 3072}
    (folder / names.meta).write_bytes(dump(meta))
    return folder


def encoded(image: np.ndarray, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, kind)
    return file.getvalue()


def parquet_table(names: FileNames, images: Images, column: str = "img") -> pa.Table:
    rows = [{"bytes": encoded(each), "path": f"{row}.png"} for row, each in enumerate(images[0])]
    columns = {column: rows, names.label_column: images.labels}
    if names is CIFAR100:
        columns["coarse_label"] = np.zeros(len(rows), int)
    table = pa.table(columns)
    classes = [*names.class_names]
    if names is CIFAR100:
        classes[26] = "cra"  # Hugging Face's copy spells crab so
    features = {names.label_column: {"names": classes, "_type": "ClassLabel"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return table.replace_schema_metadata(metadata)


def write_parquet(
    folder: Path, names: FileNames, split: Split, shards: int = 1, column: str = "img"
) -> Path:
    folder.mkdir(parents=True)
    for name, images in zip(("train", "test"), split, strict=True):
        parts = zip(*(np.array_split(each, shards) for each in images), strict=True)
        for shard, part in enumerate(parts):
            path = folder / f"{name}-{shard:05}-of-{shards:05}.parquet"
            pq.write_table(parquet_table(names, Images(*part), column), path)
    return folder


def write_class_folders(folder: Path, names: FileNames, split: Split) -> Path:
    """Files named by their index over all classes, not padded."""
    for name, images in zip(("train", "test"), split, strict=True):
        for row, (image, label) in enumerate(zip(*images, strict=True)):
            path = folder / name / names.class_names[label] / f"{row}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(image))
    return folder


WRITERS = {
    "official": write_official,
    "parquet": write_parquet,
    "class folders": write_class_folders,
}
