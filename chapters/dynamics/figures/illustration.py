"""The task in one dimension (appendix A.5 and figure 5 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.figures.style import GREY, TEXT, label, own_settings

_NAMES = ("background D₀", "class 1, D₁", "class 2, D₂")
_POINT: dict[str, Any] = {"s": 16, "alpha": 0.75}
_FILLED = {**_POINT, "linewidths": 0.4, "edgecolors": "white"}
_STYLES = (  # brown, blue, orange, as the paper has them
    {**_POINT, "color": "#8C510A", "marker": "x", "linewidths": 1.0},
    {**_FILLED, "color": "#0072B2", "marker": "o"},
    {**_FILLED, "color": "#E69F00", "marker": "^"},
)
_STRIP = 0.28  # half the height of a strip, in which points lie at random heights


@own_settings()
def illustration_figure(
    values: NDArray[np.float64],
    classes: NDArray[np.int64],
    segments: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> Figure:
    """Left, samples of each class on a line; right, mosaics of two segments by their label.

    Args:
        values: (N,) samples of the base distributions.
        classes: (N,) 0 the background, 1 and 2 the foreground classes.
        segments: (M, 2) the segments of each mosaic.
        labels: (M,) 1 or 2.
    """
    figure = Figure(figsize=(8.2, 4.2))
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
    heights = np.random.default_rng(0).uniform(-_STRIP, _STRIP, len(values))
    for each, style in enumerate(_STYLES):
        mine = classes == each
        left.scatter(values[mine], 2 - each + heights[mine], **style)
    left.set_yticks([2, 1, 0], _NAMES)
    left.set_ylim(-0.6, 2.6)
    label(left, "value of a segment", "", "base distributions", fontsize=TEXT + 1)
    for each in (1, 2):
        right.scatter(*segments[labels == each].T, **_STYLES[each], label=f"label {each}")
    low, high = float(segments.min()), float(segments.max())
    right.plot([low, high], [low, high], color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
    right.set_aspect("equal")
    label(right, "first segment", "second segment", "mosaics of two segments", fontsize=TEXT + 1)
    right.legend(loc="lower right")
    return figure
