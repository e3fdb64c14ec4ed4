"""The command `study.run attention-paths`, end to end: repeated, shown in MLflow, on Ray."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from pathlib import Path

import pandas as pd
import pytest
from mlflow import MlflowClient

from study import repeat, run
from study.launch.repetition import compare_evaluations
from study.results import Results
from study.terminal.command import DONE
from tests.conftest import log_levels_kept, not_drawn, trials_here
from tests.made_up.commands import called

pytestmark = pytest.mark.usefixtures("no_pictures")

main = functools.partial(called, run.main)

TINY = [
    "attention-paths", "--set", "variant=noisy", "n=20", "test_size=20", "validation_size=20",
    "width@theory=4,8", "width@slice=4", "draws=8", "warmup=5", "seed=0,1",
]  # fmt: skip
CELLS = 2 * (2 + 2 + 1)  # theory at two widths, the limit with all and with the good path, slice


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One study: its results directory, what it printed."""
    results = tmp_path_factory.mktemp("study") / "results"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), log_levels_kept(), not_drawn(), trials_here():
        assert run.main([*TINY, "--results", str(results)]) == DONE
    return results, printed.getvalue()


def test_it_prints_claims_and_where_to_see_them(finished: tuple[Path, str]) -> None:
    results, printed = finished
    assert len(Results(results).cells()) == CELLS
    for claim in ("P1", "P2", "P3", "P4", "P5", "P6"):
        assert re.search(rf"^{claim} ", printed, re.M)
    assert f"report: file://{results}/report/attention-paths/report.html" in printed


def test_mlflow_has_a_run_a_cell_with_its_order_parameter(finished: tuple[Path, str]) -> None:
    results, _ = finished
    client = MlflowClient(tracking_uri=f"sqlite:///{results}/mlflow.db")
    experiment = client.get_experiment_by_name("attention-paths")
    runs = client.search_runs([experiment.experiment_id])
    of_cells = {each.data.tags["cell_id"]: each for each in runs if "cell_id" in each.data.tags}
    cells = Results(results).cells().set_index("cell_id")
    assert of_cells.keys() == set(cells.index)
    summaries = [each for each in runs if each.data.tags.get("role") == "summary"]
    assert len(summaries) == 4  # none of chains this short, which do not agree
    (cell_id,) = cells.query("method == 'slice' and seed == 0").index
    logged = of_cells[cell_id]
    assert logged.info.run_name == "noisy slice N=4 seed=0"
    assert logged.data.metrics["r_hat"] == cells["r_hat"][cell_id]
    assert logged.data.params["network_width"] == "4"
    files = {each.path for each in client.list_artifacts(logged.info.run_id)}
    assert {"order_parameter.json", "order_parameter.png"} <= files


def test_a_cell_repeats_to_its_numbers(
    finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of sampled cells, too, which draw more."""
    cells = Results(finished[0]).cells()
    cell_id = cells.loc[cells["method"] == "slice", "cell_id"].iloc[0]
    status, printed, errors = called(repeat.main, capsys, str(finished[0]), cell_id)
    assert status == DONE, errors
    assert "3 evaluations, largest difference 0 " in printed
    rows = Results(finished[0]).evaluations([cell_id]).query("split == 'test'")
    other = rows.assign(predictor_mean=rows["predictor_mean"] + 1e-3)
    assert compare_evaluations(rows, other)[0] == pytest.approx(1e-3)


def test_a_cell_that_diverged_is_recorded_shown_and_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """More samples than the good path has features, almost without noise."""
    results = str(tmp_path)
    given = ["method=gp", "paths=good", "variant=noisy", "n=300", "temperature=1e-30", "seed=0"]
    small = ["validation_size=20", "test_size=20"]
    with trials_here():
        status, _, errors = main(
            capsys, "attention-paths", "--set", *given, *small, "--results", results
        )
    assert status == DONE, errors
    (row,) = Results(results).cells().to_dict("records")
    assert row["status"] == "diverged"
    assert "raise the temperature" in row["status_reason"]
    assert Results(results).evaluations().empty
    status, _, errors = called(repeat.main, capsys, results, row["cell_id"])
    assert status == DONE, errors


@pytest.mark.faults
@pytest.mark.usefixtures("ray_instance")
def test_on_ray_the_numbers_are_the_same(
    finished: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, errors = main(capsys, *TINY, "--tracking", "none", "--results", str(tmp_path))
    assert status == DONE, errors
    assert errors.startswith("starting Ray's workers on this machine\n")  # long before a cell runs
    one, other = (
        Results(path).evaluations().drop(columns="train_seconds")
        for path in (finished[0], tmp_path)
    )
    pd.testing.assert_frame_equal(one, other, rtol=1e-9)
