"""Figure 2 of the paper (c to e) from a setting, and what the interplay of paths brings."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.attention_paths.means import limits, line, mean_order_parameter, overlaps
from analysis.attention_paths.measures import LEADING
from analysis.attention_paths.networks import LIMIT, SLICE, THEORY
from analysis.attention_paths.settings import Setting
from analysis.attention_paths.words import network_text, path_text, width_text
from analysis.figures.attention_paths import (
    Series,
    accuracy_figure,
    interplay_figure,
    order_parameter_figure,
    overlap_figure,
)
from analysis.section.picture import Picture
from analysis.statistics import CONFIDENCE, interval_columns
from analysis.words import level, listed, span
from study.terminal import counted

_INTERVAL = f"{level(CONFIDENCE)} t interval (from n=2)"
_MOST_COLUMNS = 8
"""Matrices side by side, so that a page shows them at a readable size."""


def pictures(setting: Setting, networks: pd.DataFrame) -> list[Picture]:
    """Accuracy, order parameter, alignment and interplay, as far as there are numbers.

    Args:
        setting: the setting.
        networks: as `analysis.attention_paths.means.networks` gives them.
    """
    if not networks["num_seeds"].any():
        return []
    drawn = (
        _accuracy(networks),
        _order_parameter(setting),
        _alignment(setting),
        _interplay(networks),
    )
    return [picture for picture in drawn if picture]


def _accuracy(networks: pd.DataFrame) -> Picture:
    lines = {"theory": line(networks, THEORY), "sampled": line(networks, SLICE)}
    lines = {name: table for name, table in lines.items() if len(table)}
    ends = {
        network_text(row): 100 * row["accuracy"] for row in limits(networks).to_dict("records")
    }
    seeds = counted(span(networks.loc[networks["num_seeds"] > 0, "num_seeds"]), "seed")
    series = {name: series_of(name, table, "accuracy") for name, table in lines.items()}
    return Picture(
        name="attention-paths-accuracy",
        title="Accuracy against width",
        caption=(
            "Accuracy of the mean predictor on the test split against the width N (figure 2c and "
            f"e of the paper): theory as a line, sampled networks as points; mean over n={seeds}, "
            f"each with data and random heads of its own, bars: {_INTERVAL}. Lines across: "
            "the limit of infinite width."
        ),
        figure=accuracy_figure(
            series.get("theory"),
            series.get("sampled"),
            ends,
        ),
    )


def _order_parameter(setting: Setting) -> Picture | None:
    shown = _shown_widths(setting)
    identity = mean_order_parameter(setting, LIMIT, np.inf)
    rows = {
        method: [mean_order_parameter(setting, method, width) for width in shown]
        for method in (THEORY, SLICE)
    }
    rows = {name: found for name, found in rows.items() if any(u is not None for u in found)}
    if not rows:
        return None
    names = [path_text(name) for name in max(setting.rows["path_names"], key=len)]
    if identity is not None:
        shown.append(np.inf)
        rows = {name: [*u, identity if name == THEORY else None] for name, u in rows.items()}
    columns = [width_text(width) for width in shown]
    left_out = len(setting.widths) - int(np.isfinite(shown).sum())
    said = f" {left_out} widths are left out." if left_out else ""
    return Picture(
        name="attention-paths-order-parameter",
        title="Order parameter",
        caption=(
            "The order parameter U, the overlap of the weights of each pair of paths, by width: "
            "theory beside what was sampled, mean over seeds (figure 2c and e of the paper). In "
            f"the limit it is the identity. Paths, from the top: {listed(names)}. "
            f"The colour is linear up to 1 and logarithmic beyond.{said}"
        ),
        figure=order_parameter_figure(rows, columns, names),
    )


def _alignment(setting: Setting) -> Picture | None:
    table = overlaps(setting)
    table = table[table["component"] <= LEADING]
    theory, limit = line(table, THEORY), line(table, LIMIT)
    theory = theory[theory["network_width"] == theory["network_width"].min()]
    if theory.empty or limit.empty:
        return None
    named = {network_text(rows.to_dict("records")[0]): rows for rows in (theory, limit)}
    seeds = counted(span([*theory["num_seeds"], *limit["num_seeds"]]), "seed")
    mine, other = (
        series_of(name, rows, "overlap", x="component", unit=1) for name, rows in named.items()
    )
    return Picture(
        name="attention-paths-alignment",
        title="Alignment of the kernel with the task",
        caption=(
            f"Overlap (absolute cosine) of the first {LEADING} principal components of the kernel "
            "with the labels of the training inputs, by falling eigenvalue, at the smallest "
            f"width and in the limit (figure 2d of the paper). Mean over n={seeds}, bars: "
            f"{_INTERVAL}."
        ),
        figure=overlap_figure(mine, other),
    )


def _interplay(networks: pd.DataFrame) -> Picture | None:
    theory = line(networks, THEORY)
    theory = theory[theory["accuracy_diagonal"].notna()]
    if theory.empty:
        return None
    seeds = counted(span(theory["num_seeds"]), "seed")
    return Picture(
        name="attention-paths-interplay",
        title="What the interplay of paths brings",
        caption=(
            "Accuracy of theory on the test split with the whole order parameter, and with its "
            "off-diagonal set to 0, so that each path is weighed but no pair of them works "
            f"together. Mean over n={seeds}, bars: {_INTERVAL}; the intervals of the "
            "difference, paired by seed, are in the table."
        ),
        figure=interplay_figure(
            series_of("whole U", theory, "accuracy"),
            series_of("diagonal of U alone", theory, "accuracy_diagonal"),
        ),
    )


def series_of(
    name: str, table: pd.DataFrame, measure: str, x: str = "network_width", unit: float = 100
) -> Series:
    """A measure of networks against their width, in per cent, or against another column."""
    values = {
        end: unit * table[column]
        for end, column in zip(("mean", "low", "high"), interval_columns(measure), strict=True)
    }
    return Series(name, pd.DataFrame({"x": table[x], **values}))


def _shown_widths(setting: Setting) -> list[float]:
    """The widths that have room beside the limit, the ends among them, the others evenly."""
    widths = setting.widths
    most = min(_MOST_COLUMNS - 1, len(widths))
    places = np.unique(np.linspace(0, len(widths) - 1, most).round().astype(int))
    return [widths[place] for place in places]
