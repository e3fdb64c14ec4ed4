"""The picture of a cell's heat maps: which bin is where, how dark, and what is outlined."""

from __future__ import annotations

import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from study.evaluate.heat_map_image import _LEFT, _PANEL, _TOP, heatmap_png
from study.tasks import CAPTIONS, MOSAICS, Modality

VERMILION = (213, 94, 0)


def pixels(*heatmaps: NDArray[np.float64], modality: Modality = MOSAICS) -> NDArray[np.uint8]:
    """(height, width, 3) of the picture, its rows from the top."""
    named = {f"split {number}": heatmap for number, heatmap in enumerate(heatmaps)}
    image = Image.open(io.BytesIO(heatmap_png(named, "soft lr=0.1", modality)))
    assert image.format == "PNG"
    return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize(("a_z", "s_y"), [(0, 0), (4, 0), (0, 4), (4, 4), (1, 3)])
def test_a_bin_is_dark_where_its_instances_are(a_z: int, s_y: int) -> None:
    """a_z grows to the right and s_y upwards, as in the report; SAIF is outlined at their ends."""
    full = np.zeros((5, 5))
    full[a_z, s_y] = 1
    changed = (pixels(np.zeros((5, 5))) != pixels(full)).any(axis=2)
    rows, columns = np.nonzero(changed)
    outlined = (pixels(full) == VERMILION).all(axis=2)
    outline_rows, outline_columns = np.nonzero(outlined)
    bins_left = (outline_columns.mean() - columns.mean()) / np.ptp(outline_columns)
    bins_down = (rows.mean() - outline_rows.mean()) / np.ptp(outline_rows)
    assert (round(bins_left), round(bins_down)) == (4 - a_z, 4 - s_y)


def test_edges_and_outline_are_those_of_the_modality() -> None:
    """Of captions, SAIF is one of 3 x 3 bins, as wide as a third of the map."""
    image = pixels(np.eye(3) / 3, modality=CAPTIONS)
    rows, columns = np.nonzero((image == VERMILION).all(axis=2))
    side = _PANEL // 3
    assert (rows.min(), rows.max()) == (_TOP, _TOP + side)
    assert (columns.min(), columns.max()) == (_LEFT + 2 * side, _LEFT + 3 * side)


def test_more_instances_are_darker() -> None:
    """And the grey is theirs alone: it does not depend on the other bins."""
    shades = []
    for share in (0.0, 0.2, 0.5, 1.0):
        heatmap = np.full((5, 5), (1 - share) / 24)
        heatmap[2, 2] = share
        corner = 2 * _PANEL // 5 + 2  # of the bin in the middle, where no number stands
        red, green, blue = map(int, pixels(heatmap)[_TOP + corner, _LEFT + corner])
        assert red == green == blue
        shades.append(red / 255)
    assert shades == pytest.approx([1.0, 0.8, 0.5, 0.0], abs=1 / 255)


def test_splits_stand_side_by_side() -> None:
    even, diagonal = np.full((5, 5), 0.04), np.eye(5) / 5
    one, two = pixels(diagonal), pixels(diagonal, even)
    bins = slice(_TOP, _TOP + _PANEL)
    assert two.shape == (one.shape[0], 2 * one.shape[1], 3)
    np.testing.assert_array_equal(two[bins, : one.shape[1]], one[bins])
    np.testing.assert_array_equal(two[bins, one.shape[1] :], pixels(even)[bins])
