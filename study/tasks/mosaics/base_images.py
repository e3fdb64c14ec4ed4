"""Base images, of which mosaics are made: their digest and their prepared form on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from study.errors import RequestError
from study.tasks.mosaics.layouts.common import check_labels
from study.tasks.sources.cache import CACHE_VARIABLE, locked, whole

VALIDATION_SHARE = 0.1
"""Of the train images of each class, unless a task has its own share."""

MADE_UP_IMAGES = 20
"""Images a class in each split of made-up data."""

_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")
_REST = "base_images.json"


@dataclass(frozen=True, eq=False)
class BaseImages:
    """The labelled images of a data set; `create` checks them and computes the digest.

    Attributes:
        train_images: (N, H, W, C) uint8 in [0, max_value].
        train_labels: (N,) int64 in [0, number of classes).
        test_images: (M, H, W, C) uint8 in [0, max_value].
        test_labels: (M,) int64 in [0, number of classes).
        class_names: the name of each label.
        max_value: the pixel value that stands for 1.
        digest: 16 hexadecimal digits that stand for images, labels and class names.
    """

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    class_names: tuple[str, ...]
    max_value: int
    digest: str

    @classmethod
    def create(
        cls,
        train_images: np.ndarray,
        train_labels: np.ndarray,
        test_images: np.ndarray,
        test_labels: np.ndarray,
        *,
        class_names: Sequence[str],
        max_value: int,
        source: str,
    ) -> BaseImages:
        """Checks base images and computes their digest.

        Args:
            source: where the images are from, for messages.

        Raises:
            RequestError: a wrong type or shape, an empty split, a pixel or label out of range.
        """
        class_names = tuple(class_names)
        for split, images, labels in (
            ("train", train_images, train_labels),
            ("test", test_images, test_labels),
        ):
            where = f"the {split} images of {source}"
            _check_images(images, max_value, where)
            check_labels(labels, len(images), len(class_names), where)
        if train_images.shape[1:] != test_images.shape[1:]:
            raise RequestError(
                f"the images of {source} have different shapes: train "
                f"{train_images.shape[1:]}, test {test_images.shape[1:]}."
            )
        train_images, train_labels, test_images, test_labels = arrays = [
            np.ascontiguousarray(each)
            for each in (train_images, train_labels, test_images, test_labels)
        ]
        return cls(
            train_images,
            train_labels,
            test_images,
            test_labels,
            class_names,
            max_value,
            digest=_digest(arrays, class_names),
        )


def made_up_images(
    shape: tuple[int, ...], foreground: Sequence[str], count: int = 0
) -> BaseImages:
    """Noise as images of each foreground class and one background class.

    Args:
        shape: of an image: (channels, height, width).
        foreground: names of the foreground classes.
        count: least images of each split.
    """
    channels, height, width = shape
    classes = (*foreground, "background")
    rng = np.random.default_rng(0)
    count = max(count, MADE_UP_IMAGES * len(classes))
    images, more = rng.integers(256, size=(2, count, height, width, channels), dtype=np.uint8)
    labels = np.arange(count) % len(classes)
    return BaseImages.create(
        images, labels, more, labels, class_names=classes, max_value=255, source="made-up data"
    )


def _check_images(images: np.ndarray, max_value: int, where: str) -> None:
    if len(images) == 0:
        raise RequestError(f"there are no images among {where}.")
    if images.dtype != np.uint8:
        raise RequestError(f"{where} must be uint8, got {images.dtype}.")
    if images.ndim != 4 or 0 in images.shape:
        raise RequestError(f"{where} must be (N, H, W, C), none of them 0, got {images.shape}.")
    largest = int(images.max())
    if largest > max_value:
        raise RequestError(f"pixel out of range: {largest} in {where}, must be 0..{max_value}.")


def _digest(arrays: Sequence[np.ndarray], class_names: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(json.dumps(array.shape).encode())
        # A fixed byte order, so that the digest is the same on every machine.
        digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
    digest.update(json.dumps(class_names).encode())
    return digest.hexdigest()[:16]


def save(base: BaseImages, folder: Path) -> None:
    """Writes the prepared form: one .npy file an array, one JSON file for the rest.

    Raises:
        OSError: it cannot be written.
    """
    with whole(folder) as partial:
        for name in _ARRAYS:
            np.save(partial / f"{name}.npy", getattr(base, name), allow_pickle=False)
        rest = {
            "class_names": base.class_names,
            "max_value": base.max_value,
            "digest": base.digest,
        }
        (partial / _REST).write_text(json.dumps(rest), encoding="utf-8")


def load(folder: Path) -> BaseImages:
    """Reads the prepared form and checks its digest; the arrays are memory-mapped, copy-on-write.

    So processes of one machine share the pages, and the arrays count as writable, which
    `torch.from_numpy` requires.

    Raises:
        RequestError: it is missing or damaged.
    """
    try:
        rest = json.loads((folder / _REST).read_text(encoding="utf-8"))
        arrays = [
            # As a plain array: a np.memmap would pass its type on to every result.
            np.asarray(np.load(folder / f"{name}.npy", mmap_mode="c", allow_pickle=False))
            for name in _ARRAYS
        ]
        base = BaseImages.create(
            *arrays,
            class_names=rest["class_names"],
            max_value=rest["max_value"],
            source=str(folder),
        )
        if base.digest != rest["digest"]:
            raise ValueError(f"digest {base.digest}, {rest['digest']} was saved")
    except (OSError, ValueError, KeyError, TypeError, EOFError, RequestError) as error:
        raise RequestError(
            f"the prepared images in {folder} are missing or damaged ({error}). Delete the "
            "folder; the next run makes it again."
        ) from error
    return base


def prepared(folder: Path, read: Callable[[], BaseImages]) -> BaseImages:
    """The prepared form in `folder`; if it is missing or damaged, calls `read` and keeps it there.

    If several processes of a machine ask at once, one reads and the others wait. A cache that
    cannot be written costs a warning and time.

    Raises:
        RequestError: from `read`.
    """
    base = _kept(folder)
    if base is not None:
        return base
    with locked(folder):
        base = _kept(folder)  # another process may have made it meanwhile
        if base is not None:
            return base
        shutil.rmtree(folder, ignore_errors=True)
        base = read()
        try:
            save(base, folder)
            return load(folder)  # shared pages instead of this process's own copy
        except (OSError, RequestError) as error:
            warnings.warn(
                f"cannot keep the prepared images in {folder} ({error}); every run will prepare "
                f"them again. Set {CACHE_VARIABLE} to a directory that can be written.",
                stacklevel=2,
            )
            return base


def _kept(folder: Path) -> BaseImages | None:
    """The prepared form; None if it is missing or damaged."""
    with contextlib.suppress(RequestError):
        return load(folder)
    return None
