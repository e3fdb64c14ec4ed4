"""Digits: the bundled images, their split, and no need of scikit-learn where they are prepared."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

from study.errors import RequestError
from study.tasks.mosaics.digits import load_digits
from study.tasks.mosaics.mosaics import MosaicTask
from study.tasks.sources.places import Places
from tests.study.tasks.test_base_images import assert_equal


def test_train_and_test_are_the_bundled_images(digits: MosaicTask) -> None:
    base, bundled = digits.base, datasets.load_digits()
    images = np.concatenate([base.train_images, base.test_images]).reshape(-1, 64)
    labels = np.concatenate([base.train_labels, base.test_labels])

    def rows(pixels: np.ndarray, labels: np.ndarray) -> list[list[int]]:
        return sorted(np.column_stack([pixels, labels]).astype(int).tolist())

    assert rows(images, labels) == rows(bundled.data, bundled.target)
    assert base.class_names == tuple("0123456789")
    assert base.max_value == images.max() == 16
    assert base.digest == "026b396193029697"  # on every machine


def test_splits_have_about_60_20_and_20_percent_of_each_class(digits: MosaicTask) -> None:
    base, kept = digits.base, digits.kept
    splits = base.train_labels[~kept], base.train_labels[kept], base.test_labels
    counts = np.array([np.bincount(labels) for labels in splits])
    shares = counts / counts.sum(axis=0)
    np.testing.assert_allclose(shares, np.tile([[0.6], [0.2], [0.2]], 10), rtol=0, atol=0.005)


def test_scikit_learn_is_needed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_digits(Places(cache_dir=str(tmp_path)))
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert_equal(load_digits(Places(cache_dir=str(tmp_path))), first)
    with pytest.raises(RequestError, match="pip install scikit-learn"):
        load_digits(Places(cache_dir=str(tmp_path / "another")))
