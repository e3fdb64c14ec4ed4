"""Numbers of others, which lie here as CSV, and ours beside them. They have no interval."""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence

import pandas as pd

from analysis.groups import stacked
from analysis.rules.statistics import interval_columns

OURS = ["num_seeds", *interval_columns("ours")]
"""Columns of what we measured."""


def of_others(file: str) -> pd.DataFrame:
    """The numbers in a file of this folder, one a row."""
    with (importlib.resources.files(__package__) / file).open(encoding="utf-8") as text:
        return pd.read_csv(text)


def measured(rows: pd.DataFrame, measure: str, on: Sequence[str]) -> pd.DataFrame:
    """The columns `on` of a table and its numbers of a measure, as `OURS`."""
    columns = [*on, "num_seeds", *interval_columns(measure)]
    return rows[columns].set_axis([*on, *OURS], axis="columns")


def beside(
    numbers: pd.DataFrame, ours: Sequence[pd.DataFrame], on: Sequence[str], theirs: str
) -> pd.DataFrame:
    """Numbers of others beside ours.

    Args:
        numbers: with the columns `on` and `theirs`.
        ours: tables with the columns `on` and `OURS`.
        on: columns that say what a number is of.
        theirs: the column of what others measured.

    Returns:
        One row each of `numbers`: `on`, `num_seeds`, 0 where we have none, `ours` with `_low` and
        `_high`, NaN where we have none, and `theirs`.
    """
    table = numbers.merge(stacked(ours), how="left", on=[*on])
    return table.fillna({"num_seeds": 0}).astype({"num_seeds": int})[[*on, *OURS, theirs]]
