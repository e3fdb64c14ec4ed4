"""Base images: what is refused, what the digest tells apart, and the prepared form."""

from __future__ import annotations

import dataclasses
import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from study.errors import RequestError
from study.tasks.mosaics.base_images import BaseImages, load, prepared, save
from study.tasks.sources.places import default_cache_dir

ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


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
        one, other = getattr(a, field.name), getattr(b, field.name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other, strict=True)
        else:
            assert one == other


def entries(folder: Path) -> list[str]:
    """What a folder of the cache holds, without the lock files, which stay."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def no_read() -> BaseImages:
    raise AssertionError("read although the prepared form is at hand")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"test_labels": np.array([1, 0, 12, 0])},
            "labels out of range: 12 at image 2 of the test images of somewhere, must be 0..1.",
        ),
        (
            {"train_labels": np.array([0, 1, 0, 1, 0, -1])},
            "labels out of range: -1 at image 5 of the train images of somewhere, must be 0..1.",
        ),
        (
            {"max_value": 16},
            "pixel out of range: 255 in the train images of somewhere, must be 0..16.",
        ),
        (
            {"train_images": np.zeros((6, 4, 5, 3))},
            "the train images of somewhere must be uint8 (N, H, W, C), none of them 0, got "
            "float64 (6, 4, 5, 3).",
        ),
        (
            {"test_images": np.zeros((0, 4, 5, 3), np.uint8), "test_labels": np.zeros(0, int)},
            "the test images of somewhere must be uint8 (N, H, W, C), none of them 0, got "
            "uint8 (0, 4, 5, 3).",
        ),
        (
            {"test_labels": np.array([1, 0, 1])},
            "the labels of the test images of somewhere must be int64 (4,), got int64 (3,).",
        ),
        (
            {"test_images": np.zeros((4, 5, 5, 3), np.uint8)},
            "the images of somewhere have different shapes: train (4, 5, 3), test (5, 5, 3).",
        ),
    ],
)
def test_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        make(**changes)
    assert str(caught.value) == message


def test_digest_stands_for_the_content_only() -> None:
    fortran = np.asfortranarray(values()["train_images"])
    assert make(source="elsewhere", train_images=fortran).digest == make().digest


@pytest.mark.parametrize("name", [*ARRAYS, "class_names"])
def test_any_change_changes_the_digest(name: str) -> None:
    changed = values()[name]
    changed = ("cat", "fox") if name == "class_names" else changed.copy()
    if name != "class_names":
        changed.flat[-1] ^= 1
    assert make(**{name: changed}).digest != make().digest


def test_digest_tells_shapes_apart() -> None:
    flat = {
        name: images.reshape(len(images), 5, 4, 3)
        for name, images in values().items()
        if name.endswith("images")
    }
    assert make(**flat).digest != make().digest


def test_saved_and_loaded_is_equal(tmp_path: Path) -> None:
    save(make(), tmp_path / "deep" / "prepared")
    assert_equal(load(tmp_path / "deep" / "prepared"), make())


def test_loaded_arrays_are_mapped_and_safe_to_write(tmp_path: Path) -> None:
    save(make(), tmp_path / "prepared")
    loaded = load(tmp_path / "prepared")
    assert isinstance(loaded.train_images.base, np.memmap)
    torch.from_numpy(loaded.train_images).zero_()  # without a warning, and to this copy only
    assert not loaded.train_images.any()
    assert_equal(load(tmp_path / "prepared"), make())


def test_no_pickle_is_read(tmp_path: Path) -> None:
    save(make(), tmp_path / "prepared")
    objects = np.array([{}], dtype=object)
    np.save(tmp_path / "prepared" / "train_images.npy", objects, allow_pickle=True)
    with pytest.raises(RequestError, match=r"prepared cannot be read \("):
        load(tmp_path / "prepared")


def test_processes_that_save_at_once_leave_one_whole_folder(tmp_path: Path) -> None:
    folder = tmp_path / "prepared"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: save(make(), folder), range(8)))
    assert_equal(load(folder), make())
    assert list(tmp_path.iterdir()) == [folder]


def test_prepared_reads_once(tmp_path: Path) -> None:
    first = prepared(tmp_path / "prepared", make)
    assert_equal(first, make())
    assert_equal(prepared(tmp_path / "prepared", no_read), first)


@pytest.mark.parametrize("file", ["train_images.npy", "test_labels.npy", "base_images.json"])
@pytest.mark.parametrize("damage", ["truncated", "removed", "changed"])
def test_damaged_prepared_form_is_made_again(tmp_path: Path, file: str, damage: str) -> None:
    folder = tmp_path / "prepared"
    save(make(), folder)
    path = folder / file
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.unlink()
    if damage != "removed":
        path.write_bytes(data if damage == "changed" else data[: len(data) // 2])
    with pytest.raises(RequestError, match="prepared"):
        load(folder)
    assert_equal(prepared(folder, make), make())
    assert_equal(load(folder), make())


def test_a_cache_that_cannot_be_made_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match=r"cannot keep the prepared images.*ATTENTION_STUDY_C"):
        base = prepared(tmp_path / "file" / "prepared", make)
    assert_equal(base, make())


def test_a_full_disk_costs_a_warning_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def full(*args: object, **kwargs: object) -> None:
        written.append(args)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        assert_equal(prepared(tmp_path / "prepared", make), make())
    assert written
    assert entries(tmp_path) == []


def test_default_cache_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ATTENTION_STUDY_CACHE", str(tmp_path))
    assert default_cache_dir() == tmp_path
    monkeypatch.delenv("ATTENTION_STUDY_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / ".cache" / "attention-study"
