"""A trial without Ray, and the results directory it writes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from study.cell import Cell, Schedule
from study.cell.version import source_digest
from study.cell.work import Work
from study.errors import RequestError
from study.launch.trial import train_cells
from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA, Results
from study.tasks.mosaics.mosaics import MosaicTask
from tests.conftest import tiny_cell
from tests.made_up.comparisons import write
from tests.made_up.tables import contents


def work_on(cells: list[Cell], results: Results, **more: Any) -> Work:
    known: dict[str, Any] = {"study": "digits", "results": results.url, "code_version": "test"}
    return Work(**known, cells=tuple(cells), **more)


def test_a_trial_records_each_cell_and_its_evaluations(
    digits: MosaicTask, results: Results
) -> None:
    points = tuple(point / 20 for point in range(1, 21))
    cells = [
        tiny_cell(digits, Schedule.hybrid(0.1, 0.05, 0.5), evaluation_points=points),
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
    assert len(evaluations) == 3 * len(points)
    assert evaluations["heatmap"].map(sum).tolist() == pytest.approx([1] * len(evaluations))
    assert [r["budget_fraction"] for r in reports if r["cell_id"] == cells[0].id] == [*points]
    assert max(map(len, contents(results).values())) < 15_000


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


def test_a_repeated_trial_leaves_recorded_cells_alone(
    digits: MosaicTask, results: Results
) -> None:
    """But goes on with those that a scheduler stopped."""
    cells = [tiny_cell(digits, seed=seed) for seed in range(3)]
    train_cells(work_on(cells[:1], results))
    write(results, cells[1], status="censored", points=(0.25,))
    before = contents(results)
    reports: list[dict] = []
    found = train_cells(work_on(cells, results), reports.append)
    assert found == dict.fromkeys([cells[1].id, cells[2].id], "done")
    assert cells[0].id not in {report["cell_id"] for report in reports}
    assert contents(results).items() >= before.items()
    assert set(results.survey().statuses.values()) == {"done"}
    assert train_cells(work_on(cells, results)) == {}


def test_a_cell_killed_before_its_record_leaves_none(
    digits: MosaicTask, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = tiny_cell(digits)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Results, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            train_cells(work_on([cell], results))
    assert results.finished() == set()
    assert train_cells(work_on([cell], results)) == {cell.id: "done"}


def test_two_workers_of_one_cell_do_no_harm(digits: MosaicTask, results: Results) -> None:
    """As one that was taken for lost, and the one that came for it; one of two records counts."""
    cell = tiny_cell(digits)

    def another(event: dict[str, Any]) -> None:
        if event["event"] == "evaluation" and not contents(results):
            train_cells(work_on([cell], results))

    assert train_cells(work_on([cell], results), another) == {cell.id: "done"}
    assert len(contents(results)) == 2
    assert len(results.cells()) == 1
    assert len(results.evaluations()) == 3 * len(cell.evaluation_points)
    assert results.disagreements() == []


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
    cell, origin = tiny_cell(digits), results.origin()
    with pytest.raises(RequestError, match="sees another results directory"):
        train_cells(work_on([cell], results, origin="host:/elsewhere 01234567"))
    assert results.finished() == set()
    assert train_cells(work_on([cell], results, origin=origin)) == {cell.id: "done"}
