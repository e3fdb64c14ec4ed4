"""Figure 2 of the paper (c to e) from a setting, and what the interplay of paths brings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.attention_paths.measures import LEADING
from analysis.attention_paths.networks import ALL, LIMIT, SAMPLED, THEORY
from analysis.attention_paths.numbers import limits, line, mean_order_parameter, overlaps
from analysis.attention_paths.settings import Setting
from analysis.attention_paths.words import limit_text, path_text, paths_text, width_text
from analysis.figures.attention_paths import (
    Series,
    accuracy_figure,
    interplay_figure,
    order_parameter_figure,
    overlap_figure,
)
from analysis.section.picture import Picture
from analysis.statistics import CONFIDENCE
from analysis.words import level, listed, number, percent, span

_INTERVAL = f"{level(CONFIDENCE)} t interval (from n=2)"
_MOST_COLUMNS = 8
"""Matrices side by side, so that a page shows them at a readable size."""


def pictures(setting: Setting, networks: pd.DataFrame) -> list[Picture]:
    """Accuracy, order parameter, alignment and interplay, as far as there are numbers.

    Args:
        setting: the setting.
        networks: as `analysis.attention_paths.numbers.networks` gives them.
    """
    known = networks[networks["num_seeds"] > 0]
    if known.empty:
        return []
    drawn = [_accuracy(setting, known), _order_parameter(setting)]
    return [each for each in (*drawn, _alignment(setting), _interplay(known)) if each]


def _accuracy(setting: Setting, networks: pd.DataFrame) -> Picture:
    theory = line(networks, THEORY)
    samples = {name: line(networks, name) for name in SAMPLED}
    samples = {name: table for name, table in samples.items() if len(table)}
    ends = limits(networks)
    seeds = span(networks["num_seeds"])
    alt = [
        f"{name}: "
        + ", ".join(
            f"{percent(row['accuracy'])} % at N={row['network_width']:g}"
            for row in table.to_dict("records")
        )
        + "."
        for name, table in {"Theory": theory, **samples}.items()
        if len(table)
    ]
    alt += [
        f"Limit with {paths_text(row['paths'])}: {percent(row['accuracy'])} %."
        for row in ends.to_dict("records")
    ]
    return Picture(
        name="attention-paths-accuracy",
        title="Accuracy against width",
        caption=(
            "Accuracy of the mean predictor on the test split against the width N (figure 2c and "
            f"e of the paper): theory as a line, sampled networks as points; mean over n={seeds} "
            f"seeds, each with data and random heads of its own, bars: {_INTERVAL}. Lines across: "
            "the limit of infinite width."
        ),
        alt="Accuracy by width. " + " ".join(alt),
        figure=accuracy_figure(
            _series("theory", theory, "accuracy") if len(theory) else None,
            [_series(f"sampled ({n})", table, "accuracy") for n, table in samples.items()],
            [(limit_text(row["paths"]), 100 * row["accuracy"]) for row in ends.to_dict("records")],
            f"test split; mean over n={seeds} seeds, bar: {_INTERVAL}",
        ),
        wide=False,
    )


def _order_parameter(setting: Setting) -> Picture | None:
    names = [path_text(name) for name in setting.path_names()]
    shown = _shown_widths(setting)
    rows = []
    for method in (THEORY, *SAMPLED):
        matrices = [mean_order_parameter(setting, method, width) for width in shown]
        if any(matrix is not None for matrix in matrices):
            limit = mean_order_parameter(setting, LIMIT, np.inf) if method == THEORY else None
            rows.append((method, [*matrices, limit]))
    if not rows:
        return None
    columns = [*map(width_text, shown), width_text(np.inf)]
    if all(matrices[-1] is None for _, matrices in rows):
        columns = columns[:-1]
        rows = [(name, matrices[:-1]) for name, matrices in rows]
    left_out = len(setting.widths) - len(shown)
    note = "mean over seeds; the colour is linear up to 1 and logarithmic beyond"
    note += f"; {left_out} widths are left out" if left_out else ""
    texts = [
        f"{name} {column}: {_entries(matrix, names)}."
        for name, matrices in rows
        for column, matrix in zip(columns, matrices, strict=True)
        if matrix is not None
    ]
    return Picture(
        name="attention-paths-order-parameter",
        title="Order parameter",
        caption=(
            "The order parameter U, the overlap of the weights of each pair of paths, by width: "
            "theory beside what was sampled, mean over seeds (figure 2c and e of the paper). In "
            f"the limit it is the identity. Paths, from the top: {listed(names)}."
        ),
        alt="Matrices of U, largest entries. " + " ".join(texts),
        figure=order_parameter_figure(rows, columns, names, note),
        wide=True,
    )


def _alignment(setting: Setting) -> Picture | None:
    table = overlaps(setting)
    widths = line(table, THEORY)["network_width"]
    if widths.empty:
        return None
    width = float(widths.min())
    both = {}
    for name, method, at in (("mine", THEORY, width), ("limit", LIMIT, np.inf)):
        rows = line(table, method)
        rows = rows[(rows["network_width"] == at) & (rows["component"] <= LEADING)]
        both[name] = rows.sort_values("component", ignore_index=True)
    if both["limit"].empty:
        return None
    named = {"mine": f"theory, N={width:g}", "limit": limit_text(ALL)}
    texts = [f"{named[name]}: {_largest(rows)}." for name, rows in both.items()]
    seeds = span([*both["mine"]["num_seeds"], *both["limit"]["num_seeds"]])
    series = {
        name: Series(
            named[name],
            pd.DataFrame(
                {
                    "x": rows["component"],
                    "mean": rows["overlap"],
                    "low": rows["overlap_low"],
                    "high": rows["overlap_high"],
                }
            ),
        )
        for name, rows in both.items()
    }
    return Picture(
        name="attention-paths-alignment",
        title="Alignment of the kernel with the task",
        caption=(
            f"Overlap (absolute cosine) of the first {LEADING} principal components of the kernel "
            "with the labels of the training inputs, by falling eigenvalue, at the smallest "
            f"width and in the limit (figure 2d of the paper). Mean over n={seeds} seeds, bars: "
            f"{_INTERVAL}."
        ),
        alt="Overlap by number of the component; the three largest. " + " ".join(texts),
        figure=overlap_figure(
            series["mine"], series["limit"], f"mean over n={seeds} seeds, bar: {_INTERVAL}"
        ),
        wide=False,
    )


def _interplay(networks: pd.DataFrame) -> Picture | None:
    theory = line(networks, THEORY)
    theory = theory[theory["accuracy_diagonal"].notna()]
    if theory.empty:
        return None
    seeds = span(theory["num_seeds"])
    texts = [
        f"N={row['network_width']:g}: {percent(row['accuracy'])} % with, "
        f"{percent(row['accuracy_diagonal'])} % without."
        for row in theory.to_dict("records")
    ]
    return Picture(
        name="attention-paths-interplay",
        title="What the interplay of paths brings",
        caption=(
            "Accuracy of theory on the test split with the whole order parameter, and with its "
            "off-diagonal set to 0, so that each path is weighed but no pair of them works "
            f"together. Mean over n={seeds} seeds, bars: {_INTERVAL}; the intervals of the "
            "difference, paired by seed, are in the table."
        ),
        alt="Accuracy with and without the terms of pairs of paths. " + " ".join(texts),
        figure=interplay_figure(
            _series("whole U", theory, "accuracy"),
            _series("diagonal of U alone", theory, "accuracy_diagonal"),
            f"theory, test split; mean over n={seeds} seeds, bar: {_INTERVAL}",
        ),
        wide=False,
    )


def _series(name: str, table: pd.DataFrame, measure: str) -> Series:
    """A measure of networks in per cent against their width."""
    ends = {"mean": measure, "low": f"{measure}_low", "high": f"{measure}_high"}
    values = {end: 100 * table[column] for end, column in ends.items()}
    return Series(name, pd.DataFrame({"x": table["network_width"], **values}))


def _shown_widths(setting: Setting) -> list[float]:
    """The widths that have room beside the limit, the ends among them, the others evenly."""
    widths = setting.widths
    most = min(_MOST_COLUMNS - 1, len(widths))
    places = np.unique(np.linspace(0, len(widths) - 1, most).round().astype(int))
    return [widths[place] for place in places]


def _entries(matrix: np.ndarray, names: Sequence[str]) -> str:
    """The three largest entries of the upper half, in words."""
    rows, columns = np.triu_indices(len(names))
    order = np.argsort(-np.abs(matrix[rows, columns]), kind="stable")[:3]
    return ", ".join(
        f"{names[rows[k]]} and {names[columns[k]]} {number(float(matrix[rows[k], columns[k]]))}"
        if rows[k] != columns[k]
        else f"{names[rows[k]]} {number(float(matrix[rows[k], rows[k]]))}"
        for k in order
    )


def _largest(rows: pd.DataFrame) -> str:
    """The three largest overlaps, in words."""
    first = rows.nlargest(3, "overlap")
    return ", ".join(
        f"component {row['component']} {row['overlap']:.3f}" for row in first.to_dict("records")
    )
