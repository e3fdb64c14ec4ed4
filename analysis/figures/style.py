"""What all figures have in common: sizes, colours, lines and labels."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.forms import SHARES, Unit
from analysis.groups import paradigm_order

TEXT = 9.5
SMALL = 8.0
WIDTH, HEIGHT = 5.0, 3.9
"""Inches of a figure with one panel: its text is read on a phone and in a column of a paper."""

MARKER_SIZE, SEED_SIZE = 5.0, 3.2
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
BLACK, GREY, WHITE = "#000000", "#555555", "#ffffff"
"""Ink, quiet ink and paper: on a page, what its reader has for them."""

own_settings = functools.partial(
    mpl.rc_context,
    {name: value for name, value in mpl.rcParamsDefault.items() if name != "backend"}
    | {
        "figure.dpi": 144,  # two pixels a point
        "font.sans-serif": ["DejaVu Sans"],  # which Matplotlib brings: the same on every machine
        "figure.constrained_layout.use": True,
        "pdf.fonttype": 42,  # TrueType, as publishers refuse the default, Type 3
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.labelsize": TEXT,
        "axes.titlesize": TEXT,
        "figure.labelsize": TEXT,
        "lines.linewidth": 1.4,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "legend.fontsize": SMALL,
        "legend.frameon": False,
    },
)
"""How our figures look, whatever a user has set; for what makes a figure or a file of it."""

_LETTERS_AN_INCH = 16.5  # of SMALL text, on average
_BESIDE = 0.04  # of an axis of shares, beyond its data
_HANDLE = 8  # letters' room for the line and the gaps of a legend's entry


class LineStyle(NamedTuple):
    """Style of one paradigm in every figure: colour, dashes and marker each tell it apart."""

    colour: str
    dashes: str | tuple[int, tuple[float, ...]]
    marker: str


# Okabe and Ito's colours, which colour-blind readers can tell apart; line style and marker say
# the same again for print in grey.
_STYLES = {
    "hard": LineStyle("#D55E00", ":", "s"),
    "soft": LineStyle("#0072B2", "--", "o"),
    "hybrid": LineStyle("#009E73", "-.", "^"),
    "lvml": LineStyle("#CC79A7", "-", "D"),
    "lvml-logits": LineStyle("#000000", (0, (7.0, 1.5)), "v"),
    # Kin of a paradigm have a shade of its colour.
    "hard-sampled": LineStyle("#E69F00", (0, (3.0, 1.5, 1.0, 1.5)), "X"),
    "hard-running": LineStyle("#8F3E00", (0, (1.0, 3.0)), "P"),
    "hybrid-sampled": LineStyle("#66B99F", (0, (5.0, 1.5, 1.0, 1.5, 1.0, 1.5)), "<"),
    "hybrid-running": LineStyle("#00583F", (0, (7.0, 1.5)), ">"),
    "lvml-sampled": LineStyle("#E3AFCB", (0, (9.0, 1.5, 1.0, 1.5)), "d"),
}
_OTHERS = (
    ("#000000", "#E69F00", "#56B4E9"),
    ((0, (7.0, 1.5)), (0, (4.0, 1.5, 1.0, 1.5, 1.0, 1.5)), (0, (1.5, 3.0))),
    ("p", "*", "h", "d", "8", "H", "<"),
)
"""Colours, dashes and markers of the others, each over again when all are used."""


def line_styles(names: Iterable[str]) -> dict[str, LineStyle]:
    """The style of each paradigm, in the order of `paradigm_order`."""
    others = itertools.starmap(LineStyle, zip(*map(itertools.cycle, _OTHERS), strict=True))
    return {name: _STYLES.get(name) or next(others) for name in paradigm_order(names)}


def styled(rows: pd.DataFrame) -> Iterator[tuple[str, LineStyle, pd.DataFrame]]:
    """Each paradigm with its style and its rows, in the order of `paradigm_order`."""
    for name, style in line_styles(rows["paradigm"]).items():
        yield name, style, rows[rows["paradigm"] == name]


def panel() -> tuple[Figure, Axes]:
    """A figure with one panel."""
    figure = Figure(figsize=(WIDTH, HEIGHT))
    return figure, figure.subplots()


def label(axes: Axes, x: str = "", y: str = "", title: str = "", **look: Any) -> None:
    """What stands below, beside and above a panel, as it is typed.

    Args:
        axes: the panel.
        x, y, title: empty: none.
        look: of the title.
    """
    axes.set_xlabel(x, parse_math=False)
    axes.set_ylabel(y, parse_math=False)
    axes.set_title(title, parse_math=False, **look)


def shared_legend(figure: Figure, order: Iterable[str] = ()) -> None:
    """A legend above all panels, each name of a line once; those of `order` first."""
    # Not `get_legend_handles_labels`, which leaves out names that begin with "_".
    lines = [line for axes in figure.axes for line in axes.lines]
    handles = {str(line.get_label()): line for line in reversed(lines)}
    names = [name for name in (*order, *reversed(handles)) if name in handles]
    # Matplotlib calls a line so that has no name.
    named = (name for name in names if not re.fullmatch(r"_child\d+", name))
    legend_above(figure, {name: handles[name] for name in named})


def legend_above(figure: Figure, entries: Mapping[str, Any]) -> None:
    """A legend above all panels, in as many columns as there is room for: name -> handle."""
    widest = _HANDLE + max(map(len, entries), default=0)
    columns = int(figure.get_figwidth() * _LETTERS_AN_INCH / widest)
    look: dict[str, Any] = {"handlelength": 2.8, "columnspacing": 1.2}
    look["ncols"] = max(1, min(columns, len(entries)))
    legend = figure.legend([*entries.values()], [*entries], loc="outside upper center", **look)
    for text in legend.get_texts():
        text.set_parse_math(False)


def finished(figure: Figure, x_label: str, y_label: str, unit: Unit = SHARES) -> Figure:
    """A figure with one panel of a measure, which holds its data: labels, limits and legend."""
    (axes,) = figure.axes
    label(axes, x_label, y_label)
    limit_values(axes, *axes.get_ylim(), unit)
    shared_legend(figure)  # above the panel, where it never lies over the data
    return figure


def limit_values(axes: Axes, low: float, high: float, unit: Unit) -> None:
    """Limits y to what is shown, with room for half a mark; of shares to 0 to 100 %."""
    if unit is SHARES:
        low, high = max(low, 0.0), min(high, 100.0)
    if low == high and unit is SHARES:
        low, high = max(low - 1.0, 0.0), min(high + 1.0, 100.0)
    beside = _BESIDE * (high - low)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    axes.set_ylim(low - beside, high + beside)
