"""Copies of a cell in several files: chooses one, and refuses copies that differ.

Pure functions of tables; `study.results` reads the files.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from study.results.coverage import IDENTITY, KEY
from study.results.schema import METRICS, Table
from study.storage.storage import ResultsError, Storage

DUPLICATE_TOLERANCE = 1e-6
"""Metrics of two copies of a cell may differ by this much."""


def agree(one: ArrayLike, other: ArrayLike) -> NDArray[np.bool_]:
    """Which numbers of two copies of a cell agree within `DUPLICATE_TOLERANCE`.

    The tolerance is absolute and relative; two missing values agree.
    """
    return np.isclose(one, other, DUPLICATE_TOLERANCE, DUPLICATE_TOLERANCE, equal_nan=True)


def copies_of(rows: pa.Table) -> pd.DataFrame:
    """Chooses the row of each cell that is taken.

    Args:
        rows: of cells, with their `file`.

    Returns:
        One row for each row of `rows`, by cell, the preferred copy first. The index is the row's
        number; the columns are `cell_id`, `file`, `own` (the file is named after the cell),
        `gives_way` (censored, and another copy went on) and `taken`.
    """
    # As Python's strings, which pandas sorts and compares ten times as fast as Arrow's.
    values = {name: rows[name].to_numpy() for name in ("cell_id", "status", "file")}
    frame = pd.DataFrame(values, dtype=object)
    censored = frame.pop("status") == "censored"
    frame["own"] = frame["file"] == frame["cell_id"] + ".parquet"
    frame["gives_way"] = censored & frame["cell_id"].isin(frame.loc[~censored, "cell_id"])
    frame = frame.sort_values(
        ["cell_id", "gives_way", "own", "file"], ascending=[True, True, False, True]
    )
    frame["taken"] = ~frame.duplicated("cell_id")
    return frame


def refuse_different_cells(rows: pa.Table, copies: pd.DataFrame, storage: Storage) -> None:
    """Refuses copies of a cell that differ in the columns `IDENTITY`.

    Args:
        rows: of cells, with their `file`.
        copies: as `copies_of` gives them.
        storage: where the files are.

    Raises:
        ResultsError: copies differ; names their files.
    """
    standing = copies[~copies["gives_way"]]
    several = standing.index[standing.duplicated("cell_id", keep=False)].to_numpy()
    distinct = rows.take(several).to_pandas().drop_duplicates(IDENTITY)
    different = distinct[distinct.duplicated("cell_id", keep=False)]
    if len(different):
        cell_id = different["cell_id"].iloc[0]
        files = different.loc[different["cell_id"] == cell_id, "file"]
        raise _contradiction(cell_id, "cells", files.iloc[:2], storage)


def refuse_different_evaluations(
    evaluations: pd.DataFrame, copies: pd.DataFrame, storage: Storage
) -> None:
    """Refuses copies of a cell whose evaluations differ from those of the taken copy.

    Raises:
        ResultsError: copies differ; names their files.
    """
    others = copies[~copies["taken"] & ~copies["gives_way"]]
    repeated = evaluations[evaluations["cell_id"].isin(others["cell_id"])].sort_values(KEY)
    keys = repeated[KEY].to_numpy(object)
    metrics = repeated[list(METRICS)].to_numpy(float)
    rows = repeated.groupby(["cell_id", "file"]).indices
    none = np.array([], dtype=int)
    taken = taken_files(copies)
    for cell_id, file in zip(others["cell_id"], others["file"], strict=True):
        one, other = (rows.get((cell_id, each), none) for each in (taken[cell_id], file))
        if not (
            np.array_equal(keys[one], keys[other]) and agree(metrics[one], metrics[other]).all()
        ):
            raise _contradiction(cell_id, "evaluations", [taken[cell_id], file], storage)


def taken_files(copies: pd.DataFrame) -> dict[str, str]:
    """Cell id -> the file of the taken copy."""
    taken = copies[copies["taken"]]
    return dict(zip(taken["cell_id"], taken["file"], strict=True))


def _contradiction(
    cell_id: str, table: Table, files: Iterable[str], storage: Storage
) -> ResultsError:
    paths = " and ".join(sorted(storage.path(f"{table}/{file}") for file in files))
    return ResultsError(
        f"cell {cell_id} has different results in {paths}. Move one of them away, with the file "
        "of the same name in the other folder."
    )
