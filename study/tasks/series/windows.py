"""Cuts series into windows, the segments of their mosaics, and standardises them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from study.errors import RequestError
from study.tasks.mosaics.base_images import MADE_UP_IMAGES
from study.tasks.mosaics.base_segments import first_alike, held_out, repeated_note
from study.tasks.series.ts_file import TsFile
from study.tasks.sources.cached import digest_of

TASK = "series"
"""Its name, which is part of the seeds."""

MOST_DEVIATIONS = 1e6
"""Beyond this a value drowns all others of its channel."""

VALIDATION_SHARE = 0.25
"""Of the train series of each class."""


class Windows(NamedTuple):
    """The windows of several series.

    Attributes:
        values: (N, W, D) float64, 0 at padding.
        real: (N, W) bool, False at padding.
        sources: (N,) int64, the series that each is cut from.
    """

    values: np.ndarray
    real: np.ndarray
    sources: np.ndarray


class Labelled(NamedTuple):
    """Windows of a file as images of one column.

    Attributes:
        images: (N, W, 1, C) float32, standardised.
        labels: (N,) int64.
        sources: (N,) int64, the series that each is cut from.
    """

    images: np.ndarray
    labels: np.ndarray
    sources: np.ndarray


@dataclass(frozen=True, eq=False)
class BaseWindows:
    """The windows of a data set, a `study.tasks.mosaics.base_segments.BaseSegments`.

    Attributes:
        train_images, train_labels, train_sources: of the train series, see `Labelled`.
        test_images, test_labels, test_sources: of the test series.
        class_names: the name of each label.
        notes: sentences about the data, for people.
        digest: 16 hexadecimal digits that stand for all but the notes.
    """

    noun = "series"
    max_value = None

    train_images: np.ndarray
    train_labels: np.ndarray
    train_sources: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    test_sources: np.ndarray
    class_names: tuple[str, ...]
    notes: tuple[str, ...]
    digest: str

    @classmethod
    def create(
        cls,
        train: Labelled,
        test: Labelled,
        class_names: tuple[str, ...],
        notes: tuple[str, ...] = (),
    ) -> BaseWindows:
        """Computes the digest of windows."""
        digest = digest_of((*train, *test), class_names)
        return cls(*train, *test, class_names, notes, digest)


def windows_of(train: TsFile, test: TsFile, window: int) -> BaseWindows:
    """The windows of two files of a data set.

    Channels are standardised with mean and standard deviation over all steps of the train series
    that are not kept for validation; one that is constant there becomes 0.

    Args:
        train: series to train and validate on.
        test: those to test on, see `study.tasks.series.ts_file.require_alike`.
        window: W, steps of a window.

    Raises:
        RequestError: the window is longer than every series, or a channel varies too little in
            training for one of its values.
    """
    longest = max(map(len, (*train.series, *test.series)))
    if window > longest:
        raise RequestError(
            f"window={window} is longer than every series of {train.path.parent}: give at most "
            f"{longest} with --set window=W."
        )
    firsts = [first_alike(file.series) for file in (train, test)]
    seen = np.flatnonzero(~held_out(TASK, train.labels, VALIDATION_SHARE, firsts[0]))
    steps = np.concatenate([train.series[row] for row in seen])
    cuts = []
    for file in (train, test):
        series = _standardised(file.series, steps)
        _require_moderate(series, file)
        cuts.append(cut(series, window))
    padded = not all(each.real.all() for each in cuts)
    order = np.array([train.classes.index(name) for name in test.classes])
    train_windows, test_windows = (
        Labelled(_images(each, padded), labels[each.sources], first[each.sources])
        for each, labels, first in zip(
            cuts, (train.labels, order[test.labels]), firsts, strict=True
        )
    )
    notes = _notes(train, test, window, cuts)
    return BaseWindows.create(train_windows, test_windows, train.classes, notes)


def cut(series: Sequence[np.ndarray], window: int) -> Windows:
    """Windows that do not overlap; what is left at the end of a series is dropped.

    A series shorter than a window gives one, padded with zeros at its end.

    Args:
        series: (T, D) each, T >= 1.
        window: W, steps of a window.
    """
    counts = np.array([max(1, len(each) // window) for each in series])
    values = np.zeros((counts.sum(), window, series[0].shape[1]))
    real = np.zeros(values.shape[:2], bool)
    ends = np.cumsum(counts)
    for each, end, count in zip(series, ends, counts, strict=True):
        steps = min(len(each), count * window)
        values[end - count : end].reshape(-1, values.shape[2])[:steps] = each[:steps]
        real[end - count : end].reshape(-1)[:steps] = True
    return Windows(values, real, np.repeat(np.arange(len(series)), counts))


def made_up_windows(
    shape: tuple[int, ...], foreground: Sequence[str], background: Sequence[str], count: int
) -> BaseWindows:
    """Noise as windows, each of a series of its own, of each class.

    Args:
        shape: of a segment: (channels, steps, 1).
        foreground: names of the foreground classes.
        background: names of the background classes.
        count: least windows of each split.
    """
    channels, steps, width = shape
    classes = (*foreground, *background)
    count = max(count, MADE_UP_IMAGES * len(classes))
    rng = np.random.default_rng(0)
    labels, sources = np.arange(count) % len(classes), np.arange(count)
    train, test = (
        Labelled(images, labels, sources)
        for images in rng.standard_normal((2, count, steps, width, channels), dtype=np.float32)
    )
    return BaseWindows.create(train, test, classes)


def _standardised(series: Sequence[np.ndarray], steps: np.ndarray) -> list[np.ndarray]:
    """Series (T, D), each channel by its mean and standard deviation over `steps` (N, D)."""
    mean, varies = steps.mean(axis=0), steps.min(axis=0) < steps.max(axis=0)
    scale = np.where(varies, steps.std(axis=0), np.inf)  # rounding leaves constants a spread
    return [(each - mean) / scale for each in series]


def _require_moderate(series: Sequence[np.ndarray], file: TsFile) -> None:
    largest = np.max([np.abs(each).max(axis=0) for each in series], axis=0)
    channel = int(largest.argmax())
    if not largest[channel] < MOST_DEVIATIONS:
        raise RequestError(
            f"{file.path}: a value of channel {channel + 1} lies {largest[channel]:.2g} standard "
            "deviations of the train series from their mean, as that channel hardly varies there. "
            "Leave the channel out of both files."
        )


def _images(windows: Windows, padded: bool) -> np.ndarray:
    """Windows as images (N, W, 1, C) float32; `padded`: the last channel marks real steps."""
    channels = [windows.values, windows.real[..., None]] if padded else [windows.values]
    return np.concatenate(channels, axis=2).astype(np.float32)[:, :, None]


def _notes(train: TsFile, test: TsFile, window: int, cuts: Sequence[Windows]) -> tuple[str, ...]:
    lengths = [len(each) for each in (*train.series, *test.series)]
    left_out = 1 - sum(int(each.real.sum()) for each in cuts) / sum(lengths)
    notes = [
        f"{train.path.stem[: -len('_TRAIN')]}: {len(train.series):,} train and "
        f"{len(test.series):,} test series, channels {train.dimensions}, steps {min(lengths):,} "
        f"to {max(lengths):,}; cut into {len(cuts[0].values):,} and {len(cuts[1].values):,} "
        f"windows of {window:,} steps, which leave out {100 * left_out:.1f} % of the steps, at "
        "the ends of series",
        "what reports count as images are series: windows of one series are one draw of the data",
    ]
    if short := sum(length < window for length in lengths):
        notes.append(
            f"{short:,} series are shorter than a window and padded with zeros; a further channel "
            "is 1 at real steps and 0 at padding"
        )
    return (*notes, *repeated_note(train.series, test.series, "series"))
