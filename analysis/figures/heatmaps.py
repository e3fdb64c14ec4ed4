"""Focus-prediction heat maps (section 2.4 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from analysis.figures.style import SMALL, TEXT, VERMILION, foot, metric_name, own_settings
from analysis.groups import paradigm_order
from study import tasks


@own_settings()
def heatmap_figure(
    heatmaps: Mapping[str, NDArray[np.float64]],
    title: str,
    threshold: float | None = None,
    seeds: Mapping[str, int] | None = None,
    task: str = "",
) -> Figure:
    """Focus-prediction heat maps as the paper draws them, one panel a paradigm.

    Args:
        heatmaps: paradigm -> (bins, bins) fractions of the instances, axis 0 = a_z, axis 1 = s_y.
        title: above the panels; of a single panel, behind the paradigm's name.
        threshold: of SAIF; None: the task's own.
        seeds: paradigm -> n, said beside its name.
        task: gives the edges of the bins; empty: of mosaics.

    Returns:
        a_z on x, s_y on y upwards, cells in % of the instances, shaded in grey. The outline at
        the top right is SAIF.

    Raises:
        ValueError: no heat map, or one of another shape; a threshold that is no edge.
    """
    if not heatmaps:
        raise ValueError("heatmaps must hold at least one heat map, got none")
    modality = tasks.modality(task)
    edges = modality.heatmap_edges
    first = edges.index(modality.saif_threshold if threshold is None else threshold)
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
        _draw(panel, label, np.asarray(heatmaps[name], dtype=np.float64), first, edges)
    for unused in axes[count:]:
        unused.remove()
    saif = metric_name("saif", threshold, task)
    foot(figure, f"% of the {modality.counted}; outlined: {saif}")
    return figure


def text_colour(share: float) -> str:
    """Of the number in a cell that is the darker the larger its share."""
    return "white" if share > 0.6 else "black"


def _draw(
    axes: Axes,
    label: str,
    heatmap: NDArray[np.float64],
    first: int,
    edges: Sequence[float],
) -> None:
    """Draws a heat map; `first` is the first bin that is outlined."""
    bins = len(edges) - 1
    if heatmap.shape != (bins, bins):
        raise ValueError(f"a heat map must be ({bins}, {bins}), got {heatmap.shape}")
    axes.imshow(heatmap.T, origin="lower", cmap="Greys", vmin=0, vmax=1)
    for a_z in range(bins):
        for s_y in range(bins):
            share = heatmap[a_z, s_y]
            axes.text(
                a_z,
                s_y,
                f"{100 * share:.1f}",
                ha="center",
                va="center",
                fontsize=TEXT,
                color=text_colour(share),
            )
    corner, side = (first - 0.5, first - 0.5), bins - first
    outline = Rectangle(corner, side, side, fill=False, clip_on=False, zorder=3)
    outline.set(edgecolor=VERMILION, linewidth=2.5)
    axes.add_patch(outline)
    axes.set_title(label, fontsize=TEXT, parse_math=False)
    ticks = [f"{edge:g}" for edge in edges]
    axes.set_xticks(np.arange(bins + 1) - 0.5, ticks, fontsize=SMALL)
    axes.set_yticks(np.arange(bins + 1) - 0.5, ticks, fontsize=SMALL)
    axes.set_xlabel("foreground attention $a_z$", fontsize=TEXT)
    axes.set_ylabel("true-class score $s_y$", fontsize=TEXT)
