"""A trial without Ray, and the results directory it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from study.cell import Cell, Schedule
from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA, Results, ResultsError
from study.tasks.mosaics import MosaicTask
from study.trial import train_cells
from tests.conftest import tiny_cell


@pytest.fixture
def results(tmp_path: Path) -> Results:
    opened = Results(tmp_path / "results")
    opened.prepare()
    return opened


def config(cells: list[Cell], results: Results) -> dict[str, Any]:
    return {
        "cells": [cell.to_dict() for cell in cells],
        "study": "digits",
        "results": results.url,
        "threads": 1,
        "code_version": "test",
    }


def test_a_trial_records_each_cell_and_its_evaluations(
    digits: MosaicTask, results: Results
) -> None:
    cells = [
        tiny_cell(digits, Schedule.hybrid(0.1, 0.05, 0.5)),
        tiny_cell(digits, Schedule.single("lvml", 1e20)),
    ]
    reports: list[dict] = []
    for cell, status in zip(cells, ("done", "diverged"), strict=True):
        assert train_cells(config([cell], results), reports.append) == {cell.id: status}
    rows = results.cells().set_index("cell_id")
    hybrid, diverged = (rows.loc[cell.id] for cell in cells)
    assert list(results.cells().columns) == CELLS_SCHEMA.names
    assert list(results.evaluations().columns) == EVALUATIONS_SCHEMA.names
    assert (hybrid["status"], diverged["status"]) == ("done", "diverged")
    assert "NaN" in diverged["status_reason"]
    assert hybrid["paradigm"] == "hybrid"
    assert (hybrid["lr"], hybrid["last_lr"], hybrid["switch_point"]) == (0.1, 0.05, 0.5)
    assert pd.isna(diverged["switch_point"])
    assert Cell.from_dict(json.loads(hybrid["cell"])) == cells[0]
    assert hybrid["threads"] == 1
    evaluations = results.evaluations([cells[0].id])
    assert len(evaluations) == 3 * len(cells[0].evaluation_points)
    assert evaluations["heatmap"].map(sum).tolist() == pytest.approx([1] * len(evaluations))
    assert [r["budget_fraction"] for r in reports if r["cell_id"] == cells[0].id] == list(
        cells[0].evaluation_points
    )


def test_how_a_cell_was_run_is_recorded_beside_it(digits: MosaicTask, results: Results) -> None:
    cells = [tiny_cell(digits, precision="bfloat16", seed=seed) for seed in (0, 1)]
    train_cells({**config(cells, results), "micro_batch": 7})
    rows = results.cells()
    assert set(rows["precision"]) == {"bfloat16"}
    assert set(rows["micro_batch"]) == {7}
    assert set(rows["pack"]) == {2}
    assert (rows["total_seconds"] > rows["total_train_seconds"]).all()
    assert (rows["total_train_seconds"] > 0).all()
    train_cells(config([tiny_cell(digits)], results))
    assert results.cells([tiny_cell(digits).id])["micro_batch"].item() == 16  # the whole batch


def test_a_repeated_trial_leaves_finished_cells_alone(
    digits: MosaicTask, results: Results, tmp_path: Path
) -> None:
    cell = tiny_cell(digits)
    train_cells(config([cell], results))
    files = {path: path.read_bytes() for path in (tmp_path / "results").rglob("*.parquet")}
    assert len(files) == 2
    reports: list[dict] = []
    train_cells(config([cell], results), reports.append)
    assert not reports
    assert files == {path: path.read_bytes() for path in files}


def test_a_killed_cell_leaves_no_row(
    digits: MosaicTask, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between its two files: the evaluations are there, the cell is not."""
    cell = tiny_cell(digits)
    real = Results._write_table

    def killed(self: Results, table: str, *rest: Any) -> None:
        if table == "cells":
            raise KeyboardInterrupt
        real(self, table, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Results, "_write_table", killed)
        with pytest.raises(KeyboardInterrupt):
            train_cells(config([cell], results))
    assert results.finished() == set()
    assert len(results.evaluations()) == 0
    train_cells(config([cell], results))
    assert results.finished() == {cell.id}
    assert len(results.evaluations()) > 0


def test_a_cell_whose_evaluations_are_lost_is_run_again(
    digits: MosaicTask, results: Results, tmp_path: Path
) -> None:
    cell = tiny_cell(digits)
    train_cells(config([cell], results))
    before = results.evaluations().drop(columns="train_seconds")
    path = tmp_path / "results" / "evaluations" / f"{cell.id}.parquet"
    path.unlink()
    assert results.finished() == set()
    assert train_cells(config([cell], results)) == {cell.id: "done"}
    after = results.evaluations().drop(columns="train_seconds")
    pd.testing.assert_frame_equal(before, after, check_exact=True)


def test_damaged_evaluations_are_found_before_anything_runs(
    digits: MosaicTask, results: Results, tmp_path: Path
) -> None:
    cell = tiny_cell(digits)
    train_cells(config([cell], results))
    path = tmp_path / "results" / "evaluations" / f"{cell.id}.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ResultsError, match=r"evaluations/.* is damaged .* runs its cell again"):
        results.finished()


def test_one_driver_at_a_time(results: Results) -> None:
    refused = pytest.raises(ResultsError, match="another study is running")
    with results.lock(), refused, results.lock():
        pass
    with results.lock():
        pass


def test_other_data_than_planned_is_refused(digits: MosaicTask, results: Results) -> None:
    cell = tiny_cell(digits, data_digest="of another copy")
    with pytest.raises(RuntimeError, match="the data changed, plan the study again"):
        train_cells(config([cell], results))
    assert results.finished() == set()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match=r"cannot write to the results directory .*/file/r"):
        Results(tmp_path / "file" / "r").prepare()


def test_an_empty_directory_holds_no_results(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="holds no results"):
        Results(tmp_path).cells()
    assert Results(tmp_path).finished() == set()


def test_damaged_and_foreign_files_are_named(
    digits: MosaicTask, results: Results, tmp_path: Path
) -> None:
    cell = tiny_cell(digits)
    train_cells(config([cell], results))
    path = tmp_path / "results" / "cells" / f"{cell.id}.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ResultsError, match=f"{cell.id}.parquet is damaged"):
        results.cells()
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(ResultsError, match="was not written by this platform"):
        results.cells()
    table = pq.read_table(pa.BufferReader(whole))
    pq.write_table(table.replace_schema_metadata({"attention_study_schema": "0"}), path)
    with pytest.raises(ResultsError, match=r"schema 0, this version reads schema 2.*--results"):
        results.cells()


def test_copies_of_a_cell_are_one_and_contradictions_name_both(
    digits: MosaicTask, results: Results, tmp_path: Path
) -> None:
    cell = tiny_cell(digits)
    train_cells(config([cell], results))
    folder = tmp_path / "results" / "evaluations"
    original = folder / f"{cell.id}.parquet"
    copy = folder / "copy.parquet"
    copy.write_bytes(original.read_bytes())
    before = results.evaluations([cell.id])
    pd.testing.assert_frame_equal(
        results.evaluations().sort_values(["step", "split"], ignore_index=True),
        before.sort_values(["step", "split"], ignore_index=True),
    )
    table = pq.read_table(original)
    column = table.schema.get_field_index("accuracy")
    other = pa.array([value + 0.1 for value in table["accuracy"].to_pylist()])
    pq.write_table(table.set_column(column, "accuracy", other), copy)
    with pytest.raises(ResultsError, match=rf"cell {cell.id} has different numbers in") as error:
        results.evaluations()
    assert str(original) in str(error.value)
    assert str(copy) in str(error.value)
