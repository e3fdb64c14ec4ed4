"""Tables for people, declared column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from analysis.forms import Row, interval, percent

Column = tuple[str, Callable[[Row], str]]
"""Header, and the text of a row below it."""


def by_columns(
    columns: Sequence[Column], table: pd.DataFrame
) -> tuple[list[str], list[list[str]]]:
    """Header and rows, one a row of `table`."""
    records = table.to_dict("records")
    return (
        [header for header, _ in columns],
        [[show(record) for _, show in columns] for record in records],
    )


def plain(header: str, column: str = "", form: Callable[[Any], str] = str) -> Column:
    """A column, by default as it is; its name is by default that of the header."""
    return header, lambda row: form(row[column or header])


def measured(
    header: str, metric: str, bounds: str, form: Callable[[float], str] = percent
) -> list[Column]:
    """A mean, and its interval under the header `bounds`."""
    return [
        plain(header, metric, form),
        (bounds, lambda row: interval(row, metric, form)),
    ]
