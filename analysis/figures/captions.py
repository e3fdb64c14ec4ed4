"""Captions of one image, with the attention of each word."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from analysis.figures.style import own_settings
from study.evaluate.caption_image import Example, captions_image

_DPI = 96.0  # as a page has it: a pixel stays a pixel


@own_settings()
def caption_figure(examples: Mapping[str, Example]) -> Figure:
    """The picture of `study.evaluate.caption_image.captions_image`, as a figure of the report.

    Args:
        examples: paradigm -> what it wrote of one image; at least one.
    """
    pixels = np.asarray(captions_image(examples))
    height, width, _ = pixels.shape
    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.imshow(pixels, interpolation="none", aspect="auto")
    return figure
