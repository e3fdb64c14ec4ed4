"""What people have as runs becomes a data frame of plain values, or is refused in one line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from study.results import ResultsError, as_seen


def taken(runs: Any) -> pd.DataFrame:
    """Runs as a table of their own, with plain values in place of tensors, categories and such.

    Args:
        runs: a data frame of pandas, Polars or PyArrow, a relation of DuckDB or whatever else
            gives an Arrow stream; dictionaries, one per row; one dictionary, of columns, or of
            plain values, which is one row; or paths of CSV or Parquet files, with * for several.

    Raises:
        ResultsError: it is something else, or a file cannot be read; the message names it.
    """
    table = _frame(runs).reset_index(drop=True)
    table.columns = [as_seen(name) if isinstance(name, str) else name for name in table.columns]
    for place, dtype in enumerate(table.dtypes):
        if isinstance(dtype, pd.ArrowDtype) or dtype.kind not in "biuf":
            plain = [_plain(value) for value in table.iloc[:, place]]
            values: Any = pd.Series(plain, table.index, dtype=object)
            table.isetitem(place, values)
    return table


def _frame(runs: Any) -> pd.DataFrame:
    """The table as whoever made it had it."""
    why = ""
    try:
        if isinstance(runs, pd.DataFrame):
            return runs
        if hasattr(runs, "__arrow_c_stream__"):
            return _of_arrow(runs)
        if isinstance(runs, Mapping):
            # One row may hold lists, of what each test instance got, beside plain values.
            several = all(isinstance(each, Mapping) or np.ndim(each) for each in runs.values())
            return pd.DataFrame(runs if several else [runs], dtype=object)
        rows = [runs] if isinstance(runs, str | os.PathLike) else list(runs)
        if rows and all(isinstance(row, str | os.PathLike) for row in rows):
            return _of_files([os.fspath(row) for row in rows])
        if all(isinstance(row, Mapping) for row in rows):
            # As objects, since whole numbers beside a missing one would become floats.
            return pd.DataFrame(rows, dtype=object)
    except (TypeError, ValueError) as error:
        why = f": {error}".partition("\n")[0]
    raise ResultsError(
        "runs are a data frame (pandas, Polars, PyArrow, DuckDB), dictionaries, or paths of CSV "
        f"or Parquet files; got {type(runs).__name__}{why}."
    )


def _of_files(paths: list[str]) -> pd.DataFrame:
    """The rows of all files."""
    try:
        if all(".parquet" in path for path in paths):
            return _of_arrow(duckdb.read_parquet(paths, union_by_name=True))
        if all(".csv" in path for path in paths):
            # Of all rows, since a whole number may be followed by one that is none.
            return _of_arrow(
                duckdb.read_csv(paths, union_by_name=True, header=True, sample_size=-1)
            )
    except duckdb.Error as error:
        line = str(error).partition("\n")[0]
        raise ResultsError(f"{', '.join(paths)} cannot be read: {line}") from error
    raise ResultsError(f"{', '.join(paths)}: files of runs are .csv or .parquet.")


def _of_arrow(table: Any) -> pd.DataFrame:
    """Whole numbers stay as they are beside missing ones, too."""
    return pa.table(table).to_pandas(integer_object_nulls=True)


def _plain(value: Any) -> Any:
    """A value without tensor, and text as it is seen; what is no real number is text."""
    if isinstance(value, np.timedelta64 | np.datetime64):  # its item may be a mere whole number
        return pd.Series([value])[0]
    with contextlib.suppress(AttributeError, ValueError, RuntimeError):  # plain, or several values
        value = value.item()
    if isinstance(value, str):
        return as_seen(value)
    return str(value) if isinstance(value, complex) else value
