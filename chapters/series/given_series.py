"""Series that a person asks a network about, cut and standardised as its own were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from chapters.series.windows import cut, windows_shown
from study.tasks.mosaics.given_images import mosaics_given
from study.tasks.mosaics.mosaics import as_segments
from study.tasks.sources.reading import reading
from study.tasks.task import Asked


def given_series(carried: Mapping[str, Any], given: Any, tiles: Any) -> list[Asked]:
    """See `study.tasks.task.Modality.reads`.

    Args:
        carried: `input_shape`, and `means` and `deviations` of the D channels.
        given: a series (T, D), whose windows are the segments; or a list of windows, or of lists
            of them.
        tiles: None.

    Raises:
        RequestError: it is none of these, or has other windows or channels.
    """
    mosaics = mosaics_given(given, 2)
    if mosaics is None:
        return [_asked(carried, np.inf, 0, [given])]
    return [_asked(carried, carried["input_shape"][1], *each) for each in enumerate(mosaics)]


def _asked(carried: Mapping[str, Any], most: float, name: int, series: Sequence[Any]) -> Asked:
    """A mosaic of series of at most so many steps, which are cut into windows."""
    channels, window, _ = carried["input_shape"]
    means, scaled = np.array(carried["means"]), []
    least = 1 if channels > len(means) else window  # padded steps are marked by a channel
    mend = f"Give windows of {window} steps x {len(means)} channels, or one series of more steps."
    for place, each in enumerate(series):
        with reading(f"series {place}", mend):
            values = np.asarray(each, dtype=np.float64)
            if values.shape[1:] != means.shape or not least <= len(values) <= most:
                raise ValueError(f"its shape is {values.shape}")
            if not np.isfinite(values).all():
                raise ValueError("a value is missing or not finite")
        scaled.append((values - means) / carried["deviations"])
    windows, _ = cut(scaled, window)
    pixels = windows[..., :channels].astype(np.float32)[:, :, None]
    segments = as_segments(torch.from_numpy(pixels), None)
    return Asked(name, segments, range(len(segments)), partial(windows_shown, pixels))
