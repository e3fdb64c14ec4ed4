"""Paired differences between paradigms."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.marks import draw_seeds
from analysis.figures.style import BLACK, BLUE, GREY, TEXT, WHITE, WIDTH, label, own_settings
from analysis.forms import SHARES, Unit, interval_of_pair

_ABOVE, _ROW, _LINE = 1.05, 0.36, 0.15  # inches around the rows, of a row, of a further line
_LETTERS = 22  # of a name on one line: of longer ones little would be left for the rows
_SEEDS = 0.28  # of a row, from the interval down to its seeds
_MARGIN = 0.06  # of the range, beside what reaches farthest
_MOST = 102.0  # no difference of shares is beyond 100 points


@own_settings()
def forest_figure(
    paired: pd.DataFrame,
    seeds: pd.DataFrame | None = None,
    measure: str = "",
    unit: Unit = SHARES,
) -> Figure:
    """A row per pair of paradigms: mean difference and interval, each seed's own below.

    Args:
        paired: as `analysis.digest.pairs` gives it, of one comparison and one metric; at least
            one row.
        seeds: `first`, `second`, `seed` and `difference` of the common seeds.
        measure: name of the metric for people; empty: as the table has it.
        unit: of the metric.
    """
    times, change, of_change = unit.scale, unit.change, unit.of_change
    rows = paired.assign(place=range(len(paired)))
    rows["pair"] = rows["first"] + " \N{MINUS SIGN} " + rows["second"]
    rows["says"] = [
        f"{row['pair']}: {change(row['difference'])}{of_change} "
        f"({interval_of_pair(row, change)}), "
        f"{row['verdict']}, n={row['num_pairs']}"
        for row in rows.to_dict("records")
    ]
    names = [textwrap.fill(pair, _LETTERS, break_on_hyphens=False) for pair in rows["pair"]]
    row_height = _ROW + _LINE * max(name.count("\n") for name in names)
    figure = Figure(figsize=(WIDTH, _ABOVE + row_height * len(rows)))
    axes = figure.subplots()
    axes.axvline(0, color=BLACK, linewidth=0.9, zorder=1)
    undecided = rows["verdict"] == "undecided"
    for mine, colour, face, name in (
        (rows[~undecided], BLUE, BLUE, "decided"),
        (rows[undecided], GREY, WHITE, "undecided"),
    ):
        place, says = mine["place"], [*mine["says"]]
        ends = times * mine["low"], times * mine["high"]
        axes.hlines(place, *ends, colour, linewidth=3, urls=says)
        look: dict[str, Any] = {"edgecolors": colour, "linewidths": 1.5, "zorder": 3, "urls": says}
        axes.scatter(times * mine["difference"], place, 49, face, label=name, **look)
    if seeds is not None:
        seeds = seeds.merge(rows[["first", "second", "pair", "place"]])
        says = [
            f"{each['pair']}, seed {each['seed']}: {change(each['difference'])}{of_change}"
            for each in seeds.to_dict("records")
        ]
        draw_seeds(axes, times * seeds["difference"], seeds["place"] + _SEEDS, BLACK, says)
    of_shares = " (percentage points)" if unit is SHARES else ""
    label(axes, f"{measure or paired['metric'].iloc[0]} difference{of_shares}")
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_yticks(rows["place"], names, fontsize=TEXT, parse_math=False)
    axes.set_ylim(len(rows) - 0.4, -0.5)
    axes.margins(x=_MARGIN)
    if unit is SHARES:
        axes.set_xlim(*np.clip(axes.get_xlim(), -_MOST, _MOST))
    figure.legend(loc="outside upper center", ncols=2)
    return figure
