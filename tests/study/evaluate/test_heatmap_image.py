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


@pytest.mark.parametrize("modality", [MOSAICS, CAPTIONS])
@pytest.mark.parametrize(("a_z", "s_y"), [(0, 0), (2, 0), (0, 2), (2, 2), (1, 2)])
def test_a_bin_is_dark_where_its_instances_are(a_z: int, s_y: int, modality: Modality) -> None:
    """a_z grows to the right and s_y upwards; SAIF is outlined at their ends, in the report, too.

    Shades are of a bin's own instances: they do not depend on the others.
    """
    bins = len(modality.heatmap_edges) - 1
    side = _PANEL // bins
    for share in (0.0, 0.2, 0.5, 1.0):
        heatmap = np.full((bins, bins), (1 - share) / (bins**2 - 1))
        heatmap[a_z, s_y] = share
        image = pixels(heatmap, modality=modality)
        # At the corner of a bin no number stands.
        corner = image[_TOP + (bins - 1 - s_y) * side + 5, _LEFT + a_z * side + 5]
        assert corner / 255 == pytest.approx([1 - share] * 3, abs=1 / 255)
    rows, columns = np.nonzero((image == VERMILION).all(axis=2))
    assert (rows.min(), rows.max()) == (_TOP, _TOP + side)
    right = _LEFT + bins * side
    assert (columns.min(), columns.max()) == (
        pytest.approx(right - side, abs=1),
        pytest.approx(right, abs=2),
    )


def test_splits_stand_side_by_side() -> None:
    even, diagonal = np.full((5, 5), 0.04), np.eye(5) / 5
    one, two = pixels(diagonal), pixels(diagonal, even)
    bins = slice(_TOP, _TOP + _PANEL)
    assert two.shape == (one.shape[0], 2 * one.shape[1], 3)
    np.testing.assert_array_equal(two[bins, : one.shape[1]], one[bins])
    np.testing.assert_array_equal(two[bins, one.shape[1] :], pixels(even)[bins])
