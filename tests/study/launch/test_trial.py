"""A trial without Ray, and the results directory it writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from study.cell import Cell, Schedule
from study.cell.version import source_digest
from study.cell.work import Work
from study.errors import RequestError
from study.launch.trial import train_cells
from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA, Results
from study.results.compaction import compact
from study.storage.storage import Storage
from study.tasks.mosaics.mosaics import MosaicTask
from tests.conftest import tiny_cell


def work_on(cells: list[Cell], results: Results, **more: Any) -> Work:
    known: dict[str, Any] = {"study": "digits", "results": results.url, "code_version": "test"}
    return Work(**known, cells=tuple(cells), **more)


def test_a_trial_records_each_cell_and_its_evaluations(
    digits: MosaicTask, results: Results
) -> None:
    cells = [
        tiny_cell(digits, Schedule.hybrid(0.1, 0.05, 0.5)),
        tiny_cell(digits, Schedule.single("lvml", 1e20)),
    ]
    reports: list[dict] = []
    for cell, status in zip(cells, ("done", "diverged"), strict=True):
        assert train_cells(work_on([cell], results), reports.append) == {cell.id: status}
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
    train_cells(work_on(cells, results, micro_batch=7))
    rows = results.cells()
    assert set(rows["precision"]) == {"bfloat16"}
    assert set(rows["micro_batch"]) == {7}
    assert set(rows["pack"]) == {2}
    assert (rows["total_seconds"] > rows["total_train_seconds"]).all()
    assert (rows["total_train_seconds"] > 0).all()
    train_cells(work_on([tiny_cell(digits)], results))
    assert results.cells([tiny_cell(digits).id])["micro_batch"].item() == 16  # the whole batch


def test_a_repeated_trial_leaves_finished_cells_alone(
    digits: MosaicTask, results: Results, tmp_path: Path
) -> None:
    cell = tiny_cell(digits)
    train_cells(work_on([cell], results))
    files = {path: path.read_bytes() for path in (tmp_path / "results").rglob("*.parquet")}
    assert len(files) == 2
    reports: list[dict] = []
    train_cells(work_on([cell], results), reports.append)
    assert not reports
    assert files == {path: path.read_bytes() for path in files}


def test_a_repeated_trial_finds_cells_in_merged_files(
    digits: MosaicTask, results: Results, tmp_path: Path
) -> None:
    done = [tiny_cell(digits, seed=seed) for seed in (0, 1)]
    for cell in done:
        train_cells(work_on([cell], results))
    compact(results)
    assert not results.has_cell(done[0].id)
    files = {path: path.read_bytes() for path in (tmp_path / "results").rglob("*.parquet")}
    assert len(files) == 2
    reports: list[dict] = []
    for cell in done:
        assert train_cells(work_on([cell], results), reports.append) == {}
    assert not reports
    assert files == {p: p.read_bytes() for p in (tmp_path / "results").rglob("*.parquet")}
    other = tiny_cell(digits, seed=2)
    assert train_cells(work_on([done[0], other], results)) == {other.id: "done"}


def test_a_killed_cell_leaves_no_row(
    digits: MosaicTask, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between its two files: the evaluations are there, the cell is not."""
    cell = tiny_cell(digits)
    real = Storage.write

    def killed(self: Storage, name: str, data: bytes) -> None:
        if name.startswith("cells/"):
            raise KeyboardInterrupt
        real(self, name, data)

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            train_cells(work_on([cell], results))
    assert results.finished() == set()
    assert len(results.evaluations()) == 0
    train_cells(work_on([cell], results))
    assert results.finished() == {cell.id}
    assert len(results.evaluations()) > 0


def test_a_cell_whose_evaluations_are_lost_is_run_again(
    digits: MosaicTask, results: Results, tmp_path: Path
) -> None:
    cell = tiny_cell(digits)
    train_cells(work_on([cell], results))
    before = results.evaluations().drop(columns="train_seconds")
    path = tmp_path / "results" / "evaluations" / f"{cell.id}.parquet"
    path.unlink()
    assert results.finished() == set()
    assert train_cells(work_on([cell], results)) == {cell.id: "done"}
    after = results.evaluations().drop(columns="train_seconds")
    pd.testing.assert_frame_equal(before, after, check_exact=True)


def test_other_data_than_planned_is_refused(digits: MosaicTask, results: Results) -> None:
    cell = tiny_cell(digits, data_digest="of another copy")
    with pytest.raises(RequestError, match=r"the data changed\. Run the command again"):
        train_cells(work_on([cell], results))
    assert results.finished() == set()


def test_nothing_trains_where_the_project_is_another_version(
    digits: MosaicTask, results: Results
) -> None:
    """As on a node that joins later."""
    work = work_on([tiny_cell(digits)], results)
    with pytest.raises(RequestError, match="has another version of this project than the command"):
        train_cells(replace(work, source="0" * 16))
    assert results.finished() == set()
    assert set(train_cells(replace(work, source=source_digest())).values()) == {"done"}


def test_nothing_trains_where_the_results_directory_is_another_one(
    digits: MosaicTask, results: Results
) -> None:
    """As on a node that joins later and does not share it."""
    cell = tiny_cell(digits)
    mark = results.mark()
    with pytest.raises(RequestError, match="sees another results directory"):
        train_cells(work_on([cell], results, mark="0" * 32))
    assert results.finished() == set()
    assert train_cells(work_on([cell], results, mark=mark)) == {cell.id: "done"}


def test_a_trial_of_an_earlier_command_records_nothing(
    digits: MosaicTask, results: Results
) -> None:
    """It may go on for a while after its driver died, and meet files that are merged by now."""
    cell = tiny_cell(digits)

    def take_over(event: dict[str, object]) -> None:
        if event["event"] == "evaluation":
            results.mark()

    with pytest.raises(RequestError, match="another command runs with it now"):
        train_cells(work_on([cell], results, mark=results.mark()), take_over)
    assert results.finished() == set()
