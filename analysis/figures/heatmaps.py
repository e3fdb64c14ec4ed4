"""Focus-prediction heat maps (section 2.4 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from analysis.figures.marks import draw_tiles
from analysis.figures.style import (
    BLACK,
    SMALL,
    VERMILION,
    WHITE,
    label,
    own_settings,
)
from analysis.groups import paradigm_order
from analysis.words import metric_name, percent
from study import tasks

_COLUMNS = 2  # as many as a phone has room for
_SIDE, _BESIDE, _ABOVE = 2.3, 0.3, 0.4
"""Inches of a panel with its labels, and of what else is beside and above them."""

_DARK, _FAINT = 0.5, 0.35  # a share with light numbers; ink of a number that is 0


@own_settings()
def heatmap_figure(
    heatmaps: Mapping[str, NDArray[np.float64]],
    threshold: float | None = None,
    seeds: Mapping[str, int | str] | None = None,
    task: str = "",
) -> Figure:
    """Focus-prediction heat maps as the paper draws them, one panel a paradigm.

    Args:
        heatmaps: paradigm -> (bins, bins) fractions of the instances, axis 0 = a_z, axis 1 = s_y.
        threshold: of SAIF; None: the task's own.
        seeds: paradigm -> n, or that in words, said beside its name.
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
    columns = min(_COLUMNS, len(heatmaps))
    rows = math.ceil(len(heatmaps) / columns)
    size = (_BESIDE + _SIDE * columns, _ABOVE + _SIDE * rows)
    figure = Figure(figsize=size)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes, name in zip(panels, paradigm_order(heatmaps), strict=False):
        heatmap = np.asarray(heatmaps[name], dtype=np.float64)
        _draw(axes, heatmap, first, edges, metric_name("saif", threshold, task))
        label(axes, title=f"{name} (n={seeds[name]})" if seeds else name)
    for unused in panels[len(heatmaps) :]:
        unused.remove()
    figure.supxlabel("foreground attention a_z")
    figure.supylabel("true-class score s_y")
    return figure


def _draw(
    axes: Axes, heatmap: NDArray[np.float64], first: int, edges: Sequence[float], saif: str
) -> None:
    """Draws a heat map; `first` is the first bin of the outline, `saif` its name."""
    bins = len(edges) - 1
    if heatmap.shape != (bins, bins):
        raise ValueError(f"a heat map must be ({bins}, {bins}), got {heatmap.shape}")
    says = [
        f"a_z {edges[a_z]:g} to {edges[a_z + 1]:g}, s_y {edges[s_y]:g} to {edges[s_y + 1]:g}: "
        f"{percent(share)} %"
        for (a_z, s_y), share in np.ndenumerate(heatmap)
    ]
    places = [*np.ndindex(heatmap.shape)]
    draw_tiles(axes, places, [(0, 0, 0, share) for share in heatmap.ravel()], says)
    for (a_z, s_y), share in np.ndenumerate(heatmap):
        shown = percent(share)
        axes.text(
            a_z + 0.5,
            s_y + 0.5,
            "0" if shown == "0.0" else shown,
            ha="center",
            va="center_baseline",
            fontsize=SMALL,
            color=WHITE if share > _DARK else BLACK,
            alpha=_FAINT if shown == "0.0" else 1,
        )
    outline = Rectangle((first, first), bins - first, bins - first, fill=False, clip_on=False)
    outline.set(edgecolor=VERMILION, linewidth=2.0, zorder=3)
    outline.set_url(f"{saif}: {percent(heatmap[first:, first:].sum())} %")
    axes.add_patch(outline)
    axes.grid(False)
    ticks = [f"{edge:g}" for edge in edges]
    axes.set_xticks(range(bins + 1), ticks)
    axes.set_yticks(range(bins + 1), ticks)
    axes.set(xlim=(0, bins), ylim=(0, bins), aspect="equal")
