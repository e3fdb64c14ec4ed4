"""The command that logs what MLflow lacks, as a user types it."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from study import track
from study.results import Results
from tests.made_up.commands import called
from tests.made_up.comparisons import make_cell, write
from tests.made_up.tracking import Failing, client_of, files, runs_of

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


def test_every_study_is_logged_once(results, capsys):
    status, printed, errors = main(capsys, results.url)
    assert (status, errors) == (0, "")
    assert "digits: 4 cells: 0 were there, 4 logged\n" in printed
    assert "other: 2 cells: 0 were there, 2 logged\n" in printed
    ui = f"runs:   uv run mlflow ui --backend-store-uri sqlite:///{results.url}/mlflow.db\n"
    view = "view:   http://127.0.0.1:5000/#/experiments/1/runs?viewStateShareKey=answer"
    assert f"{ui}{view}&compareRunsMode=CHART\n" in printed
    client = client_of(results)
    found = runs_of(client, "digits")
    (parent,) = found["study"]
    assert files(client, parent) == {"report.html"}
    lvml, soft = sorted(found["summary"], key=lambda run: run.data.params["paradigm"])
    assert [run.data.metrics["saif"] for run in (soft, lvml)] == pytest.approx([0.25, 0.65])
    assert {"heatmap.svg", "tables"} <= files(client, lvml)
    assert len(runs_of(client, "other")["cell"]) == 2
    _, printed, _ = main(capsys, results.url)
    assert "digits: 4 cells: 4 were there, 0 logged\n" in printed


def test_what_cannot_be_logged_is_counted_and_one_study_logged_alone(results, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(track, "PATIENCE", 0.2)
        failing = Failing(patch)
        failing.patch("log_batch", lambda call: "before" if call > 2 else None)
        status, printed, _ = main(capsys, results.url, "--study", "digits")
    assert status == 1
    assert "digits: 4 cells: 0 were there, 2 logged, 2 missing\n" in printed
    assert client_of(results).get_experiment_by_name("other") is None


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--study", "digit"], "Did you mean 'digits'?"),
        (["--tracking", "http://u:secret@127.0.0.1:1"], "does not answer"),
        (["--tracking", "none"], "--tracking URI"),
    ],
)
def test_requests_that_cannot_be_carried_out(args, message, results, capsys):
    status, printed, errors = main(capsys, results.url, *args)
    assert (status, printed) == (2, "")
    assert message in errors
    assert errors.startswith("study.track: ")
    assert errors.count("\n") == 1
    assert "secret" not in errors
    assert client_of(results).get_experiment_by_name("digits") is None
