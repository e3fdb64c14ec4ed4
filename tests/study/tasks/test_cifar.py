"""CIFAR: its classes, and its files as torchvision names them."""

from __future__ import annotations

import pytest

from study.tasks.mosaics.cifar import (
    CIFAR10_CLASSES,
    CIFAR10_FOREGROUND,
    CIFAR100_CLASSES,
    CIFAR100_FOREGROUND,
    CIFAR100_FOREGROUND_SUPERCLASSES,
)
from study.tasks.mosaics.layouts import OFFICIAL


def test_classes() -> None:
    for classes, count in ((CIFAR10_CLASSES, 10), (CIFAR100_CLASSES, 100)):
        assert len(classes) == count
        assert list(classes) == sorted(set(classes))
    assert set(CIFAR10_FOREGROUND) < set(CIFAR10_CLASSES)
    assert [len(names) for names in CIFAR100_FOREGROUND_SUPERCLASSES.values()] == [5] * 10
    assert len(set(CIFAR100_FOREGROUND) & set(CIFAR100_CLASSES)) == 50


@pytest.mark.parametrize("kind", OFFICIAL)
def test_files_are_those_that_torchvision_reads(kind: str) -> None:
    from torchvision import datasets  # takes seconds

    keeps, names = getattr(datasets, kind), OFFICIAL[kind]
    assert names.folder == keeps.base_folder
    assert names.train == (*(name for name, _ in keeps.train_list), keeps.meta["filename"])
    assert names.test == tuple(name for name, _ in keeps.test_list)
