"""Digits: the split, the digest, and no need of scikit-learn where they are prepared."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

from study.errors import RequestError
from study.tasks.mosaics.digits import DIGITS_FOREGROUND, load_digits
from study.tasks.mosaics.mosaics import MosaicTask
from study.tasks.sources.places import Places
from tests.study.tasks.test_base_images import assert_equal


def test_shapes_and_values(tmp_path: Path) -> None:
    base = load_digits(Places(cache_dir=str(tmp_path)))
    assert base.train_images.shape == (1438, 8, 8, 1)
    assert base.test_images.shape == (359, 8, 8, 1)
    assert base.max_value == base.train_images.max() == base.test_images.max() == 16
    assert base.class_names == tuple("0123456789")
    assert set(DIGITS_FOREGROUND) < set(base.class_names)


def test_train_and_test_are_the_bundled_images(tmp_path: Path) -> None:
    base = load_digits(Places(cache_dir=str(tmp_path)))
    images = np.concatenate([base.train_images, base.test_images]).reshape(-1, 64)
    labels = np.concatenate([base.train_labels, base.test_labels])
    bundled = datasets.load_digits()

    def rows(pixels: np.ndarray, labels: np.ndarray) -> list[tuple[int, ...]]:
        return sorted(map(tuple, np.column_stack([pixels, labels]).astype(int).tolist()))

    assert rows(images, labels) == rows(bundled.data, bundled.target)


def test_splits_have_about_60_20_and_20_percent_of_each_class(digits: MosaicTask) -> None:
    base = digits.base
    held_out = digits._held_out()
    splits = base.train_labels[~held_out], base.train_labels[held_out], base.test_labels
    counts = np.array([np.bincount(labels) for labels in splits])
    shares = counts / counts.sum(axis=0)
    np.testing.assert_allclose(shares, np.tile([[0.6], [0.2], [0.2]], 10), rtol=0, atol=0.005)


def test_digest_is_the_same_on_every_machine(tmp_path: Path) -> None:
    assert load_digits(Places(cache_dir=str(tmp_path))).digest == "026b396193029697"


def test_prepared_digits_need_no_scikit_learn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_digits(Places(cache_dir=str(tmp_path)))
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert_equal(load_digits(Places(cache_dir=str(tmp_path))), first)


def test_without_scikit_learn_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(RequestError, match=r"pip install scikit-learn"):
        load_digits(Places(cache_dir=str(tmp_path)))
