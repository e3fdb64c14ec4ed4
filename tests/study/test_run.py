"""The command as a user types it, end to end, and every request it cannot carry out."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlflow import MlflowClient

import analysis
from study import run
from study.launch.workplace import Workplace
from study.plan import overhead
from study.plan.plan import THIS_MACHINE, Plan
from study.plan.planning import planned
from study.request import Request
from study.results import Results, merging
from study.results.merging import compact
from study.terminal.command import DONE, UNUSABLE
from study.tracking.runs import Answer
from study.tracking.tracker import Tracker
from tests.conftest import PROJECT, log_levels_kept, not_drawn, trials_here
from tests.made_up.commands import called
from tests.made_up.posts import write_posts

pytestmark = pytest.mark.usefixtures("no_pictures")

main = functools.partial(called, run.main)

TINY = [
    "--set", "n=100", "m=3", "epochs=2", "lr=0.1", "seed=0,1", "confirm=none",
    "switch_point=0.5", "batch_size=10", "evaluations=2", "train_metrics_size=20",
    "validation_size=20", "test_size=20",
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def short_timing() -> Iterator[None]:
    """Every command times its kinds of cells; of networks so small, for longer than it trains."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("study.plan.estimate.MOST_STEPS", 3)
        yield


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """For commands of which the recorded cells are looked at alone."""
    monkeypatch.setattr("study.concluding.closing.report", lambda *_: 0)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One study: its results directory, what it printed."""
    results = tmp_path_factory.mktemp("study") / "results"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), log_levels_kept(), not_drawn(), trials_here():
        assert run.main(["digits", *TINY, "--results", str(results)]) == DONE
    return results, printed.getvalue()


def test_it_prints_the_comparison_the_report_and_how_to_see_the_runs(
    finished: tuple[Path, str],
) -> None:
    results, printed = finished
    for paradigm in ("soft", "hard", "lvml", "hybrid"):
        assert re.search(rf"^{paradigm} .*\d+\.\d .* to .* 2 ", printed, re.M), printed
    report = re.search(r"^report: (.*)$", printed, re.M)[1]
    assert Path(report) == results / "report" / "digits" / "report.html"
    ui = re.search(r"^runs: +(.*)$", printed, re.M)[1]
    assert ui == f"uv run mlflow ui --backend-store-uri sqlite:///{results}/mlflow.db"


def test_results_mlflow_and_report_agree(finished: tuple[Path, str]) -> None:
    results, printed = finished
    evaluations = analysis.load(results)
    assert evaluations["cell_id"].nunique() == 8
    assert set(evaluations["status"]) == {"done"}
    assert evaluations.groupby("cell_id").size().unique().tolist() == [9]

    at_budget = analysis.equal_compute(evaluations)
    assert len(at_budget) == 8 * 3
    assert (at_budget["budget_fraction"] == 1).all()
    assert at_budget["budget_amount"].nunique() == 1
    assert (at_budget["compute_flops"] <= at_budget["budget_amount"]).all()

    client = MlflowClient(tracking_uri=f"sqlite:///{results}/mlflow.db")
    experiment = client.get_experiment_by_name("digits")
    every = client.search_runs([experiment.experiment_id])
    logged = {run.data.tags["key"]: run.data.metrics for run in every}
    assert len(every) == len(logged) == 8 + 4 + 1  # cells, paradigms, the study
    assert logged["study"]["cells done"] == 8
    html = (results / "report" / "digits" / "report.html").read_text()
    test = at_budget[at_budget["split"] == "test"]
    for row in test.to_dict("records"):
        for metric in ("saif", "accuracy"):
            assert logged[row["cell_id"]][f"test/{metric}"] == pytest.approx(row[metric])
    for paradigm, rows in test.groupby("paradigm"):  # one option each: nothing to choose
        accuracy = rows["accuracy"].mean()
        summary = logged[f"{rows['comparison_id'].iloc[0]}/{paradigm}"]
        assert summary["accuracy"] == pytest.approx(accuracy, abs=5e-5)
        assert re.search(rf"^{paradigm} .*{100 * accuracy:.1f}", printed, re.M)
        assert f"{100 * accuracy:.1f}" in html


@pytest.mark.faults
@pytest.mark.usefixtures("ray_instance")
def test_on_ray_the_numbers_are_the_same(
    finished: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And MLflow has a run of each cell, whose trials another process trained."""
    some = ["digits", *TINY, "paradigm=soft,hard", "--results", str(tmp_path)]
    status, _, errors = main(capsys, *some)
    assert status == 0, errors
    one, other = (
        Results(path).evaluations(Results(tmp_path).finished()).drop(columns="train_seconds")
        for path in (finished[0], tmp_path)
    )
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.get_experiment_by_name("digits")
    assert len(client.search_runs([experiment.experiment_id])) == 4 + 2 + 1


def test_the_same_command_again_runs_nothing_and_a_wider_one_the_rest(
    finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    results, first = finished
    files = {path: path.read_bytes() for path in results.rglob("*.parquet")}
    status, printed, _ = main(capsys, "digits", *TINY, "--results", str(results))
    assert status == 0
    assert "8 cells: 8 done already, 0 to run" in printed
    table = first[first.index("digits m=3 (") : first.index("report:")]
    assert table in printed
    assert files == {path: path.read_bytes() for path in results.rglob("*.parquet")}
    wider = [*TINY[:5], "seed=0-2", *TINY[6:]]
    status, printed, _ = main(capsys, "digits", *wider, "--plan", "--results", str(results))
    assert "12 cells: 8 done already, 4 to run" in printed


@pytest.mark.usefixtures("without_ray")
def test_commands_of_one_study_make_one_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second adds a paradigm; the third another m, which is told apart from what is there."""
    answers: list[Answer] = []
    monkeypatch.setattr(Tracker, "finish", lambda _, answer: answers.append(answer))
    page = tmp_path / "report" / "digits" / "report.md"

    def asked(paradigm: str, m: int = 3) -> tuple[str, str]:
        tiny = [text.replace("m=3", f"m={m}") for text in TINY]
        tiny += [f"paradigm={paradigm}", "--tracking", "none", "--results", str(tmp_path)]
        status, printed, errors = main(capsys, "digits", *tiny)
        assert status == 0, errors
        return printed, page.read_text()

    def summarised(name: str) -> set[str]:
        return {run.params[name] for run in answers[-1].summaries}

    printed, _ = asked("soft")
    assert "new: " not in printed
    printed, text = asked("hard")
    for name in ("soft", "hard"):
        assert re.search(rf"^{name} .* 2 ", printed, re.M), printed
        assert f"| {name} |" in text
    assert "verdict is possible" not in printed
    assert "\nnew: 2 of the study's 4 cells (hard 2)\n" in printed
    assert re.search(r"The last command: preset quick: .*; new: 2 of the study's 4 cells", text)
    assert summarised("paradigm") == {"soft", "hard"}

    printed, text = asked("soft", m=4)
    assert "digits m=4 (" in printed
    assert "digits m=3 (" not in printed
    assert "new: 2 of the study's 6 cells (soft 2)" in printed
    assert "the report also shows 1 other setting of the study" in printed
    assert summarised("m") == {"3", "4"}
    assert "m=3" in text
    assert "m=4" in text

    monkeypatch.setenv("COLUMNS", "40")
    printed, _ = asked("soft", m=4)
    wide = [line for line in printed.splitlines() if len(line) > 40 and " " in line.strip()]
    assert [line for line in wide if not line.startswith("report: ")] == []  # a path, to be copied


@pytest.mark.usefixtures("without_ray")
def test_the_next_plan_counts_what_a_study_took_besides_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["digits", *TINY, "paradigm=soft", "--tracking", "none", "--cache-dir", str(tmp_path)]
    _, first, said = main(capsys, *asked, "--results", str(tmp_path / "results"))
    assert "start and report assumed" in first
    assert said.startswith("starting Ray's workers on this machine\n")  # long before a cell runs
    _, planned, _ = main(capsys, *asked, "--plan", "--results", str(tmp_path / "others"))
    assert "start and report as in the last study here" in planned
    measured = overhead.recall(tmp_path, THIS_MACHINE)
    assert measured.start > 0
    assert measured.report > 0


def test_a_command_trains_nothing_that_another_has_recorded_meanwhile(
    finished: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The other one ends, and its files are merged, while this one still plans."""
    results = tmp_path / "results"

    def slowly(*args: Any) -> Plan:
        shutil.copytree(finished[0] / "cells", results / "cells")
        compact(Results(results))
        return planned(*args)

    def ended(_: Request, plan: Plan, *__: Any) -> int:
        assert len(plan.finished) == len(plan.cells) == 8
        assert not plan.to_run
        return DONE

    arguments = ["digits", *TINY, "--tracking", "none", "--results", str(results)]
    monkeypatch.setattr("study.plan.planning.planned", slowly)
    monkeypatch.setattr("study.concluding.closing.close", ended)
    assert run.main(arguments) == DONE
    monkeypatch.setattr("study.plan.planning.planned", lambda *_: compact(Results(results)))
    assert run.main(arguments) == UNUSABLE
    assert "another study is running" in capsys.readouterr().err


def test_plan_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    status, printed, _ = main(capsys, "digits", "--plan", *TINY, "--results", str(results))
    assert status == 0
    assert not results.exists()
    assert "8 cells: 0 done already, 8 to run" in printed
    assert "FLOPs/input" in printed
    assert "estimated time on this machine" in printed


def test_plan_needs_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, printed, _ = main(
        capsys,
        "cifar100",
        "--plan",
        "--cache-dir",
        str(tmp_path),
        "--results",
        str(tmp_path),
        "--set",
        "seed=0",
        "lr=0.1",
    )
    assert status == 0
    assert "data not at hand" in printed


def test_dry_run_tries_every_kind_of_cell_and_records_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, printed, _ = main(
        capsys, "digits", "--dry-run", *TINY, "--results", str(tmp_path / "results")
    )
    assert status == 0
    tried = re.findall(r"dry run: ([\w-]+) at m=3, .*: done", printed)
    assert tried == ["soft", "hard", "lvml", "hybrid"]
    assert not (tmp_path / "results").exists()


def test_dry_run_says_what_diverges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = [text.replace("lr=0.1", "lr=1e20") for text in TINY]
    _, printed, _ = main(
        capsys, "digits", "--dry-run", *settings, "paradigm=soft", "--results", str(tmp_path)
    )
    assert re.search(r"dry run: soft .*: diverged", printed)


def test_a_diverged_cell_is_a_result(
    tmp_path: Path, without_ray: None, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [text.replace("lr=0.1", "lr=0.1,1e20") for text in TINY]
    settings += ["paradigm=soft,hard-sampled", "--tracking", "none", "--results", str(tmp_path)]
    status, printed, told = main(capsys, "digits", *settings)
    assert status == 0, told
    cells = Results(tmp_path).cells()
    assert cells.groupby("lr")["status"].unique().map(list).to_dict() == {
        0.1: ["done"],
        1e20: ["diverged"],
    }
    assert "4 diverged" in told
    assert not (tmp_path / "mlflow.db").exists()
    assert "mlflow ui" not in printed


def test_damaged_files_are_set_aside_and_their_cells_run_again(
    finished: tuple[Path, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    without_ray: None,
    no_report: None,
) -> None:
    results = tmp_path / "results"
    shutil.copytree(finished[0], results)
    before = Results(results).evaluations().drop(columns="train_seconds")
    truncated, foreign = sorted(results.glob("cells/*"))[:2]
    bad = {truncated: truncated.read_bytes()[:-50], foreign: b"a file of something else"}
    for path, data in bad.items():
        path.write_bytes(data)
    _, printed, _ = main(capsys, "digits", *TINY, "--plan", "--results", str(results))
    assert "8 cells: 6 done already, 2 to run" in printed
    assert all(f"cells/{path.name} is damaged" in printed for path in bad)
    arguments = ["digits", *TINY, "--tracking", "none", "--results", str(results)]
    status, printed, errors = main(capsys, *arguments)
    assert status == 0
    assert errors.count("set aside damaged files") == 1
    for path, data in bad.items():
        assert (results / "damaged" / "cells" / path.name).read_bytes() == data
    after = Results(results).evaluations().drop(columns="train_seconds")
    pd.testing.assert_frame_equal(before, after, check_exact=True)


@pytest.mark.usefixtures("without_ray")
def test_learning_dynamics_of_two_tasks(
    results_with_store: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    """Held attention on two data sets: cells, report, MLflow; and the command again."""
    results = Path(results_with_store.url)
    asked = [
        "fixed-focus", "--results", str(results), "--set", "alpha=0.2,1", "paradigm=soft,lvml",
        "seed=0", "n=60", "epochs=2", "evaluations=2", "batch_size=20", "train_metrics_size=20",
        "validation_size=20", "test_size=20",
    ]  # fmt: skip
    status, printed, errors = main(capsys, *asked)
    assert status == 0, errors
    for claim in range(7, 15):
        assert re.search(rf"^C{claim} .*digits m=5.*linear-orthogonal m=20 C=20", printed, re.M)
    assert (results / "report" / "fixed-focus" / "report.html").is_file()
    cells = Results(results).cells()
    assert sorted(cells["alpha"]) == [0.2] * 4 + [1] * 4
    assert set(cells["num_classes"]) == {3, 20}
    assert set(cells["budget_unit"]) == {"mosaics"}
    evaluations = Results(results).evaluations()
    train = evaluations["split"] == "train"
    assert evaluations["incentive"].notna().equals(train)
    client = MlflowClient(tracking_uri=f"sqlite:///{results}/mlflow.db")
    experiment = client.get_experiment_by_name("fixed-focus")
    runs = client.search_runs([experiment.experiment_id], "tags.cell_id != ''")
    logged = {run.data.tags["cell_id"]: run.data for run in runs}
    last = evaluations[train & (evaluations["budget_fraction"] == 1)].set_index("cell_id")
    assert logged.keys() == set(cells["cell_id"])
    for cell_id, data in logged.items():
        assert data.metrics["train/incentive"] == pytest.approx(last["incentive"][cell_id])
        assert data.params["alpha"] in ("0.2", "1")
    status, again, _ = main(capsys, *asked)
    assert (status, "8 cells: 8 done already, 0 to run" in again) == (0, True)


@pytest.mark.usefixtures("without_ray")
def test_posts_in_both_models(
    tmp_path: Path, results_with_store: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    """Plan, cells, forks, report and MLflow of a data set of posts; and the plan afterwards."""
    folder, results = write_posts(tmp_path / "posts"), Path(results_with_store.url)
    asked = [
        "hatexplain", "--data-dir", str(folder), "--results", str(results),
        "--max-concurrent", "1", "--set",
        "paradigm=soft,hybrid", "lr=0.1", "seed=0", "batch_size=10", "epochs=2", "m=10",
        "confirm=none", "evaluations=2", "min_count=1",
    ]  # fmt: skip
    status, printed, errors = main(capsys, *asked)
    assert status == 0, errors
    assert "with a rationale 0.0 % (train)" in printed
    assert "shared prefixes: 2 of the cells" in printed
    cells, evaluations = Results(results).cells(), Results(results).evaluations()
    assert Counter(cells["architecture"]) == {"embedding": 2, "self-attention": 2}
    assert set(cells["n"]) == {60}
    assert set(cells["status"]) == {"done"}
    assert (cells["data_notes"].str.count("vocabulary: ") == 1).all()
    known = evaluations["split"] != "train"
    for name in ("saif", "heatmap", "foreground_attention_mean", "ftpt", "auprc"):
        assert evaluations[name].notna().equals(known), name
    assert (evaluations["foreground_share"] > 0).equals(known)
    assert evaluations[["loss", "accuracy"]].notna().all(axis=None)
    page = (results / "report" / "hatexplain" / "report.md").read_text()
    for architecture in ("embedding", "self-attention"):
        assert re.search(rf"^hatexplain m=10 .*{architecture}", printed, re.M)
        assert architecture in page
    client = MlflowClient(tracking_uri=f"sqlite:///{results}/mlflow.db")
    experiment = client.get_experiment_by_name("hatexplain")
    for logged in client.search_runs([experiment.experiment_id], "tags.cell_id != ''"):
        assert "test/auprc" in logged.data.metrics
        assert "train/saif" not in logged.data.metrics
    _, again, _ = main(capsys, *asked, "--plan")
    assert "4 cells: 4 done already, 0 to run" in again
    status, _, errors = main(capsys, *asked, "n=61")
    assert status == 2
    assert "n must be at most 60, the posts of the train split, or all, got 61" in errors


def test_neither_shared_prefixes_nor_merged_files_change_anything(
    finished: tuple[Path, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    without_ray: None,
    no_report: None,
) -> None:
    """So two runs of a study, of which one shares, are equal bits, but for the times."""
    monkeypatch.setattr(merging, "MOST_SMALL_FILES", 3)  # of 8 cells
    results, first = finished
    assert re.search(r"shared prefixes: 2 of the cells .* saves [\d.e+]+ of", first)
    arguments = ["digits", *TINY, "--tracking", "none", "--results", str(tmp_path)]
    status, printed, _ = main(capsys, *arguments, "--no-share")
    assert status == 0
    assert "shared prefixes: none (as asked)" in printed
    forked, straight = Results(results), Results(tmp_path)
    assert forked.cells()["shared_prefix"].sum() == 2
    assert straight.cells()["shared_prefix"].sum() == 0
    pd.testing.assert_frame_equal(
        forked.evaluations().drop(columns="train_seconds"),
        straight.evaluations().drop(columns="train_seconds"),
        check_exact=True,
    )
    assert np.isfinite(forked.evaluations()["loss"]).all()
    assert [len(opened.storage.names("cells")) for opened in (forked, straight)] == [8, 2 + 2]
    for opened in (forked, straight):
        assert opened.storage.names("checkpoints") == []


def test_another_command_may_merge_what_this_one_has_just_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_ray: None, no_report: None
) -> None:
    """As in an object store, where no lock keeps it away."""

    def merged(self: Workplace, *_: object) -> None:
        merging.merge(self.results, self.results.finished())

    monkeypatch.setattr(Workplace, "merge", merged)
    asked = ["paradigm=soft", "--tracking", "none", "--results", str(tmp_path)]
    assert run.main(["digits", *TINY, *asked]) == DONE
    assert len(Results(tmp_path).cells()) == 2
    assert len(Results(tmp_path).storage.names("cells")) == 1


def test_a_search_is_continued_by_a_second_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], without_ray: None
) -> None:
    tiny = [text for text in TINY if not text.startswith(("lr=", "switch_point="))]
    arguments = [
        "digits", *tiny, "paradigm=soft,hybrid", "lr=0.01,0.3", "switch_point=0.2,0.8",
        "--tracking", "none",
        "--results", str(tmp_path), "--search", "optuna", "--objective", "saif,accuracy",
    ]  # fmt: skip
    status, printed, _ = main(capsys, *arguments, "--num-samples", "2", "--plan")
    assert status == 0
    assert "search: 2 suggestions a paradigm, 4 in all, x 2 seeds = 8 cells" in printed
    assert "hybrid: lr 0.01 to 0.3 (log-uniform), hard_lr same, switch_point 0.2 to 0.8" in printed
    assert not list(tmp_path.iterdir())
    status, printed, errors = main(capsys, *arguments, "--num-samples", "2")
    assert status == 0, errors
    assert "4 suggestions: 4 done" in printed
    assert "Pareto front" in printed
    how = "--search optuna --num-samples 2 --objective accuracy,saif"
    assert how in " ".join(printed.split())
    assert how in (tmp_path / "report" / "digits" / "report.md").read_text()
    kept = {path: path.read_bytes() for path in tmp_path.glob("cells/*")}
    assert len(kept) == 8
    status, printed, errors = main(capsys, *arguments, "--num-samples", "3")
    assert status == 0, errors
    assert "6 suggestions: 6 done" in printed
    assert "12/12 cells done, 0 running, 0 left" in errors
    assert len(list(tmp_path.glob("cells/*"))) == 12
    assert all(path.read_bytes() == data for path, data in kept.items())
    cells = Results(tmp_path).cells()
    assert cells.groupby("schedule")["seed"].apply(sorted).map(list).tolist() == [[0, 1]] * 6


def test_what_a_scheduler_stopped_is_censored_and_runs_to_its_end_without_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], without_ray: None
) -> None:
    tiny = [text for text in TINY if not text.startswith(("lr=", "evaluations="))]
    arguments = [
        "digits", *tiny, "lr=0.5,0.01,0.0001", "evaluations=5", "paradigm=soft",
        "--tracking", "none", "--results", str(tmp_path),
    ]  # fmt: skip
    status, printed, errors = main(capsys, *arguments, "--scheduler", "asha")
    assert status == 0, errors
    assert "shared prefixes: none (ASHA may stop them)" in printed
    first = Results(tmp_path).cells()
    censored = set(first.loc[first["status"] == "censored", "cell_id"])
    assert 1 <= len(censored) < len(first) == 6
    assert re.search(r"^soft .* 2 ", printed, re.M)  # an option with both seeds was chosen
    _, printed, _ = main(capsys, *arguments, "--scheduler", "asha", "--plan")
    assert "6 cells: 6 done already, 0 to run" in printed
    status, printed, _ = main(capsys, *arguments)
    assert status == 0
    assert f"{6 - len(censored)} done already, {len(censored)} to run" in printed
    assert set(Results(tmp_path).cells()["status"]) == {"done"}


STAGES = [text for text in TINY if not text.startswith(("lr=", "confirm=", "evaluations="))]


def stages(results: Path) -> dict[str, dict[tuple[str, str], list[int]]]:
    """Stage -> (paradigm, schedule) -> seeds of its cells, all of which are recorded."""
    cells = Results(results).cells().sort_values("seed")
    assert set(cells.loc[cells["stage"] == "confirm", "status"]) == {"done"}
    by = cells.groupby(["stage", "paradigm", "schedule"])["seed"].apply(list).to_dict()
    return {
        stage: {(paradigm, text): seeds for (s, paradigm, text), seeds in by.items() if s == stage}
        for stage in ("tune", "confirm")
    }


def test_one_command_tunes_and_confirms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], without_ray: None
) -> None:
    """With a scheduler, which stops options and nothing that confirms them."""
    asked = [
        "digits", *STAGES, "lr=0.5,0.01,0.0001", "evaluations=5", "paradigm=soft,hard",
        "confirm=100,101", "--scheduler", "asha", "--results", str(tmp_path),
        "--tracking", "none",
    ]  # fmt: skip
    status, printed, errors = main(capsys, *asked)
    assert status == DONE, errors
    assert "16 cells: 0 done already, 16 to run" in printed
    assert "1. tune: 6 options on 2 seeds, 12 cells" in printed
    assert "2. confirm: the chosen option of 2 groups on 2 fresh seeds, 4 cells" in printed
    assert re.search(r"16/16 cells done, 0 running, 0 left, \d+ censored", errors)
    found = stages(tmp_path)
    assert set(map(tuple, found["tune"].values())) == {(0, 1)}
    assert [name for name, _ in found["confirm"]] == ["hard", "soft"]
    assert list(found["confirm"].values()) == [[100, 101]] * 2
    status, printed, _ = main(capsys, *asked)
    assert "16 cells: 16 done already, 0 to run" in printed
    assert re.search(r"^chosen: soft lr=\S+, hard lr=\S+$", printed, re.M)
    more = [text.replace("100,101", "100-102") for text in asked]
    assert main(capsys, *more)[0] == DONE
    confirming = Results(tmp_path).cells(columns=["stage", "seed", "planned_seeds"])
    confirming = confirming[confirming["stage"] == "confirm"]
    planned = confirming.groupby("seed")["planned_seeds"].agg(set).to_dict()
    assert planned == {100: {2}, 101: {2}, 102: {3}}


def test_what_a_search_finds_is_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], without_ray: None
) -> None:
    asked = [
        "digits", *STAGES, "paradigm=hard", "lr=0.01,0.3", "confirm=100,101", "evaluations=2",
        "--search", "optuna", "--results", str(tmp_path), "--tracking", "none",
    ]  # fmt: skip
    status, printed, errors = main(capsys, *asked, "--num-samples", "2")
    assert status == DONE, errors
    assert "2. confirm: the chosen option of 1 group on 2 fresh seeds, 2 cells" in printed
    assert "6/6 cells done, 0 running, 0 left" in errors
    first = stages(tmp_path)
    assert list(first["tune"].values()) == [[0, 1]] * 2
    assert [first["confirm"][each] for each in first["confirm"].keys() & first["tune"].keys()] == [
        [100, 101]
    ]
    status, printed, errors = main(capsys, *asked, "--num-samples", "3")
    assert status == DONE, errors
    assert "3 suggestions: 3 done" in printed
    (found,) = analysis.compare(analysis.load(tmp_path))
    assert set(found.chosen["seed"]) == {100, 101}


words = st.sampled_from(
    ["digits", "cifar10", "--plan", "--set", "lr=0.1", "m=2", "seed=0-3", "--preset", "quick",
     "paper", "--select", "saif", "x=1", "lr=", "--results", "-1", "", "--tracking", "none"]
)  # fmt: skip


@given(st.lists(words, max_size=6))
@settings(max_examples=30)
def test_any_command_line_is_planned_or_refused(args: list[str]) -> None:
    """With --plan: whatever else is typed, no traceback and a known exit status."""
    before = set(os.listdir(PROJECT))
    status = run.main([*args, "--plan", "--cache-dir", "/nonexistent", "--set", "epochs=1"])
    assert status in (0, 2)
    assert set(os.listdir(PROJECT)) == before


def test_a_plan_notes_what_its_device_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("study.hardware.has_bfloat16", lambda device: False)
    results = tmp_path / "none"
    asked = [
        "digits",
        *TINY,
        "precision=tf32,bfloat16",
        "paradigm=soft",
        "--results",
        str(results),
    ]
    status, printed, _ = main(capsys, *asked, "--gpus-per-trial", "0.5", "--plan")
    assert status == DONE
    assert "note: trials that share a GPU take turns on it, unless CUDA's Multi-" in printed
    assert "note: precision=tf32 multiplies in TensorFloat-32, which only a GPU does" in printed
    assert "note: this machine lacks bfloat16 instructions; float32 is faster there" in printed
    status, _, errors = main(capsys, *asked)
    assert (status, errors.count("\n")) == (UNUSABLE, 1)
    assert "Take float32 or bfloat16." in errors
