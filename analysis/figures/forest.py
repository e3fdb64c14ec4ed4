"""Paired differences between paradigms."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    TEXT,
    VERMILION,
    dress,
    foot,
    legend_above,
    metric_name,
    own_settings,
)
from analysis.words import level, span
from study.terminal import counted

_MARKERS = {"better": ">", "worse": "<", "undecided": "o"}
_SPREADS = {
    "seed_se": ("over seeds", 0.20, BLACK),
    "image_se": ("over images", 0.32, VERMILION),
    "background_se": ("over backgrounds", 0.44, GREEN),
}
"""Standard error -> what it is over, rows below the interval of its pair, and colour."""

_ENTRIES_A_ROW = 6  # of the legend
_MARGIN = 0.08  # of the range, beside the longest interval


@own_settings()
def forest_figure(paired: pd.DataFrame, threshold: float | None = None) -> Figure:
    """A row a pair of paradigms, a panel a metric: difference, interval, and where it is from.

    Args:
        paired: as `analysis.comparison.paired` gives it, of one comparison: `task`, `metric`,
            `first`, `second`, `num_pairs`, `difference`, `low`, `high`, `seed_se`, `image_se`,
            `background_se` (fractions), `verdict`, `confidence`.
        threshold: of SAIF, for the label; None: the task's own.

    Raises:
        ValueError: `paired` is empty.
    """
    if paired.empty:
        raise ValueError("paired must hold at least one pair of paradigms, got none")
    pairs = paired[["first", "second"]].drop_duplicates().itertuples(index=False, name=None)
    places = {pair: place for place, pair in enumerate(pairs)}
    figure = Figure(figsize=(7.4, 1.75 + 0.4 * len(places)), layout="constrained")
    task = str(paired["task"].iloc[0])
    metrics = paired["metric"].unique()
    panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for axes, metric in zip(panels, metrics, strict=True):
        rows = paired[paired["metric"] == metric]
        _draw(axes, rows, places)
        dress(axes, f"{metric_name(metric, threshold, task)} difference\n(percentage points)", "")
        axes.grid(False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
    names = [f"{first} − {second}" for first, second in places]
    panels[0].set_yticks(range(len(places)), names, fontsize=TEXT, parse_math=False)
    panels[0].set_ylim(len(places) - 0.5, -0.6)
    _legend(figure, paired)
    foot(
        figure,
        "test split; mean difference over "
        f"n={counted(span(paired['num_pairs']), 'common seed')}; above 0: the first is better; "
        "±: standard error",
    )
    return figure


def _draw(axes: Axes, rows: pd.DataFrame, places: dict[tuple[str, str], int]) -> None:
    axes.axvline(0, color=BLACK, linewidth=0.9, zorder=1)
    for row in rows.to_dict("records"):
        place = places[row["first"], row["second"]]
        decided = row["verdict"] != "undecided"
        colour = BLUE if decided else GREY
        interval = (100 * row["low"], 100 * row["high"])
        axes.plot(interval, (place, place), color=colour, linewidth=3.2, solid_capstyle="butt")
        for name, (_, below, shade) in _SPREADS.items():
            ends = [100 * (row["difference"] + sign * row[name]) for sign in (-1, 1)]
            axes.plot(ends, [place + below] * 2, color=shade, linewidth=1.1)
        axes.plot(
            100 * row["difference"],
            place,
            linestyle="none",
            marker=_MARKERS[row["verdict"]],
            markersize=8,
            markeredgecolor=colour,
            markeredgewidth=1.5,
            markerfacecolor=colour if decided else "white",
            zorder=3,
        )
    columns = ["difference", "low", "high"]
    reach = 100 * np.append(rows[columns].to_numpy(float).ravel(), 0)
    low, high = np.nanmin(reach), np.nanmax(reach)
    margin = max(_MARGIN * (high - low), 0.1)
    # No difference of shares is beyond 100 points, whatever an interval of few seeds says.
    axes.set_xlim(max(low - margin, -102), min(high + margin, 102))


def _legend(figure: Figure, paired: pd.DataFrame) -> None:
    def mark(verdict: str, colour: str, face: str) -> Line2D:
        return Line2D(
            [], [], linestyle="none", marker=_MARKERS[verdict], markersize=7,
            markeredgecolor=colour, markeredgewidth=1.5, markerfacecolor=face,
        )  # fmt: skip

    entries = {
        "better": mark("better", BLUE, BLUE),
        "worse": mark("worse", BLUE, BLUE),
        "undecided": mark("undecided", GREY, "white"),
        f"{level(paired['confidence'].iloc[0])} interval": Line2D(
            [], [], color=BLUE, linewidth=3.2
        ),
    }
    for name, (what, _, shade) in _SPREADS.items():
        if paired[name].notna().any():
            entries[f"± {what}"] = Line2D([], [], color=shade, linewidth=1.1)
    columns = len(entries) if len(entries) <= _ENTRIES_A_ROW else 4
    legend_above(figure, entries, columns, handlelength=2.0)
