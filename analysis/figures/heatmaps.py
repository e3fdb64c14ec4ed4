"""Focus-prediction heat maps (section 2.4 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from analysis.figures.style import SAIF_THRESHOLD, SMALL, TEXT, VERMILION, foot, metric_name
from analysis.groups import paradigm_order
from study.results import HEATMAP_EDGES

_BINS = len(HEATMAP_EDGES) - 1


def heatmap_figure(
    heatmaps: Mapping[str, NDArray[np.float64]],
    title: str,
    threshold: float = SAIF_THRESHOLD,
    seeds: Mapping[str, int] | None = None,
    counted: str = "instances",
) -> Figure:
    """Focus-prediction heat maps as the paper draws them, one panel a paradigm.

    Args:
        heatmaps: paradigm -> (5, 5) fractions of the instances, axis 0 = a_z, axis 1 = s_y.
        title: above the panels; of a single panel, behind the paradigm's name.
        threshold: of SAIF.
        seeds: paradigm -> n, said beside its name.
        counted: what the fractions are of, in words.

    Returns:
        a_z on x, s_y on y upwards, cells in % of the instances, shaded in grey. The outline at
        the top right is SAIF (none where the threshold lies within a cell).

    Raises:
        ValueError: no heat map, or one of another shape.
    """
    if not heatmaps:
        raise ValueError("heatmaps must hold at least one heat map, got none")
    count = len(heatmaps)
    columns = {1: 1, 2: 2, 4: 2}.get(count, 3 if count <= 6 else 4)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(0.3 + 3.0 * columns, 0.6 + 3.2 * rows), layout="constrained")
    if count > 1:
        figure.suptitle(title, fontsize=TEXT + 1, parse_math=False)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, name in zip(axes, paradigm_order(heatmaps), strict=False):
        label = f"{name} (n={seeds[name]})" if seeds else name
        label = label if count > 1 else f"{label}, {title}"
        _draw(panel, label, np.asarray(heatmaps[name], dtype=np.float64), threshold)
    for unused in axes[count:]:
        unused.remove()
    outlined = (
        "" if _first_bin(threshold) is None else f"; outlined: {metric_name('saif', threshold)}"
    )
    foot(figure, f"% of the {counted}{outlined}")
    return figure


def outlined_share(heatmap: NDArray[np.float64], threshold: float) -> float | None:
    """SAIF as the heat map (5, 5) holds it; None where the threshold lies within a cell."""
    first = _first_bin(threshold)
    return None if first is None else float(heatmap[first:, first:].sum())


def _first_bin(threshold: float) -> int | None:
    """The bin that begins at the threshold."""
    edges = HEATMAP_EDGES[:-1]
    return edges.index(threshold) if threshold in edges else None


def _draw(axes: Axes, label: str, heatmap: NDArray[np.float64], threshold: float) -> None:
    if heatmap.shape != (_BINS, _BINS):
        raise ValueError(f"a heat map must be ({_BINS}, {_BINS}), got {heatmap.shape}")
    axes.imshow(heatmap.T, origin="lower", cmap="Greys", vmin=0, vmax=1)
    for a_z in range(_BINS):
        for s_y in range(_BINS):
            share = heatmap[a_z, s_y]
            axes.text(
                a_z,
                s_y,
                f"{100 * share:.1f}",
                ha="center",
                va="center",
                fontsize=TEXT,
                color="white" if share > 0.6 else "black",
            )
    first = _first_bin(threshold)
    if first is not None:
        corner = (first - 0.5, first - 0.5)
        side = _BINS - first
        outline = Rectangle(corner, side, side, fill=False, clip_on=False, zorder=3)
        outline.set(edgecolor=VERMILION, linewidth=2.5)
        axes.add_patch(outline)
    axes.set_title(label, fontsize=TEXT, parse_math=False)
    edges = [f"{edge:g}" for edge in HEATMAP_EDGES]
    axes.set_xticks(np.arange(_BINS + 1) - 0.5, edges, fontsize=SMALL)
    axes.set_yticks(np.arange(_BINS + 1) - 0.5, edges, fontsize=SMALL)
    axes.set_xlabel("foreground attention $a_z$", fontsize=TEXT)
    axes.set_ylabel("true-class score $s_y$", fontsize=TEXT)
