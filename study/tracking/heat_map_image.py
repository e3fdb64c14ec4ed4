"""A small picture of heat maps for MLflow, made in milliseconds: each of many cells has one.

The report has larger ones, with axes (`analysis.figures.heatmap_figure`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from study.tasks.task import Modality
from study.tracking.looks import environment


def heatmap_svg(heatmaps: Mapping[str, NDArray[np.float64]], modality: Modality) -> bytes:
    """Heat maps side by side as an SVG file: bins in %, darker for more, and SAIF outlined.

    Args:
        heatmaps: split -> (bins, bins) fractions of the instances, axis 0 = a_z, which grows to
            the right, axis 1 = s_y, which grows upwards.
        modality: of the instances; has the edges of the bins, and the threshold of SAIF.
    """
    edges = modality.heatmap_edges
    shares = {split: heatmap.tolist() for split, heatmap in heatmaps.items()}
    first = edges.index(modality.saif_threshold)
    template = environment().get_template("heat_map.j2")
    return template.render(heatmaps=shares, bins=len(edges) - 1, first=first).strip().encode()
