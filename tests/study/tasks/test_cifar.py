"""CIFAR: class names, equal whatever the layout, the cache, the real images."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.cifar import (
    CIFAR10,
    CIFAR10_CLASSES,
    CIFAR10_FOREGROUND,
    CIFAR100,
    CIFAR100_CLASSES,
    CIFAR100_FOREGROUND,
    CIFAR100_FOREGROUND_SUPERCLASSES,
    load_cifar10,
    load_cifar100,
)
from study.tasks.mosaics.layouts import FileNames
from study.tasks.sources.places import Places
from tests.conftest import PROJECT, REAL_DATA, needs_data
from tests.made_up.cifar import (
    WRITERS,
    make,
    write_class_folders,
    write_official,
    write_parquet,
)
from tests.study.tasks.test_base_images import assert_equal, entries

LOADERS = {"cifar10": (CIFAR10, load_cifar10), "cifar100": (CIFAR100, load_cifar100)}
BOTH = pytest.mark.parametrize(("names", "load"), LOADERS.values(), ids=LOADERS)
Load = Callable[..., BaseImages]


def test_class_names() -> None:
    assert len(CIFAR10_CLASSES) == 10
    assert list(CIFAR10_CLASSES) == sorted(CIFAR10_CLASSES)
    assert len(set(CIFAR100_CLASSES)) == len(CIFAR100_CLASSES) == 100
    assert list(CIFAR100_CLASSES) == sorted(CIFAR100_CLASSES)


def test_foregrounds() -> None:
    assert CIFAR10_FOREGROUND == ("airplane", "automobile", "bird")
    assert [len(names) for names in CIFAR100_FOREGROUND_SUPERCLASSES.values()] == [5] * 10
    assert len(set(CIFAR100_FOREGROUND)) == len(CIFAR100_FOREGROUND) == 50
    assert set(CIFAR100_FOREGROUND) < set(CIFAR100_CLASSES)


@BOTH
def test_files_are_those_that_torchvision_keeps(names: FileNames, load: Load) -> None:
    from torchvision import datasets  # takes seconds

    keeps = datasets.CIFAR10 if names is CIFAR10 else datasets.CIFAR100
    assert names.folder == keeps.base_folder
    assert names.train == tuple(name for name, _ in keeps.train_list)
    assert names.test == tuple(name for name, _ in keeps.test_list)
    assert (names.meta, names.meta_key) == (keeps.meta["filename"], keeps.meta["key"])


@BOTH
def test_the_layout_makes_no_difference(tmp_path: Path, names: FileNames, load: Load) -> None:
    first, *others = (
        load(Places(str(write(tmp_path / layout, names, make(names))), str(tmp_path / "cache")))
        for layout, write in WRITERS.items()
    )
    assert first.max_value == 255
    assert first.class_names == names.class_names
    np.testing.assert_array_equal(first.train_images, make(names)[0].images)
    for other in others:
        assert_equal(other, first)


def test_jpeg_copies_do_not_meet_the_official_images(tmp_path: Path) -> None:
    train, test = make(CIFAR10)
    copy = train._replace(images=train.images ^ 1)
    digests = [
        load_cifar10(
            Places(str(write_parquet(tmp_path / name, CIFAR10, (each, test))), str(tmp_path))
        )
        for name, each in (("official", train), ("copy", copy))
    ]
    assert digests[0].digest != digests[1].digest


# The cache


def test_second_load_decodes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_class_folders(tmp_path / "data", CIFAR10, make(CIFAR10))
    first = load_cifar10(Places(str(folder), str(tmp_path / "cache")))
    monkeypatch.setattr("study.tasks.mosaics.cifar.read", None)
    assert_equal(load_cifar10(Places(str(folder), str(tmp_path / "cache"))), first)


def test_a_file_of_equal_size_but_another_time_is_read_again(tmp_path: Path) -> None:
    folder, cache = write_official(tmp_path / "data", CIFAR10, make(CIFAR10)), tmp_path / "cache"
    load_cifar10(Places(str(folder), str(cache)))
    status = (folder / "test_batch").stat()
    os.utime(folder / "test_batch", ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    load_cifar10(Places(str(folder), str(cache)))
    assert len(entries(cache / "prepared")) == 2


# The rest


def test_importing_needs_neither_torchvision_nor_pillow_nor_scikit_learn() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torchvision', 'PIL', 'sklearn']));"
        "import study.tasks.mosaics.cifar, study.tasks.mosaics.digits, study.tasks.mosaics.layouts"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=PROJECT)


@needs_data
def test_the_real_images(tmp_path: Path) -> None:
    base = load_cifar10(Places(str(REAL_DATA / "cifar10"), str(tmp_path)))
    assert base.train_images.shape == (50_000, 32, 32, 3)
    assert base.test_images.shape == (10_000, 32, 32, 3)
    np.testing.assert_array_equal(np.bincount(base.train_labels), [5_000] * 10)
    np.testing.assert_array_equal(np.bincount(base.test_labels), [1_000] * 10)
    assert 0.45 < base.train_images.mean() / 255 < 0.5  # CIFAR-10's mean is .473
    again = load_cifar10(Places(str(REAL_DATA / "cifar10"), str(tmp_path)))
    assert (again.digest, again.class_names) == (base.digest, base.class_names)
