"""The command as a user types it, end to end."""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import analysis
from study import run
from study.drive.launcher import Trained
from study.plan.plan import Plan
from study.plan.planning import planned
from study.results import Results
from study.results.merging import compact
from study.terminal.command import DONE, UNUSABLE
from study.tracking.tracker import Tracker
from tests.conftest import PROJECT, log_levels_kept, not_drawn, trials_here
from tests.made_up.commands import answer, called, one_line
from tests.made_up.tracking import client_of, runs_of

pytestmark = pytest.mark.usefixtures("no_pictures")

main = functools.partial(called, run.main)
Capsys = pytest.CaptureFixture[str]

SIZES = "batch_size=10 train_metrics_size=20 validation_size=20 test_size=20"
TINY = f"n=100 m=3 epochs=2 lr=0.1 seed=0,1 confirm=none switch_point=0.5 evaluations=2 {SIZES}"


def tiny(results: Path, *options: str, **changes: str) -> list[str]:
    """A study of seconds; changes of its axes, and options beside them."""
    axes = dict(each.split("=") for each in TINY.split()) | changes
    assignments = [f"{name}={values}" for name, values in axes.items()]
    return ["digits", "--results", str(results), *options, "--set", *assignments]


def untracked(capsys: Capsys, results: Path, *options: str, **changes: str) -> tuple[str, str]:
    """What such a study prints, and what it says of errors, without MLflow."""
    words = tiny(results, "--tracking", "none", *options, **changes)
    status, printed, errors = main(capsys, *words)
    assert status == DONE, errors
    return printed, errors


def files(results: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in results.glob("cells/*")}


@pytest.fixture(scope="module", autouse=True)
def short_timing() -> Iterator[None]:
    """Every command times its kinds of cells; of networks so small, for longer than it trains."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("study.plan.estimate.MOST_STEPS", 3)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One study: its results directory, what it printed."""
    results = tmp_path_factory.mktemp("study") / "results"
    with log_levels_kept(), not_drawn(), trials_here():
        status, said = answer(run.main, tiny(results))
    assert status == DONE
    return results, said


def test_what_is_printed_results_mlflow_and_report_agree(finished):
    results, printed = finished
    report = f"report: file://{results}/report/digits/report.html"  # first: it is there already
    ui = f"runs:   uv run mlflow ui --backend-store-uri sqlite:///{results}/mlflow.db"
    assert f"\n{report}\n{ui}\nview:   " in printed
    at_budget = analysis.equal_compute(analysis.load(results))
    test = at_budget[at_budget["split"] == "test"].set_index("cell_id")
    assert len(test) == 8
    cells, summaries, (whole,) = runs_of(client_of(Results(results))).values()
    of_cells = {run.data.tags["cell_id"]: run.data.metrics["test/accuracy"] for run in cells}
    of_paradigms = {run.data.tags["key"]: run.data.metrics["accuracy"] for run in summaries}
    assert len(of_paradigms) == 4
    assert whole.data.metrics["cells done"] == 8
    assert of_cells == pytest.approx(test["accuracy"].to_dict())
    page = (results / "report" / "digits" / "report.html").read_text()
    for (comparison, paradigm), rows in test.groupby(["comparison_id", "paradigm"]):
        accuracy = rows["accuracy"].mean()  # one option each: nothing to choose
        assert of_paradigms[f"{comparison}/{paradigm}"] == pytest.approx(accuracy, abs=5e-5)
        assert re.search(rf"^{paradigm} .*{100 * accuracy:.1f} .* to .* 2$", printed, re.M)
        assert f"{100 * accuracy:.1f}" in page


def test_the_same_command_again_runs_nothing_and_a_wider_one_the_rest(finished, capsys):
    results, first = finished
    before = files(results)
    status, printed, _ = main(capsys, *tiny(results))
    assert status == DONE
    assert "8 cells: 8 done already, 0 to run" in printed
    assert first[first.index("digits m=3: ") : first.index("preset quick:", 200)] in printed
    assert files(results) == before
    _, printed, _ = main(capsys, *tiny(results, "--plan", seed="0-2"))
    assert "12 cells: 8 done already, 4 to run" in printed


@pytest.mark.usefixtures("without_ray")
def test_commands_of_one_study_make_one_report(finished, tmp_path, capsys, monkeypatch):
    """One adds a paradigm; another one m, which is told apart from what is there."""
    shutil.copytree(finished[0] / "cells", tmp_path / "cells")
    answers: list[Any] = []
    monkeypatch.setattr(Tracker, "finish", lambda _, answer: answers.append(answer))

    def page() -> str:
        return (tmp_path / "report" / "digits" / "report.md").read_text()

    assert "new: " not in finished[1]
    printed, _ = untracked(capsys, tmp_path, paradigm="hard-sampled")
    for name in ("soft", "hard-sampled"):
        assert re.search(rf"^{name} .* 2$", printed, re.M), printed
        assert f"| {name} " in page()
    assert "\nnew: 2 of the study's 10 cells (hard-sampled 2)\n" in printed
    assert re.search(r"The last command: .*; new: 2 of the study's 10 cells", page())
    assert {"soft", "hard-sampled"} < {run.params["paradigm"] for run in answers[-1].summaries}
    printed, _ = untracked(capsys, tmp_path, paradigm="soft", m="4")
    assert "digits m=4: " in printed
    assert "digits m=3: " not in printed
    assert "new: 2 of the study's 12 cells (soft 2)" in printed
    assert "the report also shows 1 other setting of the study" in printed
    assert {run.params["m"] for run in answers[-1].summaries} == {"3", "4"}
    assert re.findall("m=[34]", page()).count("m=3")


def test_a_command_trains_nothing_that_another_has_recorded_meanwhile(
    finished, tmp_path, monkeypatch
):
    """The other one ends, and its files are merged, while this one still plans."""
    words = tiny(tmp_path, "--tracking", "none")

    def slowly(*args: Any) -> Plan:
        shutil.copytree(finished[0] / "cells", tmp_path / "cells")
        compact(Results(tmp_path))
        return planned(*args)

    def ended(_: object, __: object, trained: Trained) -> int:
        (plan,) = trained.plans
        assert plan.known["done"].tolist() == [True] * 8
        return DONE

    monkeypatch.setattr("study.plan.planning.planned", slowly)
    monkeypatch.setattr("study.drive.closing.close", ended)
    assert run.main(words) == DONE


def test_a_plan_runs_and_downloads_nothing(tmp_path, capsys):
    results = tmp_path / "results"
    status, printed, _ = main(capsys, *tiny(results, "--plan"))
    assert status == DONE
    assert "8 cells: 0 done already, 8 to run" in printed
    assert "estimated time on this machine" in printed
    where = ["--cache-dir", str(tmp_path), "--results", str(results)]
    for study, option in (("cifar100", "--data-dir DIR, or"), ("mscoco", "and --weights FILE")):
        status, line = one_line(run.main, capsys, study, "--plan", *where)
        assert status == UNUSABLE
        assert f"a plan needs the data of {study}, which is not on this machine" in line
        assert option in line
    assert not results.exists()


def test_a_dry_run_tries_every_kind_of_cell_and_records_nothing(tmp_path, capsys):
    results = tmp_path / "results"
    status, printed, _ = main(capsys, *tiny(results, "--dry-run"))
    assert status == DONE
    tried = re.findall(r"dry run: ([\w-]+) at m=3, .*: done", printed)
    assert tried == ["soft", "hard", "lvml", "hybrid"]
    _, printed, _ = main(capsys, *tiny(results, "--dry-run", lr="1e20", paradigm="soft"))
    assert re.search(r"dry run: soft .*: diverged", printed)
    assert not results.exists()


@pytest.mark.usefixtures("without_ray")
def test_what_a_scheduler_stopped_is_censored_and_runs_to_its_end_without_it(tmp_path, capsys):
    """An option with both seeds is chosen; what it stopped is not open as long as it is there."""
    axes = {"lr": "0.5,0.01,0.0001", "evaluations": "5", "paradigm": "soft"}
    asha = ("--scheduler", "asha")
    printed, _ = untracked(capsys, tmp_path, *asha, **axes)
    assert "shared prefixes: none (ASHA may stop them)" in printed
    assert re.search(r"^soft .* 2$", printed, re.M)
    ends = Counter(Results(tmp_path).cells()["status"])
    assert ends.keys() == {"censored", "done"}
    assert ends.total() == 6
    plan, _ = untracked(capsys, tmp_path, *asha, "--plan", **axes)
    assert "6 cells: 6 done already, 0 to run" in plan
    printed, _ = untracked(capsys, tmp_path, **axes)
    assert f"{ends['done']} done already, {ends['censored']} to run" in printed
    assert set(Results(tmp_path).cells()["status"]) == {"done"}


@pytest.mark.usefixtures("without_ray")
def test_what_a_search_finds_is_confirmed_and_a_second_run_goes_on(tmp_path, capsys):
    axes = {"lr": "0.01,0.3", "paradigm": "hard", "confirm": "100,101"}
    search = ["--search", "optuna", "--objective", "saif,accuracy", "--num-samples"]
    printed, errors = untracked(capsys, tmp_path, *search, "2", **axes)
    assert "2 suggestions: 2 done" in printed
    asked = "--search optuna --num-samples 2 --objective accuracy,saif"
    assert asked in (tmp_path / "report" / "digits" / "report.md").read_text()
    assert "\n6/6 cells done | best" in errors
    of_stage = Results(tmp_path).cells().groupby("stage")["seed"].agg(sorted)
    assert of_stage.to_dict() == {"tune": [0, 0, 1, 1], "confirm": [100, 101]}
    kept = files(tmp_path)
    axes |= {"paradigm": "soft,hard"}  # of which only the first lacks suggestions
    plan, _ = untracked(capsys, tmp_path, *search, "2", "--plan", **axes)
    assert "search: 2 suggestions a paradigm, 4 in all, x 2 seeds = 8 cells" in plan
    assert "12 cells: 4 done already, 8 to run" in plan
    assert "the chosen option of 2 groups on 2 fresh seeds, 4 cells" in plan
    printed, errors = untracked(capsys, tmp_path, *search, "2", **axes)
    assert "4 suggestions: 4 done" in printed
    assert "tuning: 4 cells" in errors
    assert files(tmp_path).items() >= kept.items()
    (found,) = analysis.compare(analysis.load(tmp_path))
    assert set(found.chosen["seed"]) == {100, 101}
    assert set(found.chosen["paradigm"]) == {"soft", "hard"}


WORDS = """digits cifar10 --plan --set lr=0.1 m=2 seed=0-3 --preset quick paper --select saif x=1
lr= --results -1 --tracking none"""


@given(st.lists(st.sampled_from(["", *WORDS.split()]), max_size=6))
@settings(max_examples=30)
def test_any_command_line_is_planned_or_refused(tmp_path_factory, words):
    """With --plan: whatever else is typed, no traceback and a known exit status."""
    before = set(os.listdir(PROJECT))
    cache = str(tmp_path_factory.getbasetemp() / "cache")
    status = run.main([*words, "--plan", "--cache-dir", cache, "--set", "epochs=1"])
    assert status in (DONE, UNUSABLE)
    assert set(os.listdir(PROJECT)) == before


def test_a_plan_notes_what_its_device_lacks(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("study.hardware.has_bfloat16", lambda device: False)
    axes = {"precision": "tf32,bfloat16", "paradigm": "soft"}
    _, printed, _ = main(capsys, *tiny(tmp_path, "--gpus-per-trial", "0.5", "--plan", **axes))
    for note in ("trials that share a GPU", "precision=tf32", "this machine lacks bfloat16"):
        assert f"note: {note} " in printed
