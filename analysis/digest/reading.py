"""From a results directory to tables."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from study.results import CELLS_SCHEMA, Results, ResultsError, unknown

CELL_COLUMNS = [name for name in CELLS_SCHEMA.names if name != "cell"]
"""All but the JSON of a cell, which is most of its memory."""

_EXACT = {pa.int64(): pd.Int64Dtype()}
"""Floats, as pandas makes them of whole numbers beside missing ones, end at 2**53."""


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
        The columns of `CELLS_SCHEMA` and `EVALUATIONS_SCHEMA`, `base_images` (of the rows with
        `instances`, those that each instance holds, one after another; as many for each, that of
        the foreground first), and one for each measure of its own that a recorded run has. Metrics
        are fractions in [0, 1] (`loss` in nats), compute in FLOPs, times in seconds; counts are
        nullable integers.

    Raises:
        ResultsError: not a readable results directory.
    """
    return joined(opened(results_dir), cell_ids, CELLS_SCHEMA.names)


def joined(
    results: Results, cell_ids: Iterable[str] | None, columns: Sequence[str]
) -> pd.DataFrame:
    """As `load`, with some columns of the cells alone."""
    # Of one moment, so that a cell that finishes meanwhile is in both tables or in none.
    cells, rows = results.tables(cell_ids, columns)
    evaluations = rows.to_pandas(types_mapper=_EXACT.get)
    table = cells.to_pandas().merge(evaluations, on="cell_id", how="left", validate="one_to_many")
    return with_base_images(results, with_measures(table))


def with_base_images(results: Results, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column `base_images`, see `load`; missing where they are not at hand.

    Args:
        results: where the evaluations are recorded.
        rows: evaluations, with the column `instances`.
    """
    found: dict[str, NDArray[np.int64]] = {}
    for name in rows["instances"].dropna().unique():
        if (base_images := results.base_images(name)) is not None:
            found[name] = base_images.ravel()
    column = pd.Series([found.get(name) for name in rows["instances"]], rows.index, dtype=object)
    return rows.assign(base_images=column)


def with_measures(rows: pd.DataFrame, names: Iterable[str] = ()) -> pd.DataFrame:
    """The rows with a column for each measure in the JSON of their column `measures`.

    Args:
        rows: evaluations.
        names: of measures that get a column, even if none of the rows has them.
    """
    wanted = [name for name in sorted({*measures_of(rows), *names}) if name not in rows]
    if not wanted:
        return rows
    texts = rows["measures"].dropna()
    measures = pd.DataFrame([json.loads(text) for text in texts], texts.index, dtype=float)
    return rows.join(measures.reindex(columns=wanted))


def measures_of(rows: pd.DataFrame) -> list[str]:
    """The names in the JSON of the column `measures`, sorted; none in a table without it."""
    texts = rows["measures"].dropna() if "measures" in rows else ()
    return sorted({name for text in texts for name in json.loads(text)})


def cells_of(
    results_dir: str | os.PathLike[str] | Results,
    study: str | None = None,
    cell_ids: Collection[str] | None = None,
) -> pd.DataFrame:
    """One row a cell: `CELL_COLUMNS`.

    Args:
        results_dir: local path, fsspec URL or an open `Results`.
        study: only the cells that this study recorded.
        cell_ids: only these.

    Raises:
        ResultsError: unreadable results, no such cell, an unknown study.
    """
    results = opened(results_dir)
    cells = results.cells(cell_ids, CELL_COLUMNS)
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


def opened(results_dir: str | os.PathLike[str] | Results) -> Results:
    """Opens the results directory at a path or URL; an open one is returned as it is."""
    return results_dir if isinstance(results_dir, Results) else Results(results_dir)
