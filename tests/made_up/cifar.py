"""Small data sets in the layouts of CIFAR: random pixels, official class names."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from study.tasks.mosaics.cifar import CIFAR100
from study.tasks.mosaics.layouts import ImageSet
from tests.made_up.images import described, encoded, put

OFFICIAL = {
    "CIFAR10": ([f"data_batch_{number}" for number in range(1, 6)], "test_batch", "batches.meta"),
    "CIFAR100": (["train"], "test", "meta"),
}
"""Class of torchvision -> its files of train images, of test images, and of class names."""


class Images(NamedTuple):
    """Images (N, 32, 32, 3) uint8, and their labels (N,) int64."""

    images: np.ndarray
    labels: np.ndarray


Split = tuple[Images, Images]


def make(names: ImageSet, train: int = 20, test: int = 10) -> Split:
    """Images of random pixels and classes."""
    rng = np.random.default_rng(len(names.class_names))

    def split(count: int) -> Images:
        images = rng.integers(256, size=(count, 32, 32, 3), dtype=np.uint8)
        return Images(images, rng.integers(len(names.class_names), size=count))

    return split(train), split(test)


def write_official(folder: Path, names: ImageSet, split: Split) -> Path:
    """The official files in `folder` itself, which `as_official` lets torchvision take."""
    folder.mkdir(parents=True)
    batches, tests, meta = OFFICIAL[names.layouts[0]]
    fine = "fine_" * (names is CIFAR100)
    train, test = split
    images, labels = (np.array_split(each, len(batches)) for each in train)
    for name, pixels, classes in [*zip(batches, images, labels, strict=True), (tests, *test)]:
        data = pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1)
        content = {"data": data, f"{fine}labels": classes.tolist()}
        (folder / name).write_bytes(pickle.dumps(content))
    (folder / meta).write_bytes(pickle.dumps({f"{fine}label_names": list(names.class_names)}))
    return folder


def publish(folder: Path, patch: pytest.MonkeyPatch) -> Any:
    """Makes the checksums of the files in a folder, if they are CIFAR's, known to torchvision.

    Returns:
        The class of torchvision that then takes them.
    """
    from torchvision import datasets  # takes seconds

    for kind, (batches, *others) in OFFICIAL.items():
        every = {name: folder / name for name in (*batches, *others)}
        if all(path.is_file() for path in every.values()):
            keeps = getattr(datasets, kind)
            md5s = {name: md5(path.read_bytes()) for name, path in every.items()}
            for part in ("train_list", "test_list"):
                checked = [[name, md5s[name]] for name, _ in getattr(keeps, part)]
                patch.setattr(keeps, part, checked)
            patch.setattr(keeps, "meta", {**keeps.meta, "md5": md5s[keeps.meta["filename"]]})
            return keeps
    return None


@contextlib.contextmanager
def as_official(folder: Path) -> Iterator[None]:
    """Lets torchvision take made-up files, if there are any, in its body."""
    with pytest.MonkeyPatch.context() as patch:
        publish(folder, patch)
        yield


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def write_parquet(
    folder: Path, names: ImageSet, split: Split, shards: int = 1, column: str = "img"
) -> Path:
    folder.mkdir(parents=True)
    classes = ["cra" if name == "crab" else name for name in names.class_names]  # as they spell it
    (labels,) = names.label_columns
    for name, images in zip(("train", "test"), split, strict=True):
        parts = zip(*(np.array_split(each, shards) for each in images), strict=True)
        for shard, (pixels, of_each) in enumerate(parts):
            rows = [{"bytes": encoded(each), "path": "x.png"} for each in pixels]
            table = pa.table({column: rows, labels: of_each, "coarse_label": of_each // 5})
            path = folder / f"{name}-{shard:05}-of-{shards:05}.parquet"
            pq.write_table(table.replace_schema_metadata(described({labels: classes})), path)
    return folder


def write_class_folders(folder: Path, names: ImageSet, split: Split) -> Path:
    """Files named by their index over all classes, not padded."""
    for name, images in zip(("train", "test"), split, strict=True):
        for row, (image, label) in enumerate(zip(*images, strict=True)):
            put(folder / name / names.class_names[label] / f"{row}.png", image)
    return folder


WRITERS = {
    "official": write_official,
    "parquet": write_parquet,
    "class folders": write_class_folders,
}
