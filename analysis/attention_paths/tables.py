"""Tables of attention paths for people."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from analysis.attention_paths.networks import LIMIT
from analysis.attention_paths.words import (
    limit_text,
    network_text,
    signed,
    three_decimals,
    width_text,
)
from analysis.section.columns import Column, Row, by_columns, measured, plain
from analysis.statistics import CONFIDENCE
from analysis.words import level, number, percent

_BOUNDS = f"{level(CONFIDENCE)} interval"
_MEASURES: dict[str, tuple[str, Callable[[float], str]]] = {
    "accuracy": ("accuracy %", percent),
    "accuracy_diagonal": ("accuracy %, diagonal of U", percent),
    "largest_overlap": ("largest overlap", three_decimals),
}

Cells = tuple[list[str], list[list[str]]]
"""Header and rows."""


def network_cells(networks: pd.DataFrame) -> Cells:
    """Accuracy of every network, what finite width and the interplay bring, and its kernel."""
    columns: list[Column] = [
        ("network", network_text),
        *measured("accuracy %", "accuracy", _BOUNDS),
        *measured("minus limit", "gain", _BOUNDS, signed),
        _of_finite_width(("without interplay %", lambda row: percent(row["accuracy_diagonal"]))),
        *map(_of_finite_width, measured("with minus without", "interplay", _BOUNDS, signed)),
        ("largest overlap", lambda row: three_decimals(row["largest_overlap"])),
        plain("n", "num_seeds"),
    ]
    return by_columns(columns, networks)


def short_cells(networks: pd.DataFrame) -> Cells:
    """The same for the terminal, without intervals."""
    columns: list[Column] = [
        ("network", network_text),
        ("accuracy %", lambda row: percent(row["accuracy"])),
        _of_finite_width(("without interplay", lambda row: percent(row["accuracy_diagonal"]))),
        ("largest overlap", lambda row: three_decimals(row["largest_overlap"])),
        plain("n", "num_seeds"),
    ]
    return by_columns(columns, networks)


def agreement_cells(agreement: pd.DataFrame) -> Cells:
    """Theory against sampling, one row a sampled network."""
    columns: list[Column] = [
        ("sampled", lambda row: f"{row['method']} {width_text(row['network_width'])}"),
        *measured("error of the mean %", "predictor_error", _BOUNDS, _two_digits),
        ("sampling error %", lambda row: _two_digits(row["sampling_error"])),
        *measured("accuracy (points)", "accuracy_difference", _BOUNDS, signed),
        ("largest difference of U", lambda row: number(row["order_parameter_difference"])),
        ("R-hat", lambda row: three_decimals(row["r_hat"])),
        ("effective draws", lambda row: number(row["effective_sample_size"])),
        ("not converged", lambda row: str(row["num_unconverged"])),
        plain("n", "num_seeds"),
    ]
    return by_columns(columns, agreement)


def short_agreement_cells(agreement: pd.DataFrame) -> Cells:
    """The same for the terminal, without intervals."""
    columns: list[Column] = [
        ("sampled", lambda row: f"{row['method']} {width_text(row['network_width'])}"),
        ("error of the mean %", lambda row: _two_digits(row["predictor_error"])),
        ("accuracy", lambda row: signed(row["accuracy_difference"])),
        ("R-hat", lambda row: three_decimals(row["r_hat"])),
        ("not converged", lambda row: str(row["num_unconverged"])),
        plain("n", "num_seeds"),
    ]
    return by_columns(columns, agreement)


def prototype_cells(beside: pd.DataFrame) -> Cells:
    """The prototype's numbers beside ours."""
    columns: list[Column] = [
        ("measure", lambda row: _MEASURES[row["measure"]][0]),
        ("network", _prototype_network),
        ("ours", lambda row: _form(row)(row["ours"])),
        (_BOUNDS, _prototype_interval),
        ("prototype", lambda row: _form(row)(row["prototype"])),
        ("n", lambda row: str(row["num_seeds"])),
    ]
    return by_columns(columns, beside)


def _of_finite_width(column: Column) -> Column:
    """The column; ``-`` in a limit, whose order parameter has no off-diagonal."""
    header, show = column
    return header, lambda row: "-" if row["method"] == LIMIT else show(row)


def _form(row: Row) -> Callable[[float], str]:
    return _MEASURES[row["measure"]][1]


def _prototype_network(row: Row) -> str:
    width = row["network_width"]
    return width_text(width) if width < float("inf") else limit_text(row["paths"])


def _prototype_interval(row: Row) -> str:
    (_, show) = measured("", "ours", "", _form(row))[1]
    return show(row) if row["num_seeds"] else "-"


def _two_digits(share: float) -> str:
    return percent(share, 2)
