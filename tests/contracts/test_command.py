"""What every command keeps: help and refusals in a moment, one line for people, Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

from search_spaces import STUDIES
from study import commands
from study.cell.version import code_version
from study.kinds import KINDS
from study.plan.axes import tasks_in
from study.results import Results
from study.tasks import TASKS
from study.terminal.command import INTERRUPTED, UNUSABLE
from tests.conftest import PROJECT
from tests.made_up.chapters import brought
from tests.made_up.commands import Command, called, python, refusal
from tests.made_up.comparisons import make_cell, write

HEAVY = {
    "torch", "pandas", "pyarrow", "ray", "mlflow", "optuna", "scipy", "matplotlib", "rich",
    "torchvision", "PIL", "sklearn", "datasets",
}  # fmt: skip
OF_ANALYSIS = {"pandas", "pyarrow"}
"""The package `analysis` imports them for its face."""

CELL = make_cell(data_digest="026b396193029697")
"""Of the digits that are bundled."""


COMMANDS = {
    "study.run": Command(
        "digits --results {}",
        "digits cifar10 cifar100 --preset scaling",
        {
            "": "the following arguments are required: STUDY",
            "digist": "unknown study 'digist'. Did you mean 'digits'? Valid: digits, cifar10",
            "digits --pla": "unrecognized arguments: --pla. Did you mean --plan?",
            "digits more --seeds 3": "Did you mean --set seed=VALUE?",
            "digits --num-samples 3.0": "--num-samples belongs to a search",
            "digits --num-samples 1e-3": "must be a whole number, got '1e-3'",
            "digits --set": "argument --set: expected at least one argument",
            "digits --set m=x": "m",
            "digits --set architecture=perceptrn": "Did you mean 'perceptron'",
            "digits --search grid": "argument --search: invalid choice: 'grid'",
            **{
                f"digits --shard {wrong}": "argument --shard: must be K/N, the K-th of N "
                f"shards, as 1/16 to 16/16, got '{wrong}'"
                for wrong in ("0/16", "17/16", "3/0", "a/b", "3", "1/2/3")
            },
            **{
                f"digits --shard 1/2 {option}": f"{option.split()[0]} cannot be combined with"
                for option in (
                    "--search optuna --num-samples 3",
                    "--scheduler asha",
                    "--address auto",
                    "--max-concurrent 2",
                    "--max-retries 0",
                    "--dry-run",
                )
            },
            "digits --shard 1/2 --gpus-per-trial 1": "without Ray, on one GPU; 0 trains on CPUs",
            "digits --shard 1/2 --tracking sqlite:///x": "no shard logs; the same command without",
            "digits --shard 1/2 --minutes 0": "argument --minutes: must be a number > 0",
            "digits --plan --tracking runs": "argument --tracking: must be none or a URI",
            "digits --minutes 5": "--minutes belongs to a shard: add --shard 1/1",
            "digits --again 3f2a --plan": "--plan is of no use to --again",
            "digits --again 3f2a --set m=5": "--set is of no use to --again",
        },
        "study.plan.planning.planned",
        "the same command goes on where this one ended",
        reads=False,
    ),
    "study.track": Command(
        "{}",
        "RESULTS_DIR --tracking --study",
        {
            "": "the following arguments are required: RESULTS_DIR",
            "results --frobnicate": "unrecognized arguments: --frobnicate",
        },
        "study.tracking.tracker.Tracker._wait",
        "the same command goes on where this one ended",
    ),
    "study.compact": Command(
        "{}",
        "RESULTS_DIR",
        {
            "": "the following arguments are required: RESULTS_DIR",
            "results more": "unrecognized arguments: more",
        },
        "study.storage.storage.Storage.remove",
        "no result is lost, the same command goes on",
    ),
    "analysis.report": Command(
        "{}",
        "RESULTS_DIR --budget --axis --select --test --out --study --watch",
        {
            "": "the following arguments are required: RESULTS_DIR",
            "results --budget much": "invalid float value: 'much'",
            "results --test a,,b": "argument --test: must be names separated by commas",
            "results --axis steps": "invalid choice: 'steps'",
            "--watch results": "argument --watch: must be a number, got 'results'",
        },
        "analysis.page.comparisons.pictures",
        "no report was written",
    ),
    **brought().commands,
}

READERS = [name for name, command in COMMANDS.items() if command.reads]


Called = Callable[[str, str], tuple[int, str, str]]


@pytest.fixture
def call(capsys) -> Called:
    """Calls a command by its name, with arguments as they are typed."""
    return lambda name, typed: called(import_module(name).main, capsys, *typed.split())


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file below a folder, but locks."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {path: path.read_bytes() for path in files}


def assert_refused(ended: tuple[int, str, str], name: str, *words: str) -> None:
    status, printed, errors = ended
    assert (status, printed) == (UNUSABLE, "")
    assert errors.startswith(f"{name}: ")
    assert errors.count("\n") == 1
    for word in words:
        assert word in errors


# --- what was typed


def test_every_command_is_tested():
    """That which checks what is promised is in tests/study/check."""
    known = {module for module, _ in commands.COMMANDS.values()}
    assert known == COMMANDS.keys() | {"study.check"}


def test_a_command_that_is_none_is_named():
    assert "Did you mean 'run'?" in refusal(lambda: commands._run("rum", []))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_and_refusals_import_nothing_heavy(name):
    """They take a moment: what takes seconds to import comes after them."""
    heavy = HEAVY - OF_ANALYSIS if name.startswith("analysis") else HEAVY
    code = f"""
import sys
from {name} import main
for asked in {list(COMMANDS[name].wrong)}:
    assert main(asked.split()) == {UNUSABLE}, asked
try:
    main(["--help"])
except SystemExit as end:
    assert end.code == 0
print(sorted({heavy} & sys.modules.keys()))
"""
    done = python("-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr
    refusals = done.stderr.splitlines()
    for line, words in zip(refusals, COMMANDS[name].wrong.values(), strict=True):
        assert line.startswith(f"{name}: ")
        assert words in line
    about, examples = done.stdout.split("examples:\n")
    assert [option for option in COMMANDS[name].options.split() if option not in about] == []
    assert f"python -m {name} " in examples
    assert examples.endswith("\n[]\n")


def ended(name: str, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints that ends while its options are read."""
    with pytest.raises(SystemExit, match="0"):
        import_module(name).main(words)
    return capsys.readouterr().out


def test_help_says_what_all_axes_are(capsys):
    shown = " ".join(ended("study.run", capsys, "--help").split())
    for axis, declared in KINDS["training"].axes(tuple(TASKS)).items():
        assert f" {axis} {declared.about} [" in shown
    assert "a mosaic with the label's class [from 1 to 100,000; 1] " in shown


@pytest.mark.parametrize("study", STUDIES)
def test_help_of_a_study_is_of_its_own_axes_and_short(study, capsys):
    shown, space = ended("study.run", capsys, study, "--help"), STUDIES[study]
    assert shown.count("\n") < 75
    named = {name for preset in space.presets.values() for name in preset.axes}
    for axis, declared in KINDS[space.kind].axes(tasks_in(space)).items():
        said = f" {axis} {declared.about} [" if axis in named else f" {axis}="
        assert said in " ".join(shown.split())
    assert "--data-dir DIR" in shown
    assert "--micro-batch" not in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_its_version(name, capsys):
    assert ended(name, capsys, "--version") == f"{code_version()}\n"


# --- what lies in the results directory


@pytest.mark.parametrize("where", ["missing", "file", "folder", "nosuch://x", "memory://none"])
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_results_directory_is_refused(name, where, tmp_path, call):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    place = where if ":" in where else str(tmp_path / where)
    assert_refused(call(name, COMMANDS[name].usual.format(place)), name, place)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


@pytest.mark.parametrize("name", ["study.track", "analysis.report"])
def test_results_without_a_finished_cell_are_refused(name, results, call):
    ended = call(name, COMMANDS[name].usual.format(results.url))
    assert_refused(ended, name, results.url, "no finished cell")


@pytest.mark.parametrize("name", ["study.run", "study.track", "study.compact"])
def test_a_running_study_is_let_alone(name, results, call):
    write(results, CELL)
    before = contents(Path(results.url))
    with Results(results.url).lock():
        ended = call(name, COMMANDS[name].usual.format(results.url))
    words = f"another study is running with the results directory {results.url}"
    assert_refused(ended, name, words)
    assert contents(Path(results.url)) == before


# --- Ctrl-C


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_while_python_imports_is_one_line(name, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", name, *COMMANDS[name].usual.format(tmp_path / "none").split()],
        cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while "numpy" not in Path(f"/proc/{process.pid}/maps").read_text():  # the first of many
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert errors == f"\nstopped; {COMMANDS[name].kept}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_at_work_is_one_line_and_leaves_the_results(
    name, results_with_store, call, monkeypatch
):
    """And nothing that is only half there: no report, no temporary file."""
    results = results_with_store
    for seed in range(2):
        write(results, replace(CELL, seed=seed))
    before = results.evaluations()
    temporary = Path(results.url).parent / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr(COMMANDS[name].works, lambda *_, **__: signal.raise_signal(signal.SIGINT))
    status, _, errors = call(name, COMMANDS[name].usual.format(results.url))
    assert status == INTERRUPTED
    assert errors == f"\nstopped; {COMMANDS[name].kept}\n"
    pd.testing.assert_frame_equal(results.evaluations(), before)
    assert list(temporary.iterdir()) == []
    assert not (Path(results.url) / "report").exists()
