"""From a results directory to one table, or to its evaluations part by part."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from study.results import (
    CELLS_SCHEMA,
    EVALUATIONS_SCHEMA,
    FURTHER,
    KEY,
    METRICS,
    Results,
    ResultsError,
    agree,
    unknown,
)

T = TypeVar("T")

_COUNTS = ("step", "mosaics_seen", "compute_flops", "num_evaluated")
CELL_COLUMNS = [name for name in CELLS_SCHEMA.names if name != "cell"]
EVALUATION_COLUMNS = [name for name in EVALUATIONS_SCHEMA.names if name != "cell_id"]
_REPEATED = ["status", "steps", *_COUNTS, *METRICS, *FURTHER]
"""Columns in which two records of one evaluation agree; the others are circumstances."""


def load(
    results_dir: str | os.PathLike[str] | Results, cell_ids: Iterable[str] | None = None
) -> pd.DataFrame:
    """Evaluations joined with their cells: one row a cell x evaluation x split.

    A cell without any evaluation (it diverged before the first) has one row with missing columns
    of the evaluation, so that no cell drops out of the count.

    Args:
        results_dir: local path, fsspec URL or an open `Results`.
        cell_ids: keep these cells only; ids without a result are ignored.

    Returns:
        The columns of `CELLS_SCHEMA` and `EVALUATIONS_SCHEMA`, and one for each measure of its own
        that a recorded run has. Metrics are fractions in [0, 1] (`loss` in nats), compute in
        FLOPs, times in seconds; counts are nullable integers.

    Raises:
        ResultsError: not a readable results directory.
    """
    results = opened(results_dir)
    # Of one moment, so that a cell that finishes meanwhile is in both tables or in none.
    cells, rows = read_or_refuse(results, lambda: results.tables(cell_ids))
    table = cells.to_pandas().merge(
        rows.to_pandas(), on="cell_id", how="left", validate="one_to_many"
    )
    return with_measures(table).astype(dict.fromkeys(_COUNTS, "Int64"))


def with_measures(rows: pd.DataFrame, names: Iterable[str] = ()) -> pd.DataFrame:
    """The rows with a column for each measure in the JSON of their column `measures`.

    Args:
        rows: evaluations.
        names: of measures that get a column, even if none of the rows has them.
    """
    texts = rows["measures"].dropna() if "measures" in rows else pd.Series()
    measures = pd.DataFrame([json.loads(text) for text in texts], texts.index, dtype=float)
    wanted = [name for name in {*measures, *names} if name not in rows]
    return rows.join(measures.reindex(columns=sorted(wanted))) if wanted else rows


def measures_of(rows: pd.DataFrame) -> list[str]:
    """The names in the JSON of the column `measures`, sorted; none in a table without it."""
    texts = rows["measures"].dropna() if "measures" in rows else ()
    return sorted({name for text in texts for name in json.loads(text)})


def cells_of(
    results_dir: str | os.PathLike[str] | Results,
    study: str | None = None,
    cell_ids: Iterable[str] | None = None,
) -> pd.DataFrame:
    """One row a cell: the columns of `CELLS_SCHEMA` but the long JSON ones.

    Args:
        results_dir: local path, fsspec URL or an open `Results`.
        study: only the cells that this study recorded.
        cell_ids: only these.

    Raises:
        ResultsError: unreadable results, no such cell, an unknown study.
    """
    results = opened(results_dir)
    ids = None if cell_ids is None else set(cell_ids)
    columns = [name for name in CELL_COLUMNS if name != "package_versions"]
    cells = read_or_refuse(results, lambda: results.cells(ids, columns))
    return of_study(cells, results, study, ids)


def of_study(
    cells: pd.DataFrame, results: Results, study: str | None, cell_ids: Collection[str] | None
) -> pd.DataFrame:
    """The rows of a study; raises a ResultsError if there is none."""
    if cells.empty:
        which = "no finished cell" if cell_ids is None else "none of the requested cells"
        running = "A study is running with it: ask again when its first cells have ended."
        advice = running if results.is_running() else "Run or resume the study first."
        raise ResultsError(f"{results.url} holds {which}. {advice}")
    if study is None:
        return cells
    names = sorted(cells["study"].unique())
    if study not in names:
        raise ResultsError(f"{results.url}: {unknown('study', study, names)}")
    return cells[cells["study"] == study].reset_index(drop=True)


def whole_numbers(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with whole numbers as such in each column that has no missing value.

    Beside cells that lack it, as recorded runs do, a column was read as floats.
    """
    whole = [
        field.name
        for field in CELLS_SCHEMA
        if pa.types.is_integer(field.type) and cells[field.name].notna().all()
    ]
    return cells.astype(dict.fromkeys(whole, "int64"))


def each_once(rows: pd.DataFrame) -> pd.DataFrame:
    """Each evaluation once; which of several equal rows is kept does not depend on their order.

    Raises:
        ResultsError: two rows of one evaluation contradict each other.
    """
    if not rows.duplicated(KEY).any():
        return rows
    rows = rows.sort_values([*KEY, *_REPEATED, "train_seconds"], ignore_index=True)
    again = rows.duplicated(KEY)
    first = rows.index.to_series().mask(again).ffill().astype(int)
    one, other = rows.loc[first[again]], rows[again]
    for name in _REPEATED:
        a, b = one[name].to_numpy(), other[name].to_numpy()
        same = a == b if name == "status" else agree(_floats(one[name]), _floats(other[name]))
        if not same.all():
            at = int(np.flatnonzero(~same)[0])
            row = other.iloc[at]
            raise ResultsError(
                f"cell {row['cell_id']} is in the table twice{_place(row)}, with {name} {a[at]} "
                f"and {b[at]}. Keep one of the two rows."
            )
    return rows[~again].reset_index(drop=True)


def _place(row: pd.Series) -> str:
    """Names a row's evaluation within its cell; empty for a cell without evaluations."""
    if pd.isna(row["split"]):
        return ""
    return f" at {100 * row['budget_fraction']:g} % of the budget on the {row['split']} split"


def _floats(column: pd.Series) -> np.ndarray:
    return column.to_numpy(float, na_value=np.nan)


def opened(results_dir: str | os.PathLike[str] | Results) -> Results:
    """Opens the results directory at a path or URL; an open one is returned as it is."""
    return results_dir if isinstance(results_dir, Results) else Results(results_dir)


def read_or_refuse(results: Results, read: Callable[[], T]) -> T:
    """The result of `read`; raises a ResultsError if a file cannot be read."""
    try:
        return read()
    except OSError as error:
        raise ResultsError(f"cannot read the results in {results.url} ({error}).") from error
