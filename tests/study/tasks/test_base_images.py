"""Base images: what is refused, what the digest tells apart, and the prepared form."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from study.errors import RequestError
from study.tasks.mosaics.base_images import BaseImages, prepared


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
