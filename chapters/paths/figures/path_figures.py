"""Figures of attention paths: figure 2 of the paper (c to e), and what their interplay brings.

Theory is blue, what was sampled is black, the limit of infinite width is vermilion, and what
gradient descent trained is green.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.figures.marks import draw, label_values, number
from analysis.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    SMALL,
    VERMILION,
    LineStyle,
    finished,
    label,
    own_settings,
    panel,
    shared_legend,
)

_BESIDE_LINE = 1.1
"""Factor on N that moves sampled points off the line, so that both bars are seen."""

_LINES = {
    "theory": LineStyle(BLUE, "-", "o"),
    "sampled": LineStyle(BLACK, "", "s"),
    "whole U": LineStyle(BLUE, "-", "o"),
    "diagonal of U alone": LineStyle(GREY, "--", "v"),
}
_LIMITS = ("-", (0, (5.0, 2.0)), (0, (1.0, 1.6)), (0, (5.0, 1.5, 1.0, 1.5)))

_SIDE, _BESIDE, _ABOVE = 0.95, 1.6, 0.75
"""Inches of a matrix with the gap to the next, and of what stands beside and above them all."""

_LABEL = 0.12
"""Inches that a label of the colour bar takes."""

_NAME, _MOST_NAMES = 0.11, 16
"""Inches that the name of a path takes, and how many of them a matrix has room for."""

_TINY = 6.5
_COLOURS = "RdBu_r"


@own_settings()
def accuracy_figure(
    lines: Mapping[str, pd.DataFrame],
    limits: Mapping[str, float] = MappingProxyType({}),
    trained: Mapping[str, float] = MappingProxyType({}),
    filled: bool = False,
) -> Figure:
    """Accuracy against the width: theory as lines, samples as points, limits as lines across.

    Args:
        lines: names of `_LINES` -> one row a network: `x`, its width, `mean`, `low` and `high` in
            %; bounds NaN: no interval. At least one.
        limits: name -> accuracy in %.
        trained: the same of networks that gradient descent trained.
        filled: whether to fill what lies between the first two lines.
    """
    figure, axes = panel()
    for name, table in lines.items():
        beside = table.assign(x=_BESIDE_LINE * table["x"], at=table["x"])
        draw(axes, beside if name == "sampled" else table, _LINES[name], name)
    if filled:
        upper, lower, *_ = lines.values()
        look: dict[str, Any] = {"color": BLUE, "alpha": 0.08, "linewidth": 0}
        axes.fill_between(upper["x"], lower["mean"], upper["mean"], **look)
    for across, colour, styles in (
        (limits, VERMILION, _LIMITS),
        (trained, GREEN, reversed(_LIMITS)),
    ):
        for (name, value), dashes in zip(across.items(), styles, strict=False):
            look = {"color": colour, "linestyle": dashes, "linewidth": 1.4}
            axes.axhline(value, **look, label=name, url=f"{name}: {number(value)} %", zorder=1)
    label_values(axes, [x for table in lines.values() for x in table["x"]], logarithmic=True)
    return finished(figure, "width N", "accuracy (%)")


@own_settings()
def overlap_figure(name: str, mine: pd.DataFrame, limit: pd.DataFrame) -> Figure:
    """Overlap of the kernel's principal components with the labels, by falling eigenvalue.

    Args:
        name: of a network.
        mine: its rows as `draw` takes them; `x` is the number of the component, from 1.
        limit: those of the limit of infinite width.
    """
    figure, axes = panel()
    for text, table, style, shift in (
        ("limit", limit, LineStyle(VERMILION, "", "s"), 0.15),
        (name, mine, LineStyle(BLUE, "", "o"), -0.15),
    ):
        moved = table.assign(x=table["x"] + shift, at=table["x"])
        axes.vlines(moved["x"], 0, moved["mean"], color=style.colour, linewidth=1.6, alpha=0.4)
        draw(axes, moved, style, text, size=3.6)
    axes.axhline(0, color=GREY, linewidth=0.7)
    label(axes, "principal component of the kernel", "overlap with the labels")
    axes.set_xticks([1, *range(5, int(mine["x"].max()) + 1, 5)])
    shared_legend(figure, [name, "limit"])
    return figure


@own_settings()
def order_parameter_figure(
    rows: Mapping[str, Sequence[NDArray[np.float64] | None]],
    columns: Sequence[str],
    names: Sequence[str],
) -> Figure:
    """Matrices side by side: a row of them a method, a column a width, one scale for all.

    Args:
        rows: name -> matrices (D, D), None where there is none.
        columns: name of each column.
        names: (D,) of the paths.
    """
    side = max(_SIDE, _NAME * min(len(names), _MOST_NAMES))
    size = (_BESIDE + side * len(columns), _ABOVE + side * len(rows))
    figure = Figure(figsize=size)
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    there = [matrix for matrices in rows.values() for matrix in matrices if matrix is not None]
    largest = max(float(np.abs(matrix).max()) for matrix in there)
    norm = SymLogNorm(linthresh=1.0, vmin=-largest, vmax=largest)
    for (name, matrices), of_row in zip(rows.items(), panels, strict=True):
        label(of_row[0], y=name)
        for axes, matrix, column in zip(of_row, matrices, columns, strict=True):
            axes.set(xticks=[], yticks=[])
            axes.grid(False)
            axes.spines[:].set_visible(False)
            if matrix is None:
                axes.set_box_aspect(1)
            else:
                said = f"{number(matrix.min())} to {number(matrix.max())}"
                image = axes.imshow(matrix, cmap=_COLOURS, norm=norm)
                image.set_url(f"{name} {column}: U from {said}".strip())
        named = range(0, len(names), -(-len(names) // _MOST_NAMES))
        of_row[0].set_yticks(named, [names[i] for i in named], fontsize=_TINY)
        of_row[0].tick_params(length=0)
    for axes, column in zip(panels[0], columns, strict=True):
        axes.set_title(column, fontsize=SMALL)
    bar = figure.colorbar(ScalarMappable(norm, _COLOURS), ax=panels, pad=0.01, fraction=0.015)
    room = _LABEL / (side * len(rows))
    tens = [10.0**power for power in range(4)]
    ends = [*(ten for ten in tens if norm(largest) - norm(ten) >= room), largest]
    ticks = [-end for end in reversed(ends)] + [0.0, *ends]
    bar.set_ticks(ticks, labels=[f"{tick:.3g}" for tick in ticks])
    bar.minorticks_off()
    bar.ax.set_title("U", fontsize=SMALL)
    if bar.solids:
        bar.solids.set_rasterized(True)  # 256 steps of colour
    return figure
