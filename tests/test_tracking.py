"""A real MLflow store: each cell one run, whatever happened before."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import mlflow
import numpy as np
import pytest
from mlflow import MlflowClient

from analysis.figures import heatmap_figure
from study.cell import Cell, Schedule
from study.errors import RequestError
from study.results import METRICS, Results
from study.tasks.mosaics import MosaicTask
from study.tracking import METRIC_STEP_FLOPS, MLflowTracker, NullTracker, open_tracker
from study.trial import train_cells
from tests.conftest import tiny_cell


@pytest.fixture(scope="module")
def cells(digits: MosaicTask) -> list[Cell]:
    return [
        tiny_cell(digits, Schedule.hybrid(0.1, 0.05, 0.5)),
        tiny_cell(digits, Schedule.single("lvml", 1e20)),
    ]


@pytest.fixture
def results(tmp_path: Path, cells: list[Cell]) -> Results:
    opened = Results(tmp_path / "results")
    opened.prepare()
    for cell in cells:
        train_cells(
            {
                "cells": [cell.to_dict()],
                "study": "digits",
                "results": opened.url,
                "threads": 1,
                "code_version": "test",
            }
        )
    return opened


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    level = logging.getLogger("mlflow").level
    yield
    logging.getLogger("mlflow").setLevel(level)


def track(results: Results, cells: list[Cell], files: tuple[Path, ...] = ()) -> str:
    tracker = open_tracker(results, "digits", None, heatmap_figure)
    assert isinstance(tracker, MLflowTracker)
    tracker.log_cells([cell.id for cell in cells])
    tracker.finish({"digits/m4/soft/saif": 0.5}, files)
    return tracker.ui_command.split()[-1]


def runs(uri: str) -> tuple[MlflowClient, list[mlflow.entities.Run], mlflow.entities.Run]:
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("digits")
    found = client.search_runs([experiment.experiment_id])
    (parent,) = (run for run in found if run.data.tags.get("role") == "study")
    return client, [run for run in found if run.info.run_id != parent.info.run_id], parent


def test_a_run_holds_what_the_results_hold(results: Results, cells: list[Cell]) -> None:
    client, children, parent = runs(track(results, cells))
    assert len(children) == len(cells)
    evaluations = results.evaluations()
    for run, cell in zip(
        sorted(children, key=lambda r: r.data.tags["cell_id"]),
        sorted(cells, key=lambda c: c.id),
        strict=True,
    ):
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert run.info.status == "FINISHED"
        params, tags = run.data.params, run.data.tags
        assert float(params["lr"]) == float(tags["lr"]) == cell.lr
        assert params["paradigm"] == tags["paradigm"] == cell.paradigm
        assert (int(tags["seed"]), int(tags["m"])) == (cell.seed, cell.m)
        assert tags.get("switch_point") == (
            f"{cell.switch_point:g}" if cell.switch_point else None
        )
        mine = evaluations[evaluations["cell_id"] == cell.id]
        for split in ("train", "validation", "test"):
            rows = mine[mine["split"] == split].sort_values("step")
            for metric in METRICS:
                history = client.get_metric_history(run.info.run_id, f"{split}/{metric}")
                history.sort(key=lambda entry: entry.step)
                np.testing.assert_allclose([entry.value for entry in history], rows[metric])
                assert [entry.step for entry in history] == [
                    flops // METRIC_STEP_FLOPS for flops in rows["compute_flops"]
                ]
        artifacts = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert artifacts == {"heatmap.png", "cell.json"}
    assert {run.data.tags["status"] for run in children} == {"done", "diverged"}


def test_the_parent_run_holds_summary_and_report(
    results: Results, cells: list[Cell], tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    report.write_text("<html></html>")
    client, _, parent = runs(track(results, cells, (report,)))
    assert parent.data.metrics == {"digits/m4/soft/saif": 0.5}
    assert parent.info.status == "FINISHED"
    assert [f.path for f in client.list_artifacts(parent.info.run_id)] == ["report.html"]


def test_logging_again_doubles_nothing(results: Results, cells: list[Cell]) -> None:
    track(results, cells[:1])
    uri = track(results, cells)
    client, children, parent = runs(track(results, cells))
    assert sorted(run.data.tags["cell_id"] for run in children) == sorted(c.id for c in cells)
    # A run whose driver was killed while it was logged is made again.
    client.update_run(children[0].info.run_id, status="RUNNING")
    track(results, cells)
    _, again, same_parent = runs(uri)
    assert sorted(run.data.tags["cell_id"] for run in again) == sorted(c.id for c in cells)
    assert children[0].info.run_id not in {run.info.run_id for run in again}
    assert same_parent.info.run_id == parent.info.run_id


def test_a_cell_that_cannot_be_logged_stops_nothing(
    results: Results, cells: list[Cell], capsys: pytest.CaptureFixture[str]
) -> None:
    tracker = open_tracker(results, "digits", None, heatmap_figure)
    tracker.log_cells(["no such cell", cells[0].id])
    tracker.finish({}, [])
    assert "MLflow lacks 1 run" in capsys.readouterr().err
    _, children, _ = runs(tracker.ui_command.split()[-1])
    assert [run.data.tags["cell_id"] for run in children] == [cells[0].id]


def test_a_store_that_cannot_be_opened_is_named(results: Results, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="--tracking"):
        open_tracker(results, "digits", "nonsense://store", heatmap_figure)


def test_tracking_can_be_left_out(results: Results, tmp_path: Path) -> None:
    tracker = open_tracker(results, "digits", "none", heatmap_figure)
    assert isinstance(tracker, NullTracker)
    assert tracker.ui_command is None
    assert not (tmp_path / "results" / "mlflow.db").exists()
