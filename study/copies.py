"""Files of a results directory that hold the same cells: which to take, which to refuse.

Pure functions of tables; `study.results` reads the files.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from study.schema import METRICS, SPLITS, Table
from study.storage import ResultsError, Storage

DUPLICATE_TOLERANCE = 1e-6
"""Two files of one cell whose metrics differ by more than this are a contradiction."""

_OF_ANOTHER = "it holds the evaluations of another cell"
IDENTITY = ["cell_id", "cell", "status", "steps"]
"""Columns of `CELLS_SCHEMA` in which copies of a cell are equal; the others are circumstances."""
KEY = ["cell_id", "split", "budget_fraction"]

OWN_NAME = re.compile(r"[0-9a-f]{16}\.parquet$")


@dataclass(frozen=True)
class Damage:
    """A file that is no result: its name in the directory, and why."""

    name: str
    reason: str


def own_file(cell_id: str) -> str:
    return f"{cell_id}.parquet"


def own_id(file: str) -> str | None:
    """The id of the cell that a file is named like."""
    name = os.path.basename(file)
    return name.partition(".")[0] if OWN_NAME.match(name) else None


def faults_of(file: str, cells: pa.Table | None, evaluations: pa.Table | None) -> list[Damage]:
    """Whether the files of one name in both tables hold what they have to: then none.

    Args:
        file: their name.
        cells: the columns `IDENTITY` of the one, None: it is not there.
        evaluations: the columns `KEY` of the other, likewise.
    """
    own = own_id(file)
    faults = [
        Damage(f"{table}/{file}", reason)
        for table, rows, reason in (
            ("cells", cells, "it holds another cell"),
            ("evaluations", evaluations, _OF_ANOTHER),
        )
        if own and rows and own not in rows["cell_id"].to_pylist()
    ]
    if faults or cells is None or evaluations is None:
        return faults
    found: dict[str, set[tuple[float, str]]] = {}
    for cell_id, split, fraction in zip(*_lists(evaluations, KEY), strict=True):
        found.setdefault(cell_id, set()).add((fraction, split))
    ids, texts, statuses, _ = _lists(cells, IDENTITY)
    if not found.keys() <= set(ids):
        return [Damage(f"evaluations/{file}", _OF_ANOTHER)]
    for cell_id, text, status in zip(ids, texts, statuses, strict=True):
        try:
            points = json.loads(text)["evaluation_points"]
            expected = set(itertools.product(points, SPLITS))
        except (TypeError, ValueError, KeyError):
            return [Damage(f"cells/{file}", f"cell {cell_id} has no evaluation points")]
        held = found.get(cell_id, set())
        if not held <= expected:
            reason = f"it holds evaluations that cell {cell_id} has not"
            return [Damage(f"evaluations/{file}", reason)]
        if status == "done" and held != expected:
            reason = f"it lacks evaluations of cell {cell_id}"
            return [Damage(f"evaluations/{file}", reason)]
    return []


def _lists(rows: pa.Table, columns: list[str]) -> list[list[Any]]:
    return [rows[name].to_pylist() for name in columns]


def copies_of(rows: pa.Table) -> pd.DataFrame:
    """Which row of each cell is taken.

    Args:
        rows: of cells, with their `file`.

    Returns:
        One row a row of `rows`, by cell and in the order in which copies are taken, with its
        number as the index and the columns `IDENTITY`, `file`, `own` (the file has the cell's
        name), `gives_way` (censored, and another copy went on) and `taken`.
    """
    frame = rows.select([*IDENTITY, "file"]).to_pandas()
    censored = frame["status"] == "censored"
    settled = set(frame.loc[~censored, "cell_id"])
    frame["own"] = frame["file"] == frame["cell_id"] + ".parquet"
    frame["gives_way"] = censored & frame["cell_id"].isin(settled)
    frame = frame.sort_values(
        ["cell_id", "gives_way", "own", "file"], ascending=[True, True, False, True]
    )
    frame["taken"] = ~frame.duplicated("cell_id")
    return frame


def refuse_different_cells(copies: pd.DataFrame, storage: Storage) -> None:
    distinct = copies[~copies["gives_way"]].drop_duplicates(IDENTITY)
    several = distinct[distinct.duplicated("cell_id", keep=False)]
    if len(several):
        cell_id = several["cell_id"].iloc[0]
        files = several.loc[several["cell_id"] == cell_id, "file"]
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
        same = np.array_equal(keys[one], keys[other]) and np.allclose(
            metrics[one], metrics[other], DUPLICATE_TOLERANCE, DUPLICATE_TOLERANCE, True
        )
        if not same:
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
