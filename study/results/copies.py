"""Files of a results directory that hold the same cells: which to take, which to refuse.

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
"""Two records of one cell whose metrics differ by more than this are a contradiction."""


def agree(one: ArrayLike, other: ArrayLike) -> NDArray[np.bool_]:
    """Which numbers of two records of one cell are the same within `DUPLICATE_TOLERANCE`.

    It is absolute and relative; what is missing in both is the same.
    """
    return np.isclose(one, other, DUPLICATE_TOLERANCE, DUPLICATE_TOLERANCE, equal_nan=True)


def copies_of(rows: pa.Table) -> pd.DataFrame:
    """Which row of each cell is taken.

    Args:
        rows: of cells, with their `file`.

    Returns:
        One row a row of `rows`, by cell and in the order in which copies are taken, with its
        number as the index and the columns `cell_id`, `file`, `own` (the file has the cell's
        name), `gives_way` (censored, and another copy went on) and `taken`.
    """
    # Python's strings: to sort and compare them takes pandas a tenth of what Arrow's take.
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
    """Compares the copies of each cell in the columns `IDENTITY`.

    Args:
        rows: of cells, with their `file`.
        copies: what `copies_of` says of them.
        storage: where the files are.

    Raises:
        ResultsError: some differ; names their files.
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
    """Compares each copy's evaluations with those that are taken."""
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
    """Cell id -> the file that it is taken from."""
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
