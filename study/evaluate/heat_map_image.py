"""Draws the focus-prediction heat maps of a cell with Pillow, in milliseconds.

Matplotlib draws those of the report (`analysis.figures.heatmap_figure`) in a tenth of a second,
too long for each of many cells. Axes, shading and outline are the same.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from study.tasks.task import MOSAICS, Modality

# Pixels.
_PANEL = 290
_LEFT, _TOP, _RIGHT, _BOTTOM = 62, 66, 18, 78
_WIDTH = _LEFT + _PANEL + _RIGHT
_HEIGHT = _TOP + _PANEL + _BOTTOM

# A palette of greys takes a fourth of the time of colours; the one colour replaces a grey.
_BLACK, _WHITE, _OUTLINE = 0, 254, 255
_GREYS = [level for grey in range(_OUTLINE) for level in 3 * [round(255 * grey / _WHITE)]]
_PALETTE = [*_GREYS, 213, 94, 0]  # vermilion

_DARK = 0.6
"""Above this share, a number is white on its bin."""


def heatmap_png(
    heatmaps: Mapping[str, NDArray[np.float64]], title: str, modality: Modality = MOSAICS
) -> bytes:
    """Draws heat maps side by side.

    Args:
        heatmaps: name -> (bins, bins) fractions of the instances, axis 0 = a_z, axis 1 = s_y, as
            `study.evaluate.saif_and_heat_map.heatmap` gives them.
        title: above the panels.
        modality: of the instances; has the edges of the bins, and the threshold of SAIF.

    Returns:
        A PNG file: a_z on x, s_y on y upwards, bins in % of the instances, darker for more; the
        bins of SAIF at the top right are outlined.
    """
    edges = modality.heatmap_edges
    places = _places(len(edges))
    end, first = places[-1], places[edges.index(modality.saif_threshold)]
    image = _frame(tuple(heatmaps), modality).copy()
    draw = ImageDraw.Draw(image)
    draw.text((_LEFT, 8), title, _BLACK, _font(15))
    for panel, heatmap in enumerate(heatmaps.values()):
        left, bottom = panel * _WIDTH + _LEFT, _TOP + end
        for (a_z, s_y), share in np.ndenumerate(heatmap):
            x, right = left + places[a_z], left + places[a_z + 1]
            y, top = bottom - places[s_y], bottom - places[s_y + 1]
            draw.rectangle((x, top, right - 1, y - 1), round(_WHITE * (1 - share)))
            ink = _WHITE if share > _DARK else _BLACK
            middle = ((x + right) / 2, (top + y) / 2)
            draw.text(middle, f"{100 * share:.1f}", ink, _font(14), anchor="mm")
        draw.rectangle((left, _TOP, left + end, bottom), outline=_BLACK)
        corner = (left + first, _TOP, left + end, bottom - first)
        draw.rectangle(corner, outline=_OUTLINE, width=4)
    image.putpalette(_PALETTE)
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=1)
    return file.getvalue()


def _places(count: int) -> list[int]:
    """Where the edges are drawn: all bins are equally wide, whatever their edges."""
    side = _PANEL // (count - 1)
    return [side * number for number in range(count)]


@functools.cache
def _frame(names: tuple[str, ...], modality: Modality) -> Image.Image:
    """The axes and labels, which are the same for every cell of a study."""
    image = Image.new("L", (_WIDTH * len(names), _HEIGHT), _WHITE)
    draw = ImageDraw.Draw(image)
    edges, threshold = modality.heatmap_edges, modality.saif_threshold
    places = _places(len(edges))
    for panel, name in enumerate(names):
        left, bottom = panel * _WIDTH + _LEFT, _TOP + places[-1]
        draw.text((left + _PANEL / 2, _TOP - 10), name, _BLACK, _font(15), anchor="ms")
        for place, edge in zip(places, edges, strict=True):
            draw.text((left + place, bottom + 6), f"{edge:g}", _BLACK, _font(12), anchor="mt")
            draw.text((left - 7, bottom - place), f"{edge:g}", _BLACK, _font(12), anchor="rm")
        x_label = (left + _PANEL / 2, bottom + 26)
        draw.text(x_label, "foreground attention a_z", _BLACK, _font(13), anchor="mt")
        upright = Image.new("L", (_PANEL, 20), _WHITE)
        ImageDraw.Draw(upright).text(
            (_PANEL / 2, 10), "true-class score s_y", _BLACK, _font(13), anchor="mm"
        )
        image.paste(upright.transpose(Image.Transpose.ROTATE_90), (left - 52, _TOP))
    foot = f"% of the {modality.counted}; outlined: SAIF (a_z and s_y at least {threshold:g})"
    draw.text((_LEFT, _HEIGHT - 12), foot, _BLACK, _font(12), anchor="ls")
    return image


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
