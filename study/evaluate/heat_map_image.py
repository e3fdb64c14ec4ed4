"""A small picture of heat maps for MLflow, drawn in milliseconds: each of many cells has one.

The report has larger ones, with axes (`analysis.figures.heatmap_figure`).
"""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from study.tasks.task import Modality

BIN, ABOVE, BETWEEN = 32, 16, 8
"""Pixels: the side of a bin, the room for the name of a split, and the gap beside a split."""

_DARK = 0.6
"""Above this share, a number is white on its bin."""


def heatmap_png(heatmaps: Mapping[str, NDArray[np.float64]], modality: Modality) -> bytes:
    """Heat maps side by side as a PNG file: bins in %, darker for more, and SAIF outlined.

    Args:
        heatmaps: split -> (bins, bins) fractions of the instances, axis 0 = a_z, which grows to
            the right, axis 1 = s_y, which grows upwards.
        modality: of the instances; has the edges of the bins, and the threshold of SAIF.
    """
    edges = modality.heatmap_edges
    side, first = BIN * (len(edges) - 1), BIN * edges.index(modality.saif_threshold)
    bottom = ABOVE + side
    image = Image.new("RGB", (len(heatmaps) * (side + BETWEEN), bottom + 1), "white")
    draw = ImageDraw.Draw(image)
    for panel, (split, heatmap) in enumerate(heatmaps.items()):
        left = panel * (side + BETWEEN)
        right = left + side
        greys = (255 * (1 - heatmap.T[::-1])).round().astype(np.uint8)
        bins = Image.fromarray(greys).resize((side, side), Image.Resampling.NEAREST)
        image.paste(bins, (left, ABOVE))
        draw.text((left, 2), split, "black")
        for (a_z, s_y), share in np.ndenumerate(heatmap):
            middle = (left + BIN * (a_z + 0.5), bottom - BIN * (s_y + 0.5))
            ink = "white" if share > _DARK else "black"
            draw.text(middle, f"{100 * share:.0f}", ink, anchor="mm")
        draw.rectangle((left, ABOVE, right, bottom), outline="grey")
        draw.rectangle((left + first, ABOVE, right, bottom - first), outline="#d55e00", width=2)
    with io.BytesIO() as file:
        image.save(file, "PNG", compress_level=1)
        return file.getvalue()
