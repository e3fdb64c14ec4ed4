"""Whatever holds a table of runs is recorded as the same runs, or refused in one line."""

from __future__ import annotations

import decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import analysis
from study.results import ResultsError

BIG = 2**53 + 1
"""No float."""
TABLE = pd.DataFrame(
    {
        "paradigm": ["a", "a", "b"],
        "seed": [BIG, 1, 1],
        "compute": [10, 10, 20],
        "accuracy": [0.5, np.nan, 0.75],
        "width": pd.array([BIG, BIG, None], dtype="Int64"),
    }
)


def csv(table: pd.DataFrame, folder: Path) -> Path:
    table.to_csv(folder / "runs.csv", index=False)
    return folder / "runs.csv"


def parquet(table: pd.DataFrame, folder: Path) -> str:
    table.to_parquet(folder / "runs.parquet")
    return str(folder / "runs.parquet")


def several(table: pd.DataFrame, folder: Path) -> Path:
    for row in range(3):
        table[row : row + 1].to_csv(folder / f"{row}.csv", index=False)
    return folder / "*.csv"


FORMS = {
    "pandas": lambda table, _: table,
    "Arrow types": lambda table, _: table.convert_dtypes(dtype_backend="pyarrow"),
    "categories": lambda table, _: table.astype({"paradigm": "category"}),
    "dictionaries": lambda table, _: table.astype(object).to_dict("records"),
    "a generator": lambda table, _: iter(table.astype(object).to_dict("records")),
    "columns": lambda table, _: table.astype(object).to_dict("list"),
    "Polars": lambda table, _: pl.from_pandas(table),
    "categories of Polars": lambda table, _: pl.from_pandas(table).cast(
        {"paradigm": pl.Categorical}
    ),
    "PyArrow": lambda table, _: pa.Table.from_pandas(table),
    "a reader of PyArrow": lambda table, _: pa.Table.from_pandas(table).to_reader(),
    "DuckDB": lambda table, _: duckdb.from_df(table),
    "CSV": csv,
    "Parquet": parquet,
    "several files": several,
    "a list of files": lambda table, folder: several(table, folder) and [*folder.glob("?.csv")],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_holds_the_same_runs(form, tmp_path):
    """Whole numbers beyond 2^53 beside missing ones included."""
    expected = analysis.record(tmp_path / "expected", TABLE, options=["width"])
    runs = FORMS[form](TABLE, tmp_path)
    assert sorted(analysis.record(tmp_path / "results", runs, options=["width"])) == sorted(
        expected
    )


@pytest.mark.parametrize(
    "accuracy", [0.5, np.float32(0.5), torch.tensor(0.5), decimal.Decimal("0.5"), np.array(0.5)]
)
def test_a_dictionary_of_single_values_is_one_row(accuracy, tmp_path):
    row = {"paradigm": "a", "seed": 1, "compute": 10, "accuracy": accuracy}
    (run,) = analysis.record(tmp_path, row)
    found = analysis.load(tmp_path, [run])
    assert found.query("split == 'test'")["accuracy"].tolist() == [0.5]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (None, "runs are a data frame .* got NoneType"),
        (3, "runs are a data frame .* got int"),
        ({"a": [1, 2], "b": [1]}, "got dict: All arrays must be of the same length"),
        (pl.Series([1]), "runs are a data frame .* got Series"),
        (pl.LazyFrame({"a": [1]}), "runs are a data frame .* got LazyFrame"),
        ([1, 2], "runs are a data frame .* got list"),
        (b"runs.csv", "runs are a data frame .* got bytes"),
        ([TABLE], "runs are a data frame .* got list"),
        ({}, "the table has no rows"),
        ("", "files of runs are .csv or .parquet"),
        ("runs.json", "runs.json: files of runs are .csv or .parquet"),
        ("none.csv", "none.csv cannot be read: .*No files found"),
        ("junk.parquet", "junk.parquet cannot be read: "),
        (["runs.csv", "junk.parquet"], "runs.csv, junk.parquet: files of runs are"),
    ],
)
def test_anything_else_is_refused_in_one_line(runs, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("junk.parquet").write_text("junk")
    csv(TABLE, tmp_path)
    with pytest.raises(ResultsError, match=message) as refused:
        analysis.record("results", runs)
    assert "\n" not in str(refused.value)
    assert not Path("results").exists()
