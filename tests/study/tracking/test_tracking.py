"""A real MLflow store: each cell one run, whatever happened before or happens meanwhile."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from PIL import Image

from study.cell import Cell
from study.results import METRICS, Results
from study.tracking.database import database_of
from study.tracking.runs import METRIC_STEP_FLOPS
from study.tracking.store import RunStore
from study.tracking.tracker import open_tracker
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.tracking import (
    GROUPS,
    SUMMARY,
    assert_exactly_once,
    assert_groups_exactly_once,
    client_of,
    ids,
    runs,
    start,
    summaries,
    track,
)


def test_a_run_holds_what_the_results_hold(results: Results, cells: list[Cell]) -> None:
    tracker = open_tracker(results, "digits", None)
    tracker.log_cells(ids(cells))
    tracker.finish(SUMMARY, [])
    client, children, parent = runs(results)
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
                values = rows[metric].replace(np.inf, np.finfo(float).max)  # as MLflow keeps it
                np.testing.assert_allclose([entry.value for entry in history], values)
                assert [entry.step for entry in history] == [
                    flops // METRIC_STEP_FLOPS for flops in rows["compute_flops"]
                ]
        artifacts = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert artifacts == {"heatmap.png", "cell.json"}
    assert {run.data.tags["status"] for run in children} == {"done", "diverged"}


def test_a_batch_in_the_database_is_what_the_client_writes(
    results: Results, cells: list[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the row and the byte, but for ids and the time of logging."""
    cells.append(write(results, make_cell(seed=4), loss=float("nan")))
    cells.append(write(results, make_cell(seed=5), status="diverged", points=()))
    held = []
    for of_database in (database_of, lambda client: None):
        monkeypatch.setattr("study.tracking.store.database_of", of_database)
        uri = f"sqlite:///{tmp_path}/{len(held)}.db"
        tracker = start(results, uri)
        tracker.log_cells(ids(cells))
        tracker.wait(30, 10)
        tracker.stop()
        held.append(_rows(tmp_path / f"{len(held)}.db"))
    batch, by_client = held
    assert {table: len(rows) for table, rows in batch.items()}["metrics"] > 100
    assert batch == by_client


def test_the_runs_in_the_database_are_those_that_the_client_finds(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    track(results, cells, groups=GROUPS)
    client, (gone, *_), _ = runs(results)
    client.delete_run(gone.info.run_id)
    client.create_run(gone.info.experiment_id, run_name="somebody else's")
    found = []
    for of_database in (database_of, lambda client: None):
        monkeypatch.setattr("study.tracking.store.database_of", of_database)
        store = RunStore(results, "digits", None)
        store.connect()
        found.append(store._search(""))
    assert found[0] == found[1]
    assert len(found[0]) == len(cells) - 1 + len(GROUPS) + 1


def _rows(database: Path) -> dict[str, list[str]]:
    """Table -> its rows, with names for the ids of runs and without the time of logging."""
    with contextlib.closing(sqlite3.connect(database)) as opened:
        opened.row_factory = sqlite3.Row
        names = dict(opened.execute("SELECT run_uuid, name FROM runs").fetchall())
        found = {}
        for table in ("runs", "tags", "params", "metrics", "latest_metrics"):
            rows = [dict(row) for row in opened.execute(f"SELECT * FROM {table}")]
            for row in rows:
                row.pop("start_time", None)
                assert (row.pop("end_time", 1) is None) == (row.get("name") == "digits")
                row["run_uuid"] = names[row["run_uuid"]]
            found[table] = sorted(map(str, rows))
            for run_id, name in names.items():
                found[table] = [row.replace(run_id, name) for row in found[table]]
        return {table: sorted(rows) for table, rows in found.items()}


def test_cells_are_logged_without_matplotlib(
    results: Results, cells: list[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a tenth of a second a picture, seven tenths of what a cell cost the driver."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    track(results, cells)
    client, children, _ = runs(results)
    folder = Path(client.download_artifacts(children[0].info.run_id, "", str(tmp_path)))
    with Image.open(folder / "heatmap.png") as picture:
        assert picture.width > 2 * picture.height  # a panel a split
    assert "lr" in (folder / "cell.json").read_text()


@pytest.mark.parametrize("leave", [shutil.copytree, shutil.move])
def test_a_directory_that_is_moved_or_copied_keeps_its_artifacts(
    results: Results,
    cells: list[Cell],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    leave: Callable[[str, Path], Any],
) -> None:
    """MLflow keeps absolute paths: they are corrected when the directory is used again."""
    track(results, cells[:2], groups=GROUPS[:1])
    leave(results.url, tmp_path / "else where")
    before = sorted(Path(results.url).rglob("*"))
    moved = Results(tmp_path / "else where")
    track(moved, cells, groups=GROUPS)
    note = capsys.readouterr().err
    assert note.count("\n") == 1
    assert f"the results were in {results.url};" in note
    assert_exactly_once(moved, cells)
    assert_groups_exactly_once(moved, GROUPS)
    for run in (*runs(moved)[1], *summaries(moved)):
        assert run.info.artifact_uri.startswith((tmp_path / "else where").as_uri())
    assert sorted(Path(results.url).rglob("*")) == before
    track(moved, cells, groups=GROUPS)
    assert capsys.readouterr().err == ""


def test_artifacts_that_are_kept_elsewhere_stay_there(
    results: Results, cells: list[Cell], tmp_path: Path
) -> None:
    """Somebody may have made the experiment, or another one in the same database."""
    client = client_of(results)
    roots = {name: (tmp_path / "own" / name).as_uri() for name in ("digits", "notes")}
    for name, root in roots.items():
        client.create_experiment(name, artifact_location=root)
    track(results, cells)
    assert_exactly_once(results, cells)
    for name, root in roots.items():
        assert client.get_experiment_by_name(name).artifact_location == root


def test_a_directory_with_any_name_holds_its_database(
    tmp_path: Path, empty_database: Path
) -> None:
    """Signs that mean something in a URL, or in a shell."""
    folder = tmp_path / "w?q=1&x %20 #1 'é'"
    made = make_results(folder)
    shutil.copy(empty_database, folder / "mlflow.db")
    cell = write(made, make_cell())
    tracker = start(made)
    tracker.log_cells([cell.id])
    tracker.finish(SUMMARY, [])
    uri = shlex.split(tracker.ui_command)[-1]  # as a shell reads it
    assert_exactly_once(made, [cell], MlflowClient(tracking_uri=uri))
    assert list(tmp_path.iterdir()) == [folder]


def test_more_metrics_than_a_call_takes(results: Results) -> None:
    points = tuple(np.linspace(0.01, 1, 60))
    cell = make_cell(evaluation_points=points)
    write(results, cell)
    track(results, [cell])
    client, (run,), _ = runs(results)
    for split in ("train", "test"):
        assert len(client.get_metric_history(run.info.run_id, f"{split}/loss")) == len(points)


def test_a_cell_that_diverged_before_the_first_evaluation(results: Results) -> None:
    cell = write(results, make_cell(), status="diverged", points=())
    track(results, [cell])
    client, (run,), _ = runs(results)
    assert run.data.tags["status"] == "diverged"
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["cell.json"]


def test_the_parent_run_holds_summary_and_report(
    results: Results, cells: list[Cell], tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    report.write_text("<html></html>")
    track(results, cells, (report,))
    client, _, parent = runs(results)
    assert parent.data.metrics == SUMMARY
    assert parent.info.status == "FINISHED"
    assert [f.path for f in client.list_artifacts(parent.info.run_id)] == ["report.html"]
    track(results, cells)
    assert len(client.get_metric_history(parent.info.run_id, next(iter(SUMMARY)))) == 1


def test_logging_again_doubles_nothing(results: Results, cells: list[Cell]) -> None:
    track(results, cells[:1])
    track(results, cells)
    client, children, parent = runs(results)
    assert_exactly_once(results, cells)
    # A run whose driver was killed while it was logged is made again.
    client.update_run(children[0].info.run_id, status="RUNNING")
    track(results, cells)
    assert_exactly_once(results, cells)
    _, again, same_parent = runs(results)
    before, after = ({run.info.run_id for run in found} for found in (children, again))
    assert before - after == {children[0].info.run_id}
    assert same_parent.info.run_id == parent.info.run_id


def test_a_cell_that_went_on_is_logged_anew(results: Results, cells: list[Cell]) -> None:
    cell = write(results, make_cell(seed=7), accuracy=0.2, status="censored")
    track(results, [*cells, cell])
    write(results, cell, accuracy=0.8, status="done")
    track(results, [*cells, cell])
    assert_exactly_once(results, [*cells, cell])
    _, children, _ = runs(results)
    (run,) = (run for run in children if run.data.tags["cell_id"] == cell.id)
    assert run.data.tags["status"] == "done"
    assert run.data.metrics["test/accuracy"] == 0.8


def test_cells_whose_status_is_known_are_read_to_be_logged_only(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study that goes on has thousands of files of cells that are logged."""
    track(results, cells)
    cell = write(results, make_cell(seed=7))
    statuses = dict(zip(*(results.cells()[name] for name in ("cell_id", "status")), strict=True))
    read: list[str] = []
    tables = Results.tables

    def counted(self: Results, cell_ids: Any = None) -> tuple[pa.Table, pa.Table]:
        read.extend(cell_ids)
        return tables(self, cell_ids)

    monkeypatch.setattr(Results, "tables", counted)
    tracker = start(results)
    tracker.log_cells(ids([*cells, cell]), statuses)
    tracker.finish(SUMMARY, [])
    assert read == [cell.id]
    # Without a status, or with another one, MLflow's may be outdated.
    tracker = start(results)
    tracker.log_cells([cells[0].id])
    tracker.log_cells([cells[1].id], {cells[1].id: "done"})
    tracker.finish(SUMMARY, [])
    assert set(read) == {cell.id, cells[0].id, cells[1].id}
    monkeypatch.undo()
    assert_exactly_once(results, [*cells, cell])


def test_what_two_drivers_logged_twice_is_left_once(results: Results, cells: list[Cell]) -> None:
    track(results, cells)
    client, children, parent = runs(results)
    experiment, time_ms = parent.info.experiment_id, parent.info.start_time

    def double(run: Run, parent_id: str | None, later: int) -> Run:
        tags = {k: v for k, v in run.data.tags.items() if not k.startswith("mlflow.")}
        tags |= {"mlflow.parentRunId": parent_id} if parent_id else {}
        made = client.create_run(experiment, time_ms + later, tags, run.info.run_name)
        client.set_terminated(made.info.run_id)
        return made

    second_parent = double(parent, None, +5)
    doubles = [double(run, second_parent.info.run_id, +10_000_000) for run in children]
    # One cell's oldest run is the other driver's: it is kept, below the kept parent.
    oldest = double(children[0], second_parent.info.run_id, -10)
    client.log_metric(oldest.info.run_id, "test/accuracy", 0.5)
    store = RunStore(results, "digits", None)
    store.look_up()
    _, left, same = runs(results)
    assert same.info.run_id == parent.info.run_id
    assert {run.info.run_id for run in left} == {
        oldest.info.run_id, *(run.info.run_id for run in children[1:])
    }  # fmt: skip
    assert {run.data.tags["mlflow.parentRunId"] for run in left} == {parent.info.run_id}
    assert len(doubles) == len(left)


def test_an_older_parent_that_turns_up_at_the_end_gets_all_cells(
    results: Results, cells: list[Cell]
) -> None:
    """MLflow may repeat the request that makes it, and tell of the second one only."""
    store = RunStore(results, "digits", None)
    assert not [error for _, error in store.log(dict.fromkeys(ids(cells))) if error]
    client, children, parent = runs(results)
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    older = client.create_run(
        parent.info.experiment_id,
        parent.info.start_time - 5,
        {key: tag for key, tag in parent.data.tags.items() if not key.startswith("mlflow.")},
        parent.info.run_name,
    )
    store.summarise(SUMMARY, [])
    assert_exactly_once(results, cells)
    assert runs(results)[2].info.run_id == older.info.run_id


def test_two_drivers_at_once(results: Results, cells: list[Cell], quick: None) -> None:
    """They may disturb each other, but the end is the same."""
    trackers = [start(results), start(results)]
    for tracker in trackers:
        tracker.log_cells(ids(cells))
    for tracker in trackers:
        tracker.finish(SUMMARY, [], GROUPS)
    track(results, cells, groups=GROUPS)
    assert_exactly_once(results, cells)
    assert_groups_exactly_once(results, GROUPS)


def test_other_peoples_runs_are_left_alone(results: Results, cells: list[Cell]) -> None:
    track(results, cells)
    client, _, parent = runs(results)
    mine = client.create_run(parent.info.experiment_id, tags={"note": "still running"})
    track(results, cells)
    assert client.get_run(mine.info.run_id).info.lifecycle_stage == "active"
