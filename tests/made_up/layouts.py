"""Small data of every task, in every layout that it accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from study.cell import Options
from study.tasks.mosaics.cifar import CIFAR10, CIFAR100
from study.tasks.mosaics.layouts import ImageSet
from tests.made_up import cifar, images
from tests.made_up.chapters import brought
from tests.made_up.layout import Layout, Write


def _cifar(write: Callable[..., object], names: ImageSet) -> Write:
    count = 10 * len(names.class_names)
    return lambda folder: write(folder, names, cifar.make(names, 2 * count, count))


def _both_splits(folder: Path) -> None:
    images.write_folders(folder, split="train")
    images.write_folders(folder, split="test", first=100)


_images = partial(
    Layout, "images", options=Options(foreground="heron+stork", pixels=8), prepares=True
)
_digits = partial(Layout, "images", options=Options(foreground="0+1", pixels=8), prepares=True)

LAYOUTS: Mapping[str, Layout] = {
    "digits, bundled": Layout("digits"),
    **{
        f"{task}, {name}": Layout(task, _cifar(write, names), prepares=True)
        for task, names in (("cifar10", CIFAR10), ("cifar100", CIFAR100))
        for name, write in cifar.WRITERS.items()
    },
    "images, class folders": _images(images.write_folders),
    "images, train and test": _images(_both_splits),
    "images, Parquet": _images(
        lambda folder: images.write_own_parquet(folder / "a.parquet", ["heron", "stork", "x"] * 9),
    ),
    "images, MNIST": _digits(images.write_ubyte),
    "images, MNIST.gz": _digits(partial(images.write_ubyte, compressed=True)),
    **brought().layouts,
}

OF_TASK: Mapping[str, Layout] = {layout.task: layout for layout in reversed(LAYOUTS.values())}
"""Task -> the first of its layouts."""
