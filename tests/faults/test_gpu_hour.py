"""The hour on a GPU, on a CPU: in an environment like that machine's, stopped and gone on with."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis import report
from benchmarks import gpu_hour
from benchmarks.support.processes import below, is_gone
from study.results import Results
from study.storage.storage import Storage
from study.terminal.command import DONE, TERMINATED, UNUSABLE
from tests.conftest import PROJECT, REAL_DATA, needs_data
from tests.made_up.commands import called
from tests.made_up.small_study import wait_for, wait_until
from tests.made_up.waiting import until

PYTHON = "3.12"
PACKAGES = (
    "torch==2.11.0", "pandas==3.1.1", "pyarrow==26.0.1", "scikit-learn==1.9.1",
    "matplotlib==3.11.2", "pillow", "fsspec", "psutil", "pytest", "pytest-timeout",
    "pytest-xdist", "hypothesis",
)  # fmt: skip
OF_THIS_PYTHON = ("numpy==2.5.2", "scipy==1.18.1")
"""An older Python takes older ones."""

SEEDS = 2
SIZES = (
    "n=32", "epochs=20", "architecture=small", "batch_size=16", "evaluations=1",
    "train_metrics_size=10", "validation_size=10", "test_size=10", f"confirm=100-{99 + SEEDS}",
)  # fmt: skip
"""Seconds of training, or a slice would be over as soon as it has cells."""

BENCHMARKS = (
    "--architecture small --batch-size 4 --rounds 1 --steps 1 --precision float32 --threads 1 "
    "--kernels flat"  # which a CPU can, too
)

CELLS = 2 * 4 * SEEDS
"""Of two m and four paradigms."""


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> str:
    """The interpreter of an environment as the GPU machine has it."""
    if shutil.which("uv") is None:
        pytest.skip("needs uv and a package registry")
    folder = tmp_path_factory.mktemp("gpu-machine")
    newer = installed()
    packages = (*PACKAGES, *(OF_THIS_PYTHON if newer else ("numpy", "scipy")))
    own = str(folder / "bin" / "python")
    for command in (
        ["uv", "venv", "--quiet", "--allow-existing", "--python", newer or sys.executable, "."],
        ["uv", "pip", "install", "--quiet", "--python", own, *packages],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            print(done.stderr)
            pytest.skip("needs uv and a package registry")
    return own


def installed() -> str | None:
    """The interpreter of that Python, if uv or pyenv has one."""
    found = subprocess.run(["uv", "python", "find", PYTHON], capture_output=True, text=True)
    if found.returncode == 0:
        return found.stdout.strip()
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return next(map(str, sorted(root.glob(f"versions/{PYTHON}.*/bin/python"))), None)


def start(python: str, results: Path, out: Path) -> subprocess.Popen[str]:
    command = [
        python, "-u", "benchmarks/gpu_hour.py", "--device", "cpu", "--minutes", "12",
        "--data", str(REAL_DATA / "cifar10"), "--results", str(results), "--out", str(out),
        "--set", *SIZES, f"--benchmark-options={BENCHMARKS}",
    ]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["TMPDIR"] = str(out.parent)
    environment["PYTEST_ADDOPTS"] = "--maxprocesses=1"  # each imports PyTorch, to skip every test
    return subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def stop(process: subprocess.Popen[str], with_signal: signal.Signals) -> None:
    """Stops a slice; nothing that it has started outlives it."""
    started = [process.pid, *below(process.pid)]
    process.send_signal(with_signal)
    printed, _ = process.communicate()
    until(lambda: all(map(is_gone, started)), seconds=20)
    if with_signal is signal.SIGTERM:
        assert process.returncode == TERMINATED
        assert printed.splitlines()[-1].startswith("stopped; ")


def wait_for_tests(process: subprocess.Popen[str]) -> None:
    wait_until(lambda: any("-m pytest" in each for each in below(process.pid).values()), process)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def record(out: Path) -> list[dict[str, Any]]:
    return json.loads((out / "record.json").read_text())


def steps(out: Path) -> list[str]:
    """The names of all steps so far, again for each run."""
    return [step["name"] for each in record(out) for step in each["steps"]]


@pytest.fixture(scope="module")
def outs(python, tmp_path_factory) -> list[Path]:
    """What slices left: one that was killed in its first step, one that was stopped while it
    trained, and those that went on."""
    folder = tmp_path_factory.mktemp("slices")
    made = [folder / "none"]
    for number in range(8):
        made.append(out := folder / f"out-{number}")
        before = contents(made[-2])
        process = start(python, made[-2], out)
        if number == 0:
            wait_for_tests(process)
            stop(process, signal.SIGKILL)
        elif number == 1:
            wait_for("cells/*.parquet", out, process)
            stop(process, signal.SIGTERM)
        else:
            printed, _ = process.communicate()
            assert process.returncode in (0, 1), printed
        assert contents(made[-2]) == before  # what is given in stays as it is
        measured = {"tests", *gpu_hour.BENCHMARKS} <= set(steps(out))
        if measured and len(Results(out).finished()) == CELLS:
            assert f"{CELLS} of {CELLS} cells are done" in printed
            break
    return made[1:]


@needs_data
@pytest.mark.timeout(1800)
def test_slices_go_on_where_one_ended(outs, tmp_path, capsys):
    for out in outs:
        assert Results(out).survey().damaged == ()
        assert len(contents(out)) <= 8  # so many files come back
        for path in contents(out):
            assert re.fullmatch(r"([a-z0-9._-]+/)?[a-z0-9._-]+", str(path.relative_to(out)))
    rows = Results(outs[-1]).cells()
    assert len(rows) == CELLS
    assert set(rows["status"]) == {"done"}
    assert set(rows.groupby(["m", "paradigm"])["seed"].nunique()) == {SEEDS}
    assert set(rows.groupby("m")["precision"].nunique()) == {1}
    status, printed, _ = called(report.main, capsys, str(outs[-1]), "--out", str(tmp_path))
    assert status == DONE
    assert "report: " in printed


@needs_data
@pytest.mark.timeout(1800)
def test_tests_and_benchmarks_run_once(outs):
    for name in ("tests", *gpu_hour.BENCHMARKS):
        assert steps(outs[-1]).count(name) == 1
    assert "<testsuite " in (outs[-1] / "tests.xml").read_text()
    measured = [step for each in record(outs[-1]) for step in each["steps"] if "torch" in step]
    assert {step["name"] for step in measured} == {*gpu_hour.BENCHMARKS}
    assert all(step["torch"].startswith("2.11.0") and step["figures"] for step in measured)
    slices = [each["environment"]["packages"]["torch"] for each in record(outs[-1])]
    assert slices == ["2.11.0"] * len(outs)


def test_only_whole_files_are_brought(tmp_path):
    cells = tmp_path / "from" / "cells"
    cells.mkdir(parents=True)
    (cells / "done.parquet").write_bytes(b"whole")
    (cells / f"next.parquet.{'0' * 32}.part").write_bytes(b"ha")
    assert gpu_hour.bring(tmp_path / "from", Results(tmp_path / "to")) == {"done.parquet"}
    brought = contents(tmp_path / "to")
    assert brought == {tmp_path / "to" / "cells" / "done.parquet": b"whole"}


def test_files_that_are_merged_while_they_are_brought_come_merged(tmp_path, monkeypatch):
    cells = tmp_path / "from" / "cells"
    cells.mkdir(parents=True)
    (cells / "one.parquet").write_bytes(b"1")
    (cells / "two.parquet").write_bytes(b"2")
    read = Storage.read

    def merged_meanwhile(storage, name):
        if (cells / "two.parquet").exists():
            (cells / "merged.parquet").write_bytes(b"12")
            (cells / "one.parquet").unlink()
            (cells / "two.parquet").unlink()
        return read(storage, name)

    monkeypatch.setattr(Storage, "read", merged_meanwhile)
    assert gpu_hour.bring(tmp_path / "from", Results(tmp_path / "to")) == {"merged.parquet"}
    assert contents(tmp_path / "to") == {tmp_path / "to" / "cells" / "merged.parquet": b"12"}


@pytest.mark.parametrize(("seconds", "sleeps", "status"), [(30, 0, 3), (5, 60, "out of time")])
def test_a_step_runs_once_and_only_where_it_has_its_time(seconds, sleeps, status, tmp_path):
    args = SimpleNamespace(out=tmp_path / "out", results=tmp_path / "none", minutes=1)
    this = gpu_hour.Slice(args, tmp_path / "scratch")
    figures = tmp_path / "figures.json"
    code = f"open({str(figures)!r}, 'w').write('{{\"seen\": 1}}')"
    this.run_once("long", code, 60, figures)  # of which 20 s are kept free
    assert this.record[-1]["steps"] == []
    for _ in range(2):
        command = f"import time; {code}; time.sleep({sleeps}); raise SystemExit(3)"
        this.run_once("short", f"-c {shlex.quote(command)}", seconds, figures)
    (step,) = record(args.out)[-1]["steps"]
    assert (step["name"], step["status"], step["seen"]) == ("short", status, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--results", __file__], f"--results {__file__} is no directory"),
        (["--set", "nonsense"], "must be AXIS=V, got 'nonsense'"),
        (["--set", "seed=x"], "seed takes a whole number, got 'x'"),
        (["--data-dir", "none"], "--data-dir"),
        (["--benchmark-options", "'"], "--benchmark-options"),
    ],
)
@needs_data
def test_bad_input_is_refused_before_anything_runs(
    options,
    said,
    tmp_path,
    capsys,
    monkeypatch,
):
    monkeypatch.setattr(gpu_hour.Slice, "run", lambda *_: pytest.fail("a step ran"))
    folders = {"--results": tmp_path / "none", "--out": tmp_path / "out"}
    given = [f"{name}={path}" for name, path in folders.items()]
    data = ("--data", str(REAL_DATA / "cifar10"), "--device", "cpu")
    status, _, errors = called(gpu_hour.main, capsys, *data, *given, *options)
    assert (status, errors.count("\n")) == (UNUSABLE, 1)
    assert said in errors
