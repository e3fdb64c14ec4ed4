"""Tables of attention paths for people."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from analysis.attention_paths.networks import ALL, LIMIT
from analysis.attention_paths.words import network_text, r_hat_text
from analysis.section.blocks import Table
from analysis.section.columns import Column, Row, by_columns, measured, plain
from analysis.statistics import CONFIDENCE
from analysis.words import interval, level, number, percent, points, three_decimals

Cells = tuple[list[str], list[list[str]]]
"""Header and rows."""

_BOUNDS = f"{level(CONFIDENCE)} interval"
_SPACIOUS = {_BOUNDS, "sampling error %", "largest difference of U", "effective draws"}
_MEASURES: dict[str, tuple[str, Callable[[float], str]]] = {
    "accuracy": ("accuracy %", percent),
    "accuracy_diagonal": ("accuracy %, diagonal of U", percent),
    "largest_overlap": ("largest overlap", three_decimals),
}


def network_cells(networks: pd.DataFrame) -> Cells:
    """Accuracy of every network, what finite width brings, and its kernel."""
    columns: list[Column] = [
        ("network", network_text),
        *measured("accuracy %", "accuracy", _BOUNDS),
        *map(_but_of_the_limit, measured("minus limit", "gain", _BOUNDS, points)),
        ("largest overlap", lambda row: three_decimals(row["largest_overlap"])),
        plain("n", "num_seeds"),
    ]
    return by_columns(columns, networks)


def interplay_cells(networks: pd.DataFrame) -> Cells:
    """What the interplay of paths brings; the U of a limit has no off-diagonal."""
    columns: list[Column] = [
        ("network", network_text),
        ("with interplay %", lambda row: percent(row["accuracy"])),
        ("without %", lambda row: percent(row["accuracy_diagonal"])),
        *measured("difference", "interplay", _BOUNDS, points),
        plain("n", "num_seeds"),
    ]
    return by_columns(columns, networks[networks["method"] != LIMIT])


def agreement_cells(agreement: pd.DataFrame) -> Cells:
    """Theory against sampling, one row a sampled network."""
    columns: list[Column] = [
        ("sampled", network_text),
        *measured("error of the mean %", "predictor_error", _BOUNDS, _two_digits),
        ("sampling error %", lambda row: _two_digits(row["sampling_error"])),
        *measured("accuracy (points)", "accuracy_difference", _BOUNDS, points),
        ("largest difference of U", lambda row: number(row["order_parameter_difference"])),
        ("R-hat", lambda row: r_hat_text(row["r_hat"])),
        ("effective draws", lambda row: number(row["effective_sample_size"])),
        plain("not converged", "num_unconverged"),
        plain("n", "num_seeds"),
    ]
    return by_columns(columns, agreement)


def prototype_cells(beside: pd.DataFrame) -> Cells:
    """The prototype's numbers beside ours."""
    columns: list[Column] = [
        ("measure", lambda row: _MEASURES[row["measure"]][0]),
        ("network", network_text),
        ("ours", lambda row: _form(row)(row["ours"])),
        (_BOUNDS, lambda row: interval(row, "ours", _form(row)) if row["num_seeds"] else "-"),
        ("prototype", lambda row: _form(row)(row["prototype"])),
        plain("n", "num_seeds"),
    ]
    return by_columns(columns, beside)


def in_terminal(table: Table) -> Cells:
    """The table without the columns that a terminal has no room for."""
    kept = [i for i, name in enumerate(table.header) if name not in _SPACIOUS]
    return [table.header[i] for i in kept], [[row[i] for i in kept] for row in table.rows]


def _but_of_the_limit(column: Column) -> Column:
    """The column; ``-`` in the limit with all paths, from which it is measured."""
    header, show = column
    return header, lambda row: "-" if (row["method"], row["paths"]) == (LIMIT, ALL) else show(row)


def _form(row: Row) -> Callable[[float], str]:
    return _MEASURES[row["measure"]][1]


def _two_digits(share: float) -> str:
    return percent(share, 2)
