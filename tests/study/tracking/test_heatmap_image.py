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


def panels(*heatmaps: NDArray[np.float64], modality: Modality = MOSAICS) -> list[ET.Element]:
    named = {f"split {number}": heatmap for number, heatmap in enumerate(heatmaps)}
    return ET.fromstring(heatmap_svg(named, modality)).findall("{*}g")


@pytest.mark.parametrize("modality", [MOSAICS, UNEVEN])
def test_a_bin_is_dark_where_its_instances_are(modality):
    """a_z grows to the right and s_y upwards; SAIF is outlined at their ends.

    Shades are of a bin's own instances: they do not depend on the others.
    """
    bins = len(modality.heatmap_edges) - 1
    heatmap = np.random.default_rng(0).dirichlet(np.ones(bins**2)).reshape(bins, bins)
    (panel,) = panels(heatmap, modality=modality)
    *squares, whole, saif = (each.attrib for each in panel.findall("{*}rect"))
    side = int(whole["width"])
    name, *texts = (each.text for each in panel.findall("{*}text"))
    assert name == "split 0"
    for square, text in zip(squares, texts, strict=True):
        a_z, s_y = (int(square[axis]) * bins // side for axis in ("x", "y"))
        share = heatmap[a_z, bins - 1 - s_y]
        grey = round(255 * (1 - share))
        assert (square["fill"], text) == (f"rgb({grey},{grey},{grey})", f"{100 * share:.0f}")
    assert len({(square["x"], square["y"]) for square in squares}) == bins**2
    assert "y" not in saif
    assert int(saif["x"]) == side - side // bins == side - int(saif["width"])


def test_splits_stand_side_by_side():
    even, diagonal = np.full((5, 5), 0.04), np.eye(5) / 5
    first, second = panels(diagonal, even)
    for panel, heatmap in ((first, diagonal), (second, even)):
        (alone,) = panels(heatmap)
        assert [each.attrib for each in panel] == [each.attrib for each in alone]
    assert first.attrib != second.attrib
