"""Captions of one image, with the attention of each word."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from study.evaluate.caption_image import Example, captions_png

_DPI = 160.0  # as `analysis.figures.style.figure_png` draws: a pixel stays a pixel


def caption_figure(examples: Mapping[str, Example]) -> Figure:
    """The picture of `study.evaluate.caption_image.captions_png`, as a figure of the report.

    Args:
        examples: paradigm -> what it wrote of one image; at least one.
    """
    with Image.open(io.BytesIO(captions_png(examples))) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    height, width, _ = pixels.shape
    figure = Figure(figsize=(width / _DPI, height / _DPI))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.imshow(pixels, interpolation="none", aspect="auto")
    return figure
