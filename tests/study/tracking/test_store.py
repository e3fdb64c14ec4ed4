"""A real MLflow store is brought to what the results hold, whatever happened before."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlflow import MlflowClient
from mlflow.entities import Run as Logged

from study.cell import Cell
from study.results import METRICS, Results
from study.tracking.cells import CURVES, of_cell
from study.tracking.runs import METRIC_STEP_FLOPS, Run
from study.tracking.store import Store
from tests.chapters.texts.text_results import make_text_cell, write_text
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.tracking import (
    SUMMARIES,
    answer,
    assert_holds,
    client_of,
    runs_of,
    start,
    statuses,
    summary,
    track,
    write_cells,
)

Tracked = tuple[Results, list[Cell]]


@pytest.fixture(scope="module")
def in_store(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Tracked:
    """A directory whose store several tests look at, or harm."""
    results = make_results(tmp_path_factory.mktemp("tracked") / "results")
    shutil.copy(empty_database, results.url)
    return results, write_cells(results)


@pytest.fixture
def tracked(in_store: Tracked) -> Tracked:
    """The same, once its store has all runs."""
    track(*in_store)
    return in_store


def test_a_run_holds_curves_and_last_values(tracked):
    results, cells = tracked
    assert_holds(results, cells)
    client = client_of(results)
    for run in runs_of(client)["cell"]:
        cell = next(cell for cell in cells if cell.id == run.data.tags["cell_id"])
        assert float(run.data.params["lr"]) == cell.lr
        evaluations = results.evaluations([cell.id]).sort_values("step")
        for split, rows in evaluations.groupby("split"):
            for metric in METRICS:
                shown = rows if metric in CURVES and split != "train" else rows.tail(1)
                history = client.get_metric_history(run.info.run_id, f"{split}/{metric}")
                history.sort(key=lambda entry: entry.step)
                kept = shown[metric].replace(np.inf, np.finfo(float).max)  # as MLflow keeps it
                np.testing.assert_allclose([entry.value for entry in history], kept)
                assert [entry.step for entry in history] == [
                    flops // METRIC_STEP_FLOPS for flops in shown["compute_flops"]
                ]


def test_what_is_there_is_neither_read_nor_logged_again(tracked, monkeypatch):
    results, cells = tracked
    before = {run.info.run_id for runs in runs_of(client_of(results)).values() for run in runs}
    wanted = statuses(cells, results)
    monkeypatch.setattr(Results, "tables", None)
    monkeypatch.setattr(MlflowClient, "create_run", None)
    Store(results, "digits", None).sync(wanted, answer())
    monkeypatch.undo()
    after = {run.info.run_id for runs in runs_of(client_of(results)).values() for run in runs}
    assert after == before


def test_a_cell_that_went_on_is_logged_anew_and_of_any_cell_there_is_a_run(
    results,
):
    """Of one that diverged before the first evaluation, too, and of posts what only they have."""
    stopped = write(results, make_cell(seed=7), accuracy=0.2, status="censored")
    diverged = write(results, make_cell(), status="diverged", points=())
    of_posts = write_text(results, make_text_cell(), 0.9, 0.5, study="digits")
    cells = [stopped, diverged, of_posts]
    track(results, cells)
    write(results, stopped, accuracy=0.8, status="done")
    track(results, cells)
    found = {run.data.tags["cell_id"]: run.data for run in runs_of(client_of(results))["cell"]}
    assert found.keys() == {cell.id for cell in cells}
    assert found[stopped.id].metrics["test/accuracy"] == 0.8
    assert found[diverged.id].tags["status"] == "diverged"
    assert found[of_posts.id].metrics["test/auprc"] == pytest.approx(0.5 / 3)


def test_a_run_that_cannot_be_made_is_no_reason_to_look_all_others_up(results, cells, monkeypatch):
    def failing(cell: dict[str, Any], *rest: Any) -> Run:
        if cell["cell_id"] == cells[0].id:
            raise ValueError("an odd record")
        return of_cell(cell, *rest)

    monkeypatch.setattr("study.tracking.store.of_cell", failing)
    store, wanted = Store(results, "digits", None), statuses(cells, results)
    with pytest.raises(ValueError, match="an odd record"):
        store.sync(wanted)
    assert [store.holds(*each) for each in wanted.items()].count(False) == 1
    monkeypatch.setattr(MlflowClient, "search_runs", None)
    with pytest.raises(ValueError, match="an odd record"):
        store.sync(wanted)


def killed(client: MlflowClient, found: Mapping[str, list[Logged]]) -> None:
    """Some runs are half logged, and one is gone."""
    for run in (found["cell"][0], found["summary"][0], found["study"][0]):
        client.update_run(run.info.run_id, status="RUNNING")
    client.set_tag(found["study"][0].info.run_id, "state", "")
    client.delete_run(found["cell"][1].info.run_id)


def doubled(client: MlflowClient, found: Mapping[str, list[Logged]]) -> None:
    """By two drivers, or by a server that acts on a request whose answer was lost."""

    def double(run: Logged, later: int) -> Logged:
        tags = {name: text for name, text in run.data.tags.items() if name != "mlflow.runName"}
        made = client.create_run(
            run.info.experiment_id, run.info.start_time + later, tags, run.info.run_name
        )
        client.set_terminated(made.info.run_id)
        return made

    older = double(found["study"][0], -10)
    client.set_tag(found["cell"][0].info.run_id, "mlflow.parentRunId", older.info.run_id)
    for run in (*found["cell"], *found["summary"]):
        double(run, -10_000)


@pytest.mark.parametrize("harm", [killed, doubled])
def test_harm_is_made_good_and_no_run_of_others_is_touched(tracked, harm):
    results, cells = tracked
    client = client_of(results)
    found = runs_of(client)
    experiment = found["study"][0].info.experiment_id
    harm(client, found)
    strange = client.create_run(experiment, tags={"note": "somebody's", "key": "C major"})
    client.set_terminated(strange.info.run_id)
    theirs = client.create_run(experiment, tags={"key": cells[2].id, "results": "another"})
    track(results, cells)
    for other in (strange, theirs):
        assert client.get_run(other.info.run_id).info.lifecycle_stage == "active"
        client.delete_run(other.info.run_id)
    assert_holds(results, cells)


def test_summaries_stand_above_the_study_in_their_order(tracked):
    client = client_of(tracked[0])
    found = runs_of(client)
    assert [run.info.run_name for run in found["summary"]] == [each.name for each in SUMMARIES]
    tags = client.get_experiment_by_name("digits").tags
    assert tags["mlflow.note.content"] == "the answer"
    view = json.loads(tags["mlflow.sharedViewState.answer"])
    assert view["selectedColumns"] == ["metrics.`saif`"]
    assert len(view["compareRunCharts"]) == 2  # bars of SAIF, and its curve


def test_an_answer_that_changes_replaces_what_it_changes(tracked):
    results, cells = tracked
    before = {run.data.tags["key"]: run for run in runs_of(client_of(results))["summary"]}
    later = answer([SUMMARIES[0], summary("soft", 0.6), summary("hybrid", 0.9)])
    track(results, cells, later)
    assert_holds(results, cells, later)
    after = {run.data.tags["key"]: run for run in runs_of(client_of(results))["summary"]}
    kept = {key for key in before if key in after and before[key].info == after[key].info}
    assert kept == {SUMMARIES[0].key}


@pytest.mark.parametrize("leave", [shutil.copytree, shutil.move])
def test_a_directory_that_is_moved_or_copied_has_its_artifacts(
    results,
    cells,
    tmp_path,
    capsys,
    leave,
):
    """MLflow keeps absolute paths."""
    track(results, cells)
    leave(results.url, tmp_path / "else where")
    left = sorted(Path(results.url).rglob("*"))
    moved = Results(tmp_path / "else where")
    track(moved, cells)
    assert "logged anew" in capsys.readouterr().err
    assert_holds(moved, cells)
    for run in runs_of(client_of(moved))["cell"]:
        assert run.info.artifact_uri.startswith((tmp_path / "else where").as_uri())
    assert sorted(Path(results.url).rglob("*")) == left
    track(moved, cells)
    assert capsys.readouterr().err == ""


def test_a_deleted_experiment_comes_back_with_artifacts_where_they_were_kept(results, tmp_path):
    cell = write(results, make_cell())
    client, root = client_of(results), (tmp_path / "own").as_uri()
    experiment = client.create_experiment("digits", artifact_location=root)
    track(results, [cell])
    client.delete_experiment(experiment)
    track(results, [cell])
    assert_holds(results, [cell])
    assert client.get_experiment_by_name("digits").artifact_location == root


def test_two_directories_of_any_names_share_an_experiment(tmp_path, empty_database, monkeypatch):
    """Each takes away its own summaries alone. The names mean something in URLs and shells."""
    monkeypatch.chdir(tmp_path)  # where MLflow puts artifacts
    folder = tmp_path / "w?q=1&x %20 #1 'é'"
    first, second = make_results(folder), make_results(tmp_path / "b")
    shutil.copy(empty_database, folder / "mlflow.db")
    cells = [write(each, make_cell(seed=seed)) for seed, each in enumerate((first, second))]
    uri = shlex.split(track(first, cells[:1]).ui_command or "")[-1]  # as a shell reads it
    client = MlflowClient(tracking_uri=uri)
    assert_holds(first, cells[:1], client=client)
    tracker = start(second, uri)
    tracker.log_cells({cells[1].id: "done"})
    assert tracker.finish(answer([summary("soft", 0.1, comparison="b")])) == 0
    found = runs_of(client)
    counts = [len(found[role]) for role in ("cell", "summary", "study")]
    assert counts == [2, len(SUMMARIES) + 1, 1]
