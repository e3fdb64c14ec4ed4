"""A real MLflow store: each cell one run, whatever happened before or happens meanwhile."""

from __future__ import annotations

import dataclasses
import functools
import http.server
import math
import random
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from PIL import Image

from study.cell import Cell
from study.errors import RequestError
from study.results import METRICS, Results
from study.tracking.runs import METRIC_STEP_FLOPS
from study.tracking.store import MOST_GROUPS, RunStore, fitting
from study.tracking.tracker import MLflowTracker, NullTracker, open_tracker
from study.tracking.uris import ServerDown, reason
from tests.made_up.comparisons import make_cell, make_results, write

SUMMARY = {"digits/m4/soft/saif": 0.5}


@pytest.fixture(autouse=True)
def _no_word_on_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """That depends on the machine; tests/faults/test_tracking_server.py has a slow server."""
    monkeypatch.setattr("study.tracking.tracker.SILENT_SECONDS", math.inf)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are tried again at once, and given up soon."""
    for name in ("FIRST_PAUSE", "LONGEST_PAUSE", "LAST_PAUSE"):
        monkeypatch.setattr(f"study.tracking.tracker.{name}", 0.01)
    monkeypatch.setattr("study.tracking.tracker.DOWN_SECONDS", 1.0)


@pytest.fixture
def results(results_with_store: Results) -> Results:
    return results_with_store


@pytest.fixture
def cells(results: Results) -> list[Cell]:
    return [
        write(results, make_cell("hybrid", 0.1)),
        write(results, make_cell("lvml", 1e20), status="diverged", loss=float("inf")),
        write(results, make_cell("soft", seed=3), accuracy=0.7),
    ]


@dataclasses.dataclass(frozen=True)
class Summary:
    """A group as `analysis.section.summary` gives it, with chosen numbers."""

    paradigm: str = "soft"
    saif: float = 0.5
    comparison_id: str = "0123"
    name: str = "digits m=10"
    note: str = "| a table |"
    broken: bool = False

    @property
    def key(self) -> str:
        return f"{self.comparison_id}/{self.paradigm}"

    @property
    def digest(self) -> str:
        return str(self.saif)

    @property
    def params(self) -> dict[str, str]:
        return {"paradigm": self.paradigm}

    @property
    def metrics(self) -> dict[str, float]:
        return {"saif": self.saif, "n_seeds": 6.0}

    @property
    def curves(self) -> dict[str, list[tuple[float, float]]]:
        return {"test/saif": [(0.0, 0.1), (2.5 * METRIC_STEP_FLOPS, self.saif)]}

    def files(self) -> dict[str, bytes]:
        if self.broken:
            raise ValueError("it cannot be drawn")
        return {"figures/a.png": b"png", "tables/b.csv": f"saif\n{self.saif}\n".encode()}


GROUPS = (Summary("hard", 0.25), Summary("soft", 0.5), Summary("lvml", 0.75))


def ids(cells: list[Cell]) -> list[str]:
    return sorted(cell.id for cell in cells)


def start(results: Results, uri: str | None = None) -> MLflowTracker:
    tracker = open_tracker(results, "digits", uri)
    assert isinstance(tracker, MLflowTracker)
    return tracker


def track(
    results: Results,
    cells: list[Cell],
    files: tuple[Path, ...] = (),
    groups: Sequence[Summary] = (),
) -> str:
    tracker = start(results)
    tracker.log_cells([cell.id for cell in cells])
    tracker.finish(SUMMARY, files, groups)
    return tracker.ui_command.split()[-1]


def client_of(results: Results) -> MlflowClient:
    return MlflowClient(tracking_uri=f"sqlite:///{results.url}/mlflow.db")


def runs(results: Results) -> tuple[MlflowClient, list[Run], Run]:
    """A client, the runs of cells and the only parent run."""
    client = client_of(results)
    return client, *runs_of(client)


def runs_of(client: MlflowClient, study: str = "digits") -> tuple[list[Run], Run]:
    experiment = client.get_experiment_by_name(study)
    found = client.search_runs([experiment.experiment_id])
    (parent,) = (run for run in found if run.data.tags.get("role") == "study")
    return [run for run in found if "cell_id" in run.data.tags], parent


def assert_exactly_once(
    results: Results,
    cells: list[Cell],
    client: MlflowClient | None = None,
    study: str = "digits",
    summary: Mapping[str, float] = SUMMARY,
) -> None:
    """One finished run a cell, below one finished parent, with all that the results hold."""
    client = client or client_of(results)
    children, parent = runs_of(client, study)
    assert sorted(run.data.tags["cell_id"] for run in children) == ids(cells)
    evaluations = results.evaluations(ids(cells))
    for run in children:
        cell_id = run.data.tags["cell_id"]
        assert run.info.status == "FINISHED"
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert run.data.params["paradigm"] == run.data.tags["paradigm"]
        mine = evaluations[evaluations["cell_id"] == cell_id]
        accuracy = mine.loc[mine["split"] == "test", "accuracy"]
        history = client.get_metric_history(run.info.run_id, "test/accuracy")
        assert sorted(entry.value for entry in history) == sorted(accuracy)
        artifacts = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert artifacts == {"heatmap.png", "cell.json"}
    assert parent.info.status == "FINISHED"
    assert parent.data.metrics == summary


def summaries(results: Results) -> list[Run]:
    client = client_of(results)
    experiment = client.get_experiment_by_name("digits").experiment_id
    found = client.search_runs([experiment], order_by=["attributes.start_time DESC"])
    return [run for run in found if run.data.tags.get("role") == "summary"]


def assert_groups_exactly_once(results: Results, groups: Sequence[Summary]) -> None:
    """One finished run a group, below none, with all that the group holds."""
    client, found = client_of(results), summaries(results)
    assert sorted(run.data.tags["group"] for run in found) == sorted(g.key for g in groups)
    by_key = {group.key: group for group in groups}
    for run in found:
        group, run_id = by_key[run.data.tags["group"]], run.info.run_id
        assert run.info.status == "FINISHED"
        assert "mlflow.parentRunId" not in run.data.tags
        assert run.data.params == group.params
        assert run.data.metrics == {**group.metrics, "test/saif": group.saif}
        history = client.get_metric_history(run_id, "test/saif")
        assert sorted((m.step, m.value) for m in history) == [(0, 0.1), (2, group.saif)]
        folder = Path(url2pathname(urlsplit(run.info.artifact_uri).path))
        held = {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*.*")}
        assert held == group.files()


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
    read_cells = Results.cells

    def counted(self: Results, cell_ids: Any = None) -> pd.DataFrame:
        read.extend(cell_ids)
        return read_cells(self, cell_ids)

    monkeypatch.setattr(Results, "cells", counted)
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


def test_groups_stand_beside_the_study_in_its_order(results: Results, cells: list[Cell]) -> None:
    track(results, cells, groups=GROUPS)
    assert_exactly_once(results, cells)
    assert_groups_exactly_once(results, GROUPS)
    newest_first = [run.data.params["paradigm"] for run in summaries(results)]
    assert newest_first == [group.paradigm for group in GROUPS]
    notes = {run.data.tags["mlflow.note.content"] for run in summaries(results)}
    assert notes == {GROUPS[0].note}


def test_a_group_is_replaced_when_its_numbers_change(results: Results, cells: list[Cell]) -> None:
    track(results, cells, groups=GROUPS[:2])
    before = {run.data.tags["group"]: run.info.run_id for run in summaries(results)}
    wider = [GROUPS[0], dataclasses.replace(GROUPS[1], saif=0.6), GROUPS[2]]
    track(results, cells, groups=wider)
    assert_groups_exactly_once(results, wider)
    after = {run.data.tags["group"]: run.info.run_id for run in summaries(results)}
    assert {key for key in before if before[key] == after[key]} == {GROUPS[0].key}
    # A command for fewer paradigms does not take away the others.
    track(results, cells, groups=wider[:1])
    assert_groups_exactly_once(results, wider)
    assert {run.info.run_id for run in summaries(results)} == set(after.values())


@pytest.mark.parametrize(
    ("name", "number"),
    [("create_run", 1), ("log_artifacts", 1), ("set_terminated", 2), ("delete_run", 1)],
)
def test_a_lost_request_or_answer_while_groups_are_replaced(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    quick: None,
    name: str,
    number: int,
) -> None:
    track(results, cells, groups=GROUPS)
    others = [dataclasses.replace(group, saif=group.saif / 2) for group in GROUPS]
    failing = Failing(monkeypatch)
    failing.patch(name, {number: "before", number + 1: "after"}.get)
    track(results, cells, groups=others)
    assert failing.failures == 2
    assert_exactly_once(results, cells)
    assert_groups_exactly_once(results, others)


def test_an_end_that_was_killed_is_made_good(results: Results, cells: list[Cell]) -> None:
    """One group is half logged, one not at all, and the study's run is not finished."""
    track(results, cells, groups=GROUPS)
    client = client_of(results)
    by_key = {run.data.tags["group"]: run.info.run_id for run in summaries(results)}
    client.update_run(by_key[GROUPS[0].key], status="RUNNING")
    client.delete_run(by_key[GROUPS[1].key])
    store = RunStore(results, "digits", None)
    store.look_up()
    assert store.is_complete(SUMMARY, GROUPS[2:])
    assert not store.is_complete(SUMMARY, GROUPS[:1])
    assert not store.is_complete(SUMMARY, GROUPS[1:])
    assert [store.holds(group.key) for group in GROUPS] == [False, False, True]
    track(results, cells, groups=GROUPS)
    assert_exactly_once(results, cells)
    assert_groups_exactly_once(results, GROUPS)
    store = RunStore(results, "digits", None)
    store.look_up()
    assert store.is_complete(SUMMARY, GROUPS)
    assert all(error is None for _, error in store.log_groups(GROUPS))
    assert store.is_complete(SUMMARY, GROUPS)  # nothing was to be logged
    changed = dataclasses.replace(GROUPS[0], saif=0.1)
    assert [error for _, error in store.log_groups([changed])] == [None]
    assert not store.is_complete(SUMMARY, GROUPS)  # killed here, the others would be outdated


def test_a_group_that_cannot_be_drawn_stops_nothing(
    results: Results, cells: list[Cell], quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    track(results, cells, groups=GROUPS)
    broken = dataclasses.replace(GROUPS[1], saif=0.9, broken=True)
    capsys.readouterr()
    track(results, cells, groups=[dataclasses.replace(GROUPS[0], saif=0.3), broken, GROUPS[2]])
    errors = capsys.readouterr().err
    assert "MLflow lacks 1 of 7 runs (it cannot be drawn)" in errors
    assert errors.count("\n") == 1
    assert_exactly_once(results, cells)
    assert_groups_exactly_once(
        results, [dataclasses.replace(GROUPS[0], saif=0.3), GROUPS[1], GROUPS[2]]
    )


def test_runs_at_the_top_stay_few(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whole comparisons, the first ones first; those of earlier commands make room."""
    assert MOST_GROUPS + 1 < 100
    monkeypatch.setattr("study.tracking.store.MOST_GROUPS", 5)
    first, second, third = (
        [dataclasses.replace(group, comparison_id=str(number)) for group in GROUPS]
        for number in range(3)
    )
    assert fitting([*first, *second[:2]]) == [*first, *second[:2]]
    assert fitting([*first, *second]) == first
    track(results, cells, groups=[*first, *second, *third])
    note = capsys.readouterr().err
    assert note.count("\n") == 1
    assert "the first 3 summaries and leaves out 6" in note
    assert_groups_exactly_once(results, first)
    assert_exactly_once(results, cells)
    track(results, cells, groups=third)
    kept = [group for group in first if group.paradigm != "lvml"]  # the oldest: it was last
    assert_groups_exactly_once(results, [*kept, *third])
    assert capsys.readouterr().err == ""


def test_other_peoples_runs_are_left_alone(results: Results, cells: list[Cell]) -> None:
    track(results, cells)
    client, _, parent = runs(results)
    mine = client.create_run(parent.info.experiment_id, tags={"note": "still running"})
    track(results, cells)
    assert client.get_run(mine.info.run_id).info.lifecycle_stage == "active"


class Failing:
    """Makes a method of MLflow's client raise, before or after it did what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.calls = 0
        self.failures = 0

    def patch(self, name: str, fails: Callable[[int], str | None]) -> None:
        """`fails` is asked for each call, by its number from 1: "before", "after" or None."""
        original = getattr(MlflowClient, name)

        @functools.wraps(original)
        def call(client: MlflowClient, *args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            when = fails(self.calls)
            self.failures += when is not None
            if when == "before":
                raise ConnectionError("the request was lost")
            answer = original(client, *args, **kwargs)
            if when == "after":
                raise ConnectionError("the answer was lost")
            return answer

        self._patch.setattr(MlflowClient, name, call)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("create_run", 1),  # the parent
        ("create_run", 2),
        ("log_batch", 1),
        ("log_artifacts", 1),
        ("set_terminated", 1),
        ("set_terminated", 4),  # the parent
        ("search_runs", 1),
    ],
)
def test_a_lost_request_and_a_lost_answer_double_nothing(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    quick: None,
    capsys: pytest.CaptureFixture[str],
    name: str,
    number: int,
) -> None:
    when = {number: "before", number + 1: "after"}
    failing = Failing(monkeypatch)
    failing.patch(name, when.get)
    tracker = start(results)
    tracker.log_cells(ids(cells))
    tracker.wait(30, 10)
    _, children, _ = runs(results)  # as they are before the study's end, which tidies, too
    assert sorted(run.data.tags["cell_id"] for run in children) == ids(cells)
    tracker.finish(SUMMARY, [])
    assert failing.failures == 2
    assert_exactly_once(results, cells)
    assert "MLflow lacks" not in capsys.readouterr().err


def test_a_lost_answer_about_the_experiment(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(monkeypatch)
    failing.patch("create_experiment", lambda call: "after")
    track(results, cells)
    assert failing.failures == 1
    assert_exactly_once(results, cells)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_calls_may_fail(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    quick: None,
    seed: int,
) -> None:
    """One call in four is lost, on the way there or on the way back."""
    monkeypatch.setattr("study.tracking.tracker.DOWN_SECONDS", 30.0)
    draw = random.Random(seed)
    failing = Failing(monkeypatch)
    tracker = start(results)
    for name in (
        "create_run", "delete_run", "log_artifacts", "log_batch", "search_runs", "set_tag",
        "set_terminated", "update_run", "get_experiment_by_name",
    ):  # fmt: skip
        failing.patch(
            name, lambda _: draw.choice(["before", "after"]) if draw.random() < 0.25 else None
        )
    tracker.log_cells(ids(cells))
    tracker.finish(SUMMARY, [], GROUPS)
    assert tracker.missing == 0
    assert failing.failures >= 3
    monkeypatch.undo()
    assert_exactly_once(results, cells)
    assert_groups_exactly_once(results, GROUPS)


def test_a_store_that_lost_runs_gets_them_again(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    """A server may come back with an older database."""
    tracker = start(results)
    tracker.log_cells(ids(cells[:2]))
    tracker.wait(30, 10)
    client, children, _ = runs(results)
    assert len(children) == 2
    client.delete_run(children[0].info.run_id)
    failing = Failing(monkeypatch)  # of the one cell that is still to be logged
    failing.patch("create_run", lambda call: "before" if call == 1 else None)
    failing.patch("search_runs", lambda call: "before" if call == 2 else None)
    tracker.log_cells(ids(cells[2:]))
    tracker.finish(SUMMARY, [])
    assert failing.failures == 2
    assert_exactly_once(results, cells)


def test_a_cell_that_cannot_be_logged_stops_nothing(
    results: Results, cells: list[Cell], quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    tracker = start(results)
    tracker.log_cells(["no such cell", *ids(cells)])
    tracker.finish(SUMMARY, [])
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "MLflow lacks 1 of 5 runs" in errors
    assert errors.endswith(f": uv run python -m study.track {results.url}\n")
    assert_exactly_once(results, cells)


def test_a_store_that_is_opened_late_gets_all(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    connect, tries = RunStore._connect, []

    def late(store: RunStore) -> None:
        tries.append(store)
        if len(tries) < 5:
            raise ConnectionError("not yet")
        connect(store)

    monkeypatch.setattr(RunStore, "_connect", late)
    tracker = MLflowTracker(RunStore(results, "digits", None))
    tracker.log_cells(ids(cells))
    tracker.wait(30, 10)
    tracker.finish(SUMMARY, [])
    assert len(tries) == 5
    assert_exactly_once(results, cells)


def test_pauses_grow_up_to_a_limit(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def rest(tracker: MLflowTracker, seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 8:
            tracker._stopped = True

    def refuse(store: RunStore) -> None:
        raise ConnectionError("down")

    monkeypatch.setattr(MLflowTracker, "_rest", rest)
    monkeypatch.setattr(RunStore, "_connect", refuse)
    tracker = MLflowTracker(RunStore(results, "digits", None))
    tracker.log_cells(ids(cells))
    tracker._thread.join(10)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_finish_ends_a_long_pause(
    results: Results, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.tracking.tracker.FIRST_PAUSE", 100.0)
    monkeypatch.setattr("study.tracking.tracker.LONGEST_PAUSE", 100.0)
    failing = Failing(monkeypatch)
    failing.patch("create_run", lambda call: "before" if call == 1 else None)
    tracker = start(results)
    tracker.log_cells(ids(cells))
    deadline = time.monotonic() + 30
    while not failing.failures and time.monotonic() < deadline:
        time.sleep(0.05)
    tracker.finish(SUMMARY, [])
    assert_exactly_once(results, cells)


DOWN = "http://me:very-secret@127.0.0.1:1"


def test_a_server_that_is_down_is_warned_of_and_given_up(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("study.tracking.tracker.DOWN_SECONDS", 0.5)
    tracker = start(results, DOWN)
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1
    assert warning.startswith("warning: the MLflow server http://me:***@127.0.0.1:1 does not")
    assert "Connection refused" in warning
    assert "--tracking" in warning
    assert f"study.track {results.url} --tracking" in warning
    started = time.monotonic()
    for _ in range(1000):
        tracker.log_cells(ids(cells))
    assert time.monotonic() - started < 1
    started = time.monotonic()
    tracker.finish(SUMMARY, [])
    assert 0.5 <= time.monotonic() - started < 4.5
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "MLflow lacks 4 of 4 runs" in captured.err
    assert f"study.track {results.url} --tracking 'http://me:***@127.0.0.1:1'" in captured.err
    assert "secret" not in warning + captured.err + captured.out + str(tracker.ui_command)
    assert not (Path(results.url) / "mlflow-artifacts").exists()


def test_the_printed_command_names_the_store_that_was_asked_for(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = f"uv run python -m study.track {results.url}"
    assert RunStore(results, "digits", None).rebuild_command == plain
    asked = RunStore(results, "digits", "http://host:5000")
    assert asked.rebuild_command == f"{plain} --tracking http://host:5000"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", DOWN)  # which the command reads, too
    assert RunStore(results, "digits", None).rebuild_command == plain


def test_ctrl_c_ends_the_wait(
    results: Results, cells: list[Cell], capsys: pytest.CaptureFixture[str]
) -> None:
    tracker = start(results, DOWN)
    tracker.log_cells(ids(cells))
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.6, signal.pthread_kill, (main, signal.SIGINT))
    started = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        tracker.finish(SUMMARY, [])
    assert time.monotonic() - started < 3
    tracker._thread.join(10)
    assert not tracker._thread.is_alive()


def test_a_store_that_cannot_work_is_named(results: Results, tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("this is not a database " * 100)
    started = time.monotonic()
    for uri, why in [
        ("nonsense://store", "nonsense"),
        ("sqlite:////proc/x.db", "x.db"),
        (f"sqlite:///{text}", "not a database"),
        ("http://", "names no host"),
        ("http://host:99999", "99999|range"),
    ]:
        with pytest.raises(RequestError, match=why) as refused:
            open_tracker(results, "digits", uri)
        assert not isinstance(refused.value, ServerDown)
        assert "--tracking" in str(refused.value)
        assert "\n" not in str(refused.value)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(("status", "passes"), [(401, False), (403, False), (503, True)])
def test_a_server_that_refuses_is_not_one_that_is_down(
    results: Results, status: int, passes: bool
) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"no")

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        store = RunStore(results, "digits", f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(RequestError) as refused:
            store.connect()
        server.shutdown()
    assert isinstance(refused.value, ServerDown) == passes


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("http://u:p@h:5000/x", "http://u:***@h:5000/x"),
        ("API request to http://u:p@h/api failed", "API request to http://u:***@h/api failed"),
        ("postgresql://u:p/w@h/db", "postgresql://u:***@h/db"),
        ("http://u:p@ss@h", "http://u:***@h"),
        ("http://:p@h", "http://:***@h"),
        ("http://h:5000", "http://h:5000"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
    ],
)
def test_passwords_are_hidden(text: str, hidden: str) -> None:
    assert reason(ValueError(text)) == hidden


def test_tracking_can_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = make_results(tmp_path / "results")
    tracker = open_tracker(results, "digits", "none")
    assert isinstance(tracker, NullTracker)
    assert tracker.ui_command is None
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "none")
    assert isinstance(open_tracker(results, "digits", None), NullTracker)
    assert not (tmp_path / "results" / "mlflow.db").exists()
