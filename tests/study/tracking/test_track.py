"""The command that logs what MLflow lacks, as a user types it."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from analysis.comparison.compare import compare
from analysis.comparison.report.summaries import summary_metrics
from analysis.reading import load
from study import track
from study.results import Results
from study.tracking.store import RunStore
from tests.made_up import trajectories
from tests.made_up.commands import called
from tests.made_up.comparisons import make_cell, write
from tests.made_up.tracking import Failing

pytestmark = pytest.mark.usefixtures("no_pictures")

main = functools.partial(called, track.main)


@pytest.fixture
def results(results_with_store: Results) -> Results:
    """Two studies, one with a report."""
    made = results_with_store
    for seed in range(2):
        for paradigm, saif in (("soft", 0.2), ("lvml", 0.6)):
            write(made, make_cell(paradigm, seed=seed), saif=saif + seed / 10)
        write(made, make_cell("hard", m=5, seed=seed), study="other")
    report = Path(made.url) / "report" / "digits" / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text("<html></html>")
    return made


def snapshot(results: Results) -> dict[str, Any]:
    """All that MLflow holds: run id -> its data, the times included."""
    client = MlflowClient(tracking_uri=f"sqlite:///{results.url}/mlflow.db")
    histories: dict[tuple[str, str], list[tuple[int, float]]] = {}
    # MLflow gives them one by one, which takes longer than all else here.
    with contextlib.closing(sqlite3.connect(Path(results.url) / "mlflow.db")) as database:
        for run_id, name, *point in database.execute(
            "SELECT run_uuid, key, step, value FROM metrics ORDER BY step, value"
        ):
            histories.setdefault((run_id, name), []).append(tuple(point))
    held = {}
    for experiment in client.search_experiments():
        for run in client.search_runs([experiment.experiment_id]):
            run_id = run.info.run_id
            held[run_id] = {
                "experiment": experiment.name,
                "info": dict(run.info),
                "data": run.data.to_dictionary(),
                "histories": {name: histories[run_id, name] for name in run.data.metrics},
                "artifacts": sorted(file.path for file in client.list_artifacts(run_id)),
            }
    return held


def of_role(held: Mapping[str, Any], role: str) -> list[dict[str, Any]]:
    return [run for run in held.values() if run["data"]["tags"].get("role") == role]


def parents(held: Mapping[str, Any]) -> dict[str, Any]:
    return {run["experiment"]: run for run in of_role(held, "study")}


def groups(held: Mapping[str, Any]) -> dict[str, Any]:
    """Name of the run -> the run of a group."""
    return {run["info"]["run_name"]: run for run in of_role(held, "summary")}


def test_every_study_is_logged_once(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    status, printed, errors = main(capsys, results.url)
    assert (status, errors) == (0, "")
    assert "digits: 4 cells: 0 were there, 4 logged\n" in printed
    assert "other: 2 cells: 0 were there, 2 logged\n" in printed
    ui = f"runs:   uv run mlflow ui --backend-store-uri sqlite:///{results.url}/mlflow.db\n"
    view = "view:   http://127.0.0.1:5000/#/experiments/1/runs?viewStateShareKey=answer\n"
    assert f"{ui}{view}" in printed
    held = snapshot(results)
    cells = results.cells().set_index("cell_id")
    children = {
        run["data"]["tags"]["cell_id"]: run
        for run in held.values()
        if "cell_id" in run["data"]["tags"]
    }
    assert len(held) == len(children) + 2 + 3 == len(cells) + 2 + 3
    for cell_id, run in children.items():
        assert run["experiment"] == cells.loc[cell_id, "study"]
        assert run["artifacts"] == ["cell.json", "heatmap.png"]
    for study, parent in parents(held).items():
        assert parent["info"]["status"] == "FINISHED"
        mine = cells.index[cells["study"] == study]
        summary = summary_metrics(c.summary for c in compare(load(results, mine)))
        assert parent["data"]["metrics"] == pytest.approx(summary)
    assert len(parents(held)["digits"]["data"]["metrics"]) == 2 * 2
    made = {name.split(" (")[0]: run for name, run in groups(held).items()}
    assert {name: run["experiment"] for name, run in made.items()} == {
        "digits m=10 soft": "digits",
        "digits m=10 lvml": "digits",
        "digits m=5 hard": "other",
    }
    assert made["digits m=10 lvml"]["data"]["metrics"]["saif"] == pytest.approx(0.65)
    assert made["digits m=10 lvml"]["data"]["metrics"]["n_seeds"] == 2
    assert made["digits m=10 lvml"]["artifacts"] == ["figures", "tables"]
    assert parents(held)["digits"]["artifacts"] == ["report.html"]
    assert parents(held)["other"]["artifacts"] == []

    again, printed, errors = main(capsys, results.url)
    assert (again, errors) == (0, "")
    assert "digits: 4 cells: 4 were there, 0 logged\n" in printed
    assert snapshot(results) == held


def test_one_study_alone_with_its_progress(
    results: Results, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.terminal.working.LINE_EVERY", 0.01)
    status, printed, errors = main(capsys, results.url, "--study", "other")
    assert status == 0
    assert "logging other to MLflow: " in errors
    assert "digits" not in printed
    assert set(parents(snapshot(results))) == {"other"}


def test_it_ends_what_a_killed_study_began(
    results: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two cells logged, a third in part, the parent running."""
    cell_ids = results.cells().query("study == 'digits'")["cell_id"].tolist()
    store = RunStore(results, "digits", None)
    assert all(error is None for _, error in store.log(dict.fromkeys(cell_ids[:2])))
    done = set(snapshot(results))
    client = MlflowClient(tracking_uri=f"sqlite:///{results.url}/mlflow.db")
    experiment = client.get_experiment_by_name("digits").experiment_id
    partial = client.create_run(experiment, tags={"cell_id": cell_ids[2], "status": "done"})
    status, printed, _ = main(capsys, results.url, "--study", "digits")
    assert status == 0
    assert "digits: 4 cells: 2 were there, 2 logged\n" in printed
    held = snapshot(results)
    assert len(held) == 4 + 2 + 1
    assert done < set(held)
    assert partial.info.run_id not in held
    assert {run["info"]["status"] for run in held.values()} == {"FINISHED"}


def test_a_summary_that_a_study_logged_is_left(
    results: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may have been chosen by SAIF, or over cells of another study, too."""
    main(capsys, results.url, "--study", "other")
    client = MlflowClient(tracking_uri=f"sqlite:///{results.url}/mlflow.db")
    parent = parents(snapshot(results))["other"]
    name = next(iter(parent["data"]["metrics"]))
    client.log_metric(parent["info"]["run_id"], name, 0.123)
    main(capsys, results.url, "--study", "other")
    assert parents(snapshot(results))["other"]["data"]["metrics"][name] == 0.123
    # A run that was missing means that the study did not get to its end.
    child = next(r for r in snapshot(results).values() if "cell_id" in r["data"]["tags"])
    client.delete_run(child["info"]["run_id"])
    main(capsys, results.url, "--study", "other")
    assert parents(snapshot(results))["other"]["data"]["metrics"] == parent["data"]["metrics"]


def test_a_group_that_is_missing_or_has_more_seeds_is_made(
    results: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    main(capsys, results.url, "--study", "digits")
    before = snapshot(results)
    client = MlflowClient(tracking_uri=f"sqlite:///{results.url}/mlflow.db")
    lost, kept = (run["info"]["run_id"] for run in of_role(before, "summary")[:2])
    client.delete_run(lost)
    assert main(capsys, results.url, "--study", "digits")[0] == 0
    after = snapshot(results)
    assert kept in after
    assert lost not in after
    assert {name: run["data"]["metrics"] for name, run in groups(after).items()} == {
        name: run["data"]["metrics"] for name, run in groups(before).items()
    }

    # More seeds change a group.
    for seed in (2, 3):
        write(results, make_cell("soft", seed=seed), saif=0.2)
    assert main(capsys, results.url, "--study", "digits")[0] == 0
    found = {run["data"]["params"]["paradigm"]: run for run in groups(snapshot(results)).values()}
    assert len(found) == 2
    assert found["soft"]["data"]["metrics"]["n_seeds"] == 4
    assert found["soft"]["data"]["metrics"]["saif"] == pytest.approx(0.225)


def test_what_cannot_be_logged_is_counted(
    results: Results,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    as_a_server: None,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("study.concluding.relog.PATIENCE", 0.2)
        patch.setattr("study.tracking.tracker.DOWN_SECONDS", 0.2)
        patch.setattr("study.tracking.tracker.FIRST_PAUSE", 0.1)
        patch.setattr("study.tracking.tracker.LONGEST_PAUSE", 0.1)
        failing = Failing(patch)
        failing.patch("log_batch", lambda call: "before" if call > 2 else None)
        status, printed, errors = main(capsys, results.url, "--study", "digits")
    assert status == 1
    assert "digits: 4 cells: 0 were there, 2 logged, 2 missing\n" in printed
    assert errors.count("\n") == 1
    assert "MLflow lacks 5 of 7 runs (the request was lost)" in errors
    assert f"uv run python -m study.track {results.url}" in errors
    status, printed, _ = main(capsys, results.url, "--study", "digits")
    assert status == 0
    assert "digits: 4 cells: 2 were there, 2 logged\n" in printed


def test_artifacts_that_cannot_be_written_are_named_at_once(
    results: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(results.url) / "mlflow-artifacts"
    folder.write_text("no folder")
    status, printed, errors = main(capsys, results.url, "--study", "digits")
    assert (status, printed) == (2, "")
    assert errors.count("\n") == 1
    assert f"{folder}/digits, which cannot be written (Not a directory)" in errors


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["{results}", "--study", "digit"], "Did you mean 'digits'?"),
        (["{results}", "--tracking", "http://u:secret@127.0.0.1:1"], "does not answer"),
        (["{results}", "--tracking", "nonsense://x"], "MLflow cannot track to nonsense://x"),
        (["{results}", "--tracking", "sqlite:////proc/x.db"], "MLflow cannot track to sqlite"),
        (["{results}", "--tracking", "none"], "--tracking URI"),
    ],
)
def test_requests_that_cannot_be_carried_out(
    args: list[str],
    message: str,
    results: Results,
    capsys: pytest.CaptureFixture[str],
) -> None:
    args = [arg.format(results=results.url) for arg in args]
    status, printed, errors = main(capsys, *args)
    assert (status, printed) == (2, "")
    assert message in errors
    assert errors.startswith("study.track: ")
    assert errors.count("\n") == 1
    assert "secret" not in errors
    assert snapshot(results) == {}


def test_learning_dynamics_are_logged_once(
    results_with_store: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    results = results_with_store
    trajectories.write_study(results, seeds=2)
    assert main(capsys, results.url)[0] == 0
    held = snapshot(results)
    assert len(held) == 6 + 3 + 1
    names = {f"linear-orthogonal m=5, C=3 {name}" for name in ("hard", "soft", "lvml")}
    assert set(groups(held)) == names
    run = groups(held)["linear-orthogonal m=5, C=3 lvml"]
    assert run["data"]["params"]["C15_closed_form"] == "does not hold"
    assert run["data"]["metrics"]["n_seeds"] == 2
    assert run["data"]["metrics"]["test/nu"] == pytest.approx(4.86, rel=0.05)
    assert len(run["histories"]["test/mu"]) == 21
    assert run["artifacts"] == ["figures", "tables"]
    parent = parents(held)["linear-orthogonal"]
    assert parent["data"]["metrics"]["claims/C15/holds"] == 2
    status, printed, _ = main(capsys, results.url)
    assert (status, "6 were there, 0 logged" in printed) == (0, True)
    assert snapshot(results) == held
