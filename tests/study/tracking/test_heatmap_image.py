"""The small picture of heat maps: which bin is where, how dark, and what is outlined."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from study.tasks import MOSAICS, Modality
from study.tracking.heat_map_image import heatmap_svg

UNEVEN = replace(MOSAICS, heatmap_edges=(0.0, 0.2, 0.3, 1.0), saif_threshold=0.3)


def rectangles(panel: ET.Element) -> list[dict[str, str]]:
    return [each.attrib for each in panel.findall("{*}rect")]


def panels(modality: Modality, **heatmaps: NDArray[np.float64]) -> list[ET.Element]:
    return ET.fromstring(heatmap_svg(heatmaps, modality)).findall("{*}g")


@pytest.mark.parametrize("modality", [MOSAICS, UNEVEN])
def test_a_bin_is_dark_where_its_instances_are(modality):
    """a_z grows to the right and s_y upwards; SAIF is outlined at their ends.

    Shades are of a bin's own instances: they do not depend on the others.
    """
    bins = len(modality.heatmap_edges) - 1
    heatmap = np.zeros((bins, bins))
    heatmap[-1, 0], heatmap[0, 1] = 0.8, 0.2
    (panel,) = panels(modality, test=heatmap)
    *squares, whole, saif = rectangles(panel)
    side, (name, *texts) = int(whole["width"]), (each.text for each in panel.findall("{*}text"))
    last = side - side // bins
    shades = {
        (int(square["x"]), int(square["y"])): (square["fill"], text)
        for square, text in zip(squares, texts, strict=True)
    }
    assert name == "test"
    assert len(shades) == bins**2
    assert shades.pop((last, last)) == ("rgb(51,51,51)", "80")
    assert shades.pop((0, last - side // bins)) == ("rgb(204,204,204)", "20")
    assert set(shades.values()) == {("rgb(255,255,255)", "0")}
    assert "y" not in saif
    assert int(saif["x"]) == last == side - int(saif["width"])


def test_splits_stand_side_by_side():
    first, second = panels(MOSAICS, train=np.eye(5) / 5, test=np.full((5, 5), 0.04))
    (alone,) = panels(MOSAICS, test=np.full((5, 5), 0.04))
    assert rectangles(second) == rectangles(alone) != rectangles(first)
    assert second.attrib != first.attrib
