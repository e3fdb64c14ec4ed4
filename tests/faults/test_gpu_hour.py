"""The hour on a GPU, on a CPU: in an environment like that machine's, killed and gone on with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis import report
from benchmarks import gpu_hour
from benchmarks.processes import below
from study.results import Results
from study.terminal.command import DONE
from tests.conftest import PROJECT, REAL_DATA, needs_data
from tests.made_up.commands import called

PYTHON = "3.12"
PACKAGES = (
    "torch==2.11.0", "pandas==3.1.1", "pyarrow==26.0.1", "scikit-learn==1.9.1",
    "matplotlib==3.11.2", "pillow", "fsspec", "psutil", "pytest", "pytest-timeout",
    "pytest-xdist", "hypothesis",
)  # fmt: skip
OF_THIS_PYTHON = ("numpy==2.5.2", "scipy==1.18.1")
"""An older Python takes older ones."""

SEEDS = 4
SIZES = (
    "n=32", "epochs=2", "architecture=small", "batch_size=16", "evaluations=1",
    "train_metrics_size=10", "validation_size=10", "test_size=10", f"seed=0-{SEEDS - 1}",
)  # fmt: skip
BENCHMARKS = "--architecture small --batch-size 4 --rounds 1 --steps 1 --precision float32"

CELLS = 2 * 4 * SEEDS
"""Of two m and four paradigms."""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment as the GPU machine has it."""
    if shutil.which("uv") is None:
        pytest.skip("needs uv and a package registry for the environment of a GPU machine")
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
            pytest.skip("needs uv and a package registry for the environment of a GPU machine")
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
        python, "-u", "benchmarks/gpu_hour.py", "--device", "cpu", "--minutes", "2",
        "--data", str(REAL_DATA / "cifar10"), "--results", str(results), "--out", str(out),
        "--set", *SIZES, f"--benchmark-options={BENCHMARKS}",
    ]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def kill(process: subprocess.Popen[str]) -> None:
    """With all that it has started, as a machine that is switched off."""
    for pid in (*below(process.pid), process.pid):
        os.kill(pid, 9)
    process.communicate()


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def record(out: Path) -> list[dict[str, Any]]:
    return json.loads((out / "record.json").read_text())


@pytest.fixture(scope="module")
def outs(python: str, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What slices left: one that was killed while it trained, and those that went on."""
    folder = tmp_path_factory.mktemp("slices")
    made = [folder / "none"]
    for number in range(8):
        made.append(folder / f"out-{number}")
        before = contents(made[-2])
        process = start(python, made[-2], made[-1])
        if number == 0:
            wait_for_cells(process, made[-1])
            kill(process)
        else:
            printed, _ = process.communicate()
            assert process.returncode in (0, 1), printed
        assert contents(made[-2]) == before  # what is given in stays as it is
        if len(Results(made[-1]).finished()) == CELLS:
            break
    return made[1:]


def wait_for_cells(process: subprocess.Popen[str], out: Path) -> None:
    deadline = time.monotonic() + 300
    while not list(out.glob("cells/*.parquet")) and time.monotonic() < deadline:
        if process.poll() is not None:
            return
        time.sleep(0.05)


@needs_data
@pytest.mark.timeout(1800)
def test_slices_go_on_where_one_ended(
    outs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out in outs:
        assert Results(out).survey().damaged == ()
        assert len(contents(out)) <= gpu_hour.MOST_FILES
        for path in contents(out):
            assert len(path.relative_to(out).parts) <= 2
            assert set(path.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
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
def test_tests_and_benchmarks_run_once(outs: list[Path]) -> None:
    steps = [step["name"] for each in record(outs[-1]) for step in each["steps"]]
    for name in ("tests", *gpu_hour.BENCHMARKS):
        assert steps.count(name) == 1
    assert "<testsuite " in (outs[-1] / "tests.xml").read_text()
    measured = json.loads((outs[-1] / "figures.json").read_text())
    assert measured["packs, m=20"]["torch"].startswith("2.11.0")
    slices = [each["environment"]["packages"]["torch"] for each in record(outs[-1])]
    assert slices == ["2.11.0"] * len(outs)


def packs(**speedups: float) -> list[dict[str, Any]]:
    return [
        {"way": "side by side", "members": int(name[1:]), "times_alone": value}
        for name, value in speedups.items()
    ]


def test_packs_are_as_large_as_was_fastest() -> None:
    assert gpu_hour.fastest_pack([]) == 1
    assert gpu_hour.fastest_pack(packs(_4=1.05, _12=1.0)) == 1
    assert gpu_hour.fastest_pack(packs(_4=1.5, _12=3.0)) == 12
    assert gpu_hour.fastest_pack(packs(_4=1.5, _12=1.2)) == 4


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({}, "float32"),
        ({"float32": 20, "tf32": 60, "bfloat16": 90}, "float32"),
        ({"float32": 9, "tf32": 20, "bfloat16": 90}, "tf32"),
        ({"float32": 9, "tf32": 12, "bfloat16": 14}, "bfloat16"),
    ],
)
def test_large_mosaics_train_in_a_precision_that_is_fast_enough(
    rates: dict[str, float], expected: str, tmp_path: Path
) -> None:
    nothing: Any = SimpleNamespace(results=Results(tmp_path / "none"))
    figures = [
        {"step": "study", "precision": name, "flops_per_second": 1e12 * rate}
        for name, rate in rates.items()
    ]
    assert gpu_hour.precision_of(nothing, "20", figures) == expected
    assert gpu_hour.precision_of(nothing, "5", figures) == "float32"


def test_too_much_to_bring_is_refused(tmp_path: Path) -> None:
    for name, size in (("data", 2**26), ("results", 0)):
        (tmp_path / name).mkdir()
        with open(tmp_path / name / "file", "wb") as file:
            file.truncate(size)
    asked: Any = SimpleNamespace(data=tmp_path / "data", results=tmp_path / "results")
    with pytest.raises(gpu_hour.RequestError, match="MiB are more than 64 MiB can travel"):
        gpu_hour.travels(asked)
    asked.data = tmp_path / "results"
    assert gpu_hour.travels(asked).endswith("of 64 MiB")
