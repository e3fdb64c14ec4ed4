"""Base images, of which mosaics are made: their digest and their prepared form on disk."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from study.errors import RequestError
from study.tasks.mosaics.base_segments import BaseSegments, first_alike
from study.tasks.sources import cached

VALIDATION_SHARE = 0.1
"""Of the train images of each class, unless a task has its own share."""

_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


@dataclass(frozen=True, eq=False)
class BaseImages(BaseSegments):
    """The labelled images of a data set, uint8; `create` checks them and computes the digest.

    Attributes:
        by_content: whether equal images are one draw of the data, so have one source; else each is
            its own.
    """

    by_content: bool = False

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
        notes: Sequence[str] = (),
        by_content: bool = False,
    ) -> BaseImages:
        """Checks base images and computes their digest.

        Args:
            source: where the images are from, for messages.
            by_content: see `BaseImages`.

        Raises:
            RequestError: a wrong type or shape, an empty split, a pixel or label out of range.
        """
        class_names = tuple(class_names)
        for split, images, labels in (
            ("train", train_images, train_labels),
            ("test", test_images, test_labels),
        ):
            where = f"the {split} images of {source}"
            _check(images, labels, max_value, len(class_names), where)
        if train_images.shape[1:] != test_images.shape[1:]:
            raise RequestError(
                f"the images of {source} have different shapes: train "
                f"{train_images.shape[1:]}, test {test_images.shape[1:]}."
            )
        train_images, train_labels, test_images, test_labels = arrays = [
            np.ascontiguousarray(each)
            for each in (train_images, train_labels, test_images, test_labels)
        ]
        sources, test_sources = (
            first_alike(images) if by_content else np.arange(len(images))
            for images in (train_images, test_images)
        )
        moved = [sources] * (len(np.unique(sources)) < len(sources))  # to another split
        return cls(
            "images",
            train_images,
            train_labels,
            sources,
            test_images,
            test_labels,
            test_sources,
            class_names,
            max_value,
            digest=cached.digest_of([*arrays, *moved], class_names),
            notes=tuple(notes),
            by_content=by_content,
        )


def _check(
    images: np.ndarray, labels: np.ndarray, max_value: int, num_classes: int, where: str
) -> None:
    """Refuses types, shapes and values that `BaseImages` does not take."""
    if images.dtype != np.uint8 or images.ndim != 4 or 0 in images.shape:
        raise RequestError(
            f"{where} must be uint8 (N, H, W, C), none of them 0, got {images.dtype} "
            f"{images.shape}."
        )
    if (largest := int(images.max())) > max_value:
        raise RequestError(f"pixel out of range: {largest} in {where}, must be 0..{max_value}.")
    if labels.dtype != np.int64 or labels.shape != images.shape[:1]:
        raise RequestError(
            f"the labels of {where} must be int64 ({len(images)},), got {labels.dtype} "
            f"{labels.shape}."
        )
    for row in np.flatnonzero((labels < 0) | (labels >= num_classes)):
        raise RequestError(
            f"labels out of range: {labels[row]} at image {row} of {where}, must be "
            f"0..{num_classes - 1}."
        )


def prepared(folder: Path, read: Callable[[], BaseImages]) -> BaseImages:
    """The prepared form in `folder`, see `study.tasks.sources.cached.prepared`.

    Raises:
        RequestError: from `read`.
    """
    rest = ("class_names", "max_value", "notes", "by_content")
    create = functools.partial(BaseImages.create, source=str(folder))
    return cached.prepared(folder, read, create, _ARRAYS, rest)
