"""What mosaics are made of: labelled segments, and which of them are kept for validation."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from study.cell.seeds import stream_seed


@dataclass(frozen=True, eq=False)
class BaseSegments:
    """The labelled segments of a data set: images, or windows of series as images one pixel wide.

    Attributes:
        noun: what segments are cut from, in the plural: images, which are whole, or series.
        train_images: (N, H, W, C), uint8 in [0, max_value] or float32.
        train_labels: (N,) int64 in [0, number of classes).
        train_sources: (N,) int64, what each segment is cut from. Segments of one source are one
            draw of the data, and are never in two splits.
        test_images: (M, H, W, C), as `train_images`.
        test_labels: (M,) int64.
        test_sources: (M,) int64.
        class_names: the name of each label.
        max_value: the uint8 value that stands for 1; None: float32, as networks take it.
        digest: 16 hexadecimal digits that stand for all but the notes.
        notes: sentences about the data, for people.
        carried: how further segments are made as these are, plain values.
    """

    noun: str
    train_images: np.ndarray
    train_labels: np.ndarray
    train_sources: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    test_sources: np.ndarray
    class_names: tuple[str, ...]
    max_value: int | None
    digest: str
    notes: tuple[str, ...] = ()
    carried: Mapping[str, Any] = field(default_factory=dict)


def first_alike(segments: Iterable[np.ndarray]) -> np.ndarray:
    """(N,) int64, the place of the first segment that is equal to each."""
    first: dict[bytes, int] = {}
    digests = (hashlib.sha256(each.tobytes()).digest() for each in segments)
    return np.array([first.setdefault(key, row) for row, key in enumerate(digests)], np.int64)


def repeated_note(
    train: Sequence[np.ndarray] | np.ndarray,
    test: Sequence[np.ndarray] | np.ndarray,
    noun: str,
    files: Sequence[Path] = (),
) -> list[str]:
    """A sentence on what is trained on and tests, too, if there is any.

    Args:
        train, test: images or series.
        noun: what they are, in the plural.
        files: of the test images, if each has its own.
    """
    both = first_alike(itertools.chain(train, test))[len(train) :] < len(train)
    if not both.any():
        return []
    first = int(both.argmax())
    which = files[first] if files else f"number {first + 1:,}"
    return [
        f"test {noun} that are equal to {noun} that train or validate: {both.sum():,} of "
        f"{len(test):,}, the first {which}. Take them out of one of the two"
    ]


def held_out(name: str, labels: np.ndarray, share: float, sources: np.ndarray) -> np.ndarray:
    """Marks what is kept for validation, a fixed share of each class: (N,) bool.

    Args:
        name: of the task.
        labels: (N,) int64, of segments, or of what they are cut from.
        share: of the sources of each class.
        sources: (N,) int64; those of one source stay together.
    """
    _, first, source = np.unique(sources, return_index=True, return_inverse=True)
    labels = labels[first]
    kept = np.zeros(len(labels), bool)
    for label in np.unique(labels).tolist():
        rows = np.flatnonzero(labels == label)
        rng = np.random.default_rng(stream_seed("validation images", name, label))
        kept[rng.permutation(rows)[: round(share * len(rows))]] = True
    return kept[source]
