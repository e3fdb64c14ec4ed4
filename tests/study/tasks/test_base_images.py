"""Base images: refusals, the digest, the prepared form, and those that are published."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits as load_bundled

from study.errors import RequestError
from study.tasks.mosaics.base_images import BaseImages, prepared
from study.tasks.mosaics.cifar import (
    CIFAR10_CLASSES,
    CIFAR10_FOREGROUND,
    CIFAR100_CLASSES,
    CIFAR100_FOREGROUND,
    CIFAR100_FOREGROUND_SUPERCLASSES,
)
from study.tasks.mosaics.digits import load_digits
from study.tasks.mosaics.layouts import OFFICIAL
from study.tasks.mosaics.mosaics import MosaicTask
from study.tasks.sources.places import Places


def values(**changes: Any) -> dict[str, Any]:
    """Arguments of `BaseImages.create`: 6 train and 4 test images of two classes."""
    rng = np.random.default_rng(0)
    return {
        "train_images": rng.integers(256, size=(6, 4, 5, 3), dtype=np.uint8),
        "train_labels": np.array([0, 1, 0, 1, 0, 1]),
        "test_images": rng.integers(256, size=(4, 4, 5, 3), dtype=np.uint8),
        "test_labels": np.array([1, 0, 1, 0]),
        "class_names": ("cat", "dog"),
        "max_value": 255,
        "source": "somewhere",
        **changes,
    }


def make(**changes: Any) -> BaseImages:
    return BaseImages.create(**values(**changes))


def assert_equal(a: BaseImages, b: BaseImages) -> None:
    """Bitwise."""
    for field in dataclasses.fields(BaseImages):
        np.testing.assert_equal(getattr(a, field.name), getattr(b, field.name))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_labels": np.array([1, 0, 12, 0])}, "12 at image 2 of the test images of somewh"),
        ({"max_value": 16}, "255 in the train images of somewhere, must be 0..16"),
        ({"train_images": np.zeros((6, 4, 5, 3))}, "train images .* float64"),
        ({"test_images": np.zeros((4, 5, 5, 3), np.uint8)}, r"\(4, 5, 3\).*\(5, 5, 3\)"),
    ],
)
def test_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        make(**changes)


def test_the_digest_stands_for_the_content_and_no_more() -> None:
    given, digest = values(), make().digest
    fortran = np.asfortranarray(given["train_images"])
    assert make(source="elsewhere", train_images=fortran).digest == digest
    flat = {name: given[name].reshape(-1, 5, 4, 3) for name in ("train_images", "test_images")}
    others = [flat, {"class_names": ("cat", "fox")}]
    for name in ("train_images", "train_labels", "test_images", "test_labels"):
        given[name].flat[-1] ^= 1
        others.append({name: given[name]})
    assert len({digest, *(make(**changes).digest for changes in others)}) == 1 + len(others)


@pytest.mark.parametrize("by_content", [False, True])
def test_the_prepared_form_is_equal(tmp_path: Path, by_content: bool) -> None:
    images = values()["train_images"]
    images[3] = images[1]
    base = make(train_images=images, by_content=by_content)
    assert base.train_sources.tolist() == [0, 1, 2, 1 if by_content else 3, 4, 5]
    assert_equal(prepared(tmp_path / "prepared", lambda: base), base)
    assert_equal(prepared(tmp_path / "prepared", make), base)  # read no more


# Published images


def test_digits_are_the_bundled_images(digits: MosaicTask) -> None:
    base, bundled = digits.base, load_bundled()
    images = np.concatenate([base.train_images, base.test_images]).reshape(-1, 64)
    labels = np.concatenate([base.train_labels, base.test_labels])

    def rows(pixels: np.ndarray, labels: np.ndarray) -> list[list[int]]:
        return sorted(np.column_stack([pixels, labels]).astype(int).tolist())

    assert rows(images, labels) == rows(bundled.data, bundled.target)
    assert base.class_names == tuple("0123456789")
    assert base.max_value == images.max() == 16
    assert base.digest == "026b396193029697"  # on every machine


def test_scikit_learn_is_needed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_digits(Places(cache_dir=str(tmp_path)))
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert_equal(load_digits(Places(cache_dir=str(tmp_path))), first)
    with pytest.raises(RequestError, match="pip install scikit-learn"):
        load_digits(Places(cache_dir=str(tmp_path / "another")))


def test_classes_of_cifar() -> None:
    for classes, count in ((CIFAR10_CLASSES, 10), (CIFAR100_CLASSES, 100)):
        assert len(classes) == count
        assert list(classes) == sorted(set(classes))
    assert set(CIFAR10_FOREGROUND) < set(CIFAR10_CLASSES)
    assert [len(names) for names in CIFAR100_FOREGROUND_SUPERCLASSES.values()] == [5] * 10
    assert len(set(CIFAR100_FOREGROUND) & set(CIFAR100_CLASSES)) == 50


@pytest.mark.parametrize("kind", OFFICIAL)
def test_files_of_cifar_are_those_that_torchvision_reads(kind: str) -> None:
    from torchvision import datasets  # takes seconds

    keeps, names = getattr(datasets, kind), OFFICIAL[kind]
    assert names.folder == keeps.base_folder
    assert names.train == (*(name for name, _ in keeps.train_list), keeps.meta["filename"])
    assert names.test == tuple(name for name, _ in keeps.test_list)
