"""Cuts series into windows, the segments of their mosaics, and standardises them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from chapters.series.ts_files import TsFile
from study.errors import RequestError
from study.tasks.mosaics.base_segments import (
    BaseSegments,
    first_alike,
    held_out,
    repeated_note,
)
from study.tasks.sources.cached import digest_of

if TYPE_CHECKING:
    from study.tasks.mosaics.mosaics import Mosaics

TASK = "series"
"""Its name, which is part of the seeds."""

MOST_DEVIATIONS = 1e6
"""Beyond this a value drowns all others of its channel."""

VALIDATION_SHARE = 0.25
"""Of the train series of each class."""

_STEPS = 64  # that are shown of a window: of a longer one every second, or every third, ...


def windows_of(train: TsFile, test: TsFile, window: int) -> BaseSegments:
    """The windows of two files of a data set.

    Channels are standardised with mean and standard deviation over all steps of the train series
    that are not kept for validation; one that is constant there becomes 0. Where series are
    padded, a further channel marks real steps.

    Args:
        train: series to train and validate on.
        test: those to test on, of the same classes.
        window: W, steps of a window.

    Raises:
        RequestError: the window is longer than every series, or a channel varies too little in
            training for one of its values.
    """
    longest = max(map(len, (*train.series, *test.series)))
    if window > longest:
        raise RequestError(
            f"window={window} is longer than every series of {train.name}: give at most "
            f"{longest} with --set window=W."
        )
    files = (train, test)
    firsts = [first_alike(file.series) for file in files]
    trains = np.flatnonzero(~held_out(TASK, train.labels, VALIDATION_SHARE, firsts[0]))
    steps = np.concatenate([train.series[row] for row in trains])
    varies = steps.min(axis=0) < steps.max(axis=0)  # rounding leaves constants a deviation
    mean, scale = steps.mean(axis=0), np.where(varies, steps.std(axis=0), np.inf)
    cuts = [cut([(each - mean) / scale for each in file.series], window) for file in files]
    largest = np.max([np.abs(values).max(axis=(0, 1)) for values, _ in cuts], axis=0)
    if largest.max() >= MOST_DEVIATIONS:
        raise RequestError(
            f"a value of channel {largest.argmax() + 1} of {train.name} lies {largest.max():.2g} "
            "standard deviations of the train series from their mean, as that channel hardly "
            "varies there. Leave the channel out of both files."
        )
    whole = all(values[..., -1].all() for values, _ in cuts)
    # (N, W, 1, C), windows as images of one column; labels; and what each is cut from.
    of_train, of_test = (
        (
            values[..., : -1 if whole else None].astype(np.float32)[:, :, None],
            file.labels[sources],
            first[sources],
        )
        for (values, sources), file, first in zip(cuts, files, firsts, strict=True)
    )
    notes = _notes(train, test, window, [len(values) for values, _ in cuts])
    digest = digest_of((*of_train, *of_test), train.classes)
    carried = {"means": mean.tolist(), "deviations": scale.tolist()}
    of_both = *of_train, *of_test
    return BaseSegments("series", *of_both, train.classes, None, digest, notes, carried)


def cut(series: Sequence[np.ndarray], window: int) -> tuple[np.ndarray, np.ndarray]:
    """Windows that do not overlap; what is left at the end of a series is dropped.

    A series shorter than a window gives one, padded with zeros at its end.

    Args:
        series: (T, D) each, T >= 1.
        window: W, steps of a window.

    Returns:
        (N, W, D + 1) float64, of which the last channel is 1 at real steps and 0 at padding; and
        (N,) int64, the series that each is cut from.
    """
    counts = np.array([max(1, len(each) // window) for each in series])
    values = np.zeros((counts.sum(), window, series[0].shape[1] + 1))
    for each, count, end in zip(series, counts, np.cumsum(counts), strict=True):
        steps = values[end - count : end].reshape(count * window, -1)[: len(each)]
        steps[:, :-1], steps[:, -1] = each[: len(steps)], 1
    return values, np.repeat(np.arange(len(series)), counts)


def _notes(train: TsFile, test: TsFile, window: int, counts: Sequence[int]) -> tuple[str, ...]:
    lengths = np.array([len(each) for each in (*train.series, *test.series)])
    short = lengths < window
    left_out = np.where(short, 0, lengths % window).sum() / lengths.sum()
    padded = (
        f"{short.sum():,} series are shorter than a window and padded with zeros; a further "
        "channel is 1 at real steps and 0 at padding"
    )
    return (
        f"{train.name}: {len(train.series):,} train and {len(test.series):,} test series, "
        f"channels {train.series[0].shape[1]}, steps {lengths.min():,} to {lengths.max():,}; cut "
        f"into {counts[0]:,} and {counts[1]:,} windows of {window:,} steps, which leave out "
        f"{100 * left_out:.1f} % of the steps, at the ends of series",
        "what reports count as images are series: windows of one series are one draw of the data",
        *([padded] if short.any() else []),
        *repeated_note(train.series, test.series, "series"),
    )


def shown(split: Mosaics, row: int) -> dict[str, Any]:
    """The windows of a mosaic, see `study.tracking.looks.Example`."""
    return windows_shown(split.images[split.index[row].long()].cpu().numpy())


def windows_shown(segments: np.ndarray) -> dict[str, Any]:
    """The same of windows (m, W, 1, C)."""
    kept = segments[:, :: -(-segments.shape[1] // _STEPS), 0].transpose(0, 2, 1)
    return {"windows": kept.astype(float).round(2).tolist()}
