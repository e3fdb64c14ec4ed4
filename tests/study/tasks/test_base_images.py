"""Base images: refusals, the digest, and the bundled digits without their package.

The digests of all published layouts are in the golden record (`tests.golden data`).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from study.errors import RequestError
from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.digits import load_digits
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_labels": np.array([1, 0, 12, 0])}, "12 at image 2 of the test images of somewh"),
        ({"max_value": 16}, "255 in the train images of somewhere, must be 0..16"),
        ({"train_images": np.zeros((6, 4, 5, 3))}, "train images .* float64"),
        ({"test_images": np.zeros((4, 5, 5, 3), np.uint8)}, r"\(4, 5, 3\).*\(5, 5, 3\)"),
    ],
)
def test_refuses(changes, message):
    with pytest.raises(RequestError, match=message):
        make(**changes)


def test_the_digest_stands_for_the_content_and_no_more():
    given, digest = values(), make().digest
    fortran = np.asfortranarray(given["train_images"])
    assert make(source="elsewhere", train_images=fortran).digest == digest
    flat = {name: given[name].reshape(-1, 5, 4, 3) for name in ("train_images", "test_images")}
    others = [flat, {"class_names": ("cat", "fox")}]
    for name in ("train_images", "train_labels", "test_images", "test_labels"):
        given[name].flat[-1] ^= 1
        others.append({name: given[name]})
    assert len({digest, *(make(**changes).digest for changes in others)}) == 1 + len(others)


def test_scikit_learn_is_needed_once(tmp_path, monkeypatch):
    first = load_digits(Places(cache_dir=str(tmp_path)))
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert load_digits(Places(cache_dir=str(tmp_path))).digest == first.digest
    with pytest.raises(RequestError, match="pip install scikit-learn"):
        load_digits(Places(cache_dir=str(tmp_path / "another")))
