"""The small picture of heat maps: which bin is where, how dark, and what is outlined."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from study.evaluate.heat_map_image import ABOVE, BETWEEN, BIN, heatmap_png
from study.tasks import MOSAICS, Modality

VERMILION = (213, 94, 0)
UNEVEN = replace(MOSAICS, heatmap_edges=(0.0, 0.2, 0.3, 1.0), saif_threshold=0.3)


def pixels(*heatmaps: NDArray[np.float64], modality: Modality = MOSAICS) -> NDArray[np.uint8]:
    """(height, width, 3) of the bins, their rows from the top."""
    named = {f"split {number}": heatmap for number, heatmap in enumerate(heatmaps)}
    image = Image.open(io.BytesIO(heatmap_png(named, modality)))
    assert image.format == "PNG"
    return np.asarray(image)[ABOVE:]


@pytest.mark.parametrize("modality", [MOSAICS, UNEVEN])
@pytest.mark.parametrize(("a_z", "s_y"), [(0, 0), (2, 0), (0, 2), (2, 2), (1, 2)])
def test_a_bin_is_dark_where_its_instances_are(a_z: int, s_y: int, modality: Modality) -> None:
    """a_z grows to the right and s_y upwards; SAIF is outlined at their ends.

    Shades are of a bin's own instances: they do not depend on the others.
    """
    bins = len(modality.heatmap_edges) - 1
    for share in (0.0, 0.2, 0.5, 1.0):
        heatmap = np.full((bins, bins), (1 - share) / (bins**2 - 1))
        heatmap[a_z, s_y] = share
        image = pixels(heatmap, modality=modality)
        corner = image[(bins - 1 - s_y) * BIN + 3, a_z * BIN + 3]  # where no number stands
        assert corner / 255 == pytest.approx([1 - share] * 3, abs=1 / 255)
    rows, columns = np.nonzero((image == VERMILION).all(axis=2))
    assert (rows.min(), rows.max()) == (0, BIN)
    assert (columns.min(), columns.max()) == ((bins - 1) * BIN, bins * BIN)


def test_splits_stand_side_by_side() -> None:
    even, diagonal = np.full((5, 5), 0.04), np.eye(5) / 5
    both, width = pixels(diagonal, even), 5 * BIN + BETWEEN
    np.testing.assert_array_equal(both[:, :width], pixels(diagonal))
    np.testing.assert_array_equal(both[:, width:], pixels(even))
