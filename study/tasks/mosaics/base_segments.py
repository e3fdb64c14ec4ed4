"""What mosaics are made of: labelled segments, and which of them are kept for validation."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from study.cell.seeds import stream_seed


class BaseSegments(Protocol):
    """The labelled segments of a data set: images, or windows of series as images one pixel wide.

    Attributes:
        noun: what segments are cut from, in the plural: images, which are whole, or series.
        train_images: (N, H, W, C), uint8 in [0, max_value] or float32.
        train_labels: (N,) int64 in [0, number of classes).
        train_sources: (N,) int64, what each segment is cut from. Segments of one source are one
            draw of the data, have one label, and are never in two splits.
        test_images: (M, H, W, C), as `train_images`.
        test_labels: (M,) int64.
        test_sources: (M,) int64.
        class_names: the name of each label.
        max_value: the uint8 value that stands for 1; None: float32, as networks take it.
        digest: 16 hexadecimal digits that stand for all of them.
        notes: sentences about the data, for people.
    """

    @property
    def noun(self) -> str: ...

    @property
    def train_images(self) -> np.ndarray: ...

    @property
    def train_labels(self) -> np.ndarray: ...

    @property
    def train_sources(self) -> np.ndarray: ...

    @property
    def test_images(self) -> np.ndarray: ...

    @property
    def test_labels(self) -> np.ndarray: ...

    @property
    def test_sources(self) -> np.ndarray: ...

    @property
    def class_names(self) -> tuple[str, ...]: ...

    @property
    def max_value(self) -> int | None: ...

    @property
    def digest(self) -> str: ...

    @property
    def notes(self) -> tuple[str, ...]: ...


def held_out(name: str, labels: np.ndarray, share: float) -> np.ndarray:
    """Marks what is kept for validation, a fixed share of each class: (N,) bool.

    Args:
        name: of the task.
        labels: (N,) int64, of what segments are cut from.
        share: of each class.
    """
    kept = np.zeros(len(labels), bool)
    for label in np.unique(labels).tolist():
        rows = np.flatnonzero(labels == label)
        rng = np.random.default_rng(stream_seed("validation images", name, label))
        kept[rng.permutation(rows)[: round(share * len(rows))]] = True
    return kept
