"""The benchmarks run; how fast is not tested. Most need torch, NumPy and pyarrow alone."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import re
import runpy
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.support import measure
from benchmarks.support.soak_faults import flip, jumping_clock, small_disk
from study.terminal.command import UNUSABLE
from tests.conftest import PROJECT

pytestmark = pytest.mark.faults

MISSING = (
    "pandas", "ray", "mlflow", "optuna", "scipy", "sklearn", "matplotlib", "torchvision", "PIL",
)  # fmt: skip


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment of processes without these packages."""
    for name in MISSING:
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('no {name} here')\n")
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def typed(script: str, options: str, environment: dict[str, str] | None = None) -> str:
    """What a benchmark prints as a command, which has to end well."""
    command = [sys.executable, f"benchmarks/{script}.py", *options.split()]
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(script: str, options: str, environment: dict[str, str]) -> list[dict[str, Any]]:
    """What it writes with --json."""
    file = Path(environment["PYTHONPATH"]) / "figures.json"
    typed(script, f"{options} --json {file}", environment)
    found = json.loads(file.read_text())
    assert {"device", "threads", "torch", "date", "options"} < found.keys()
    return found["figures"]


def table(text: str) -> dict[str, list[str]]:
    """First column -> the others, of all tables in Markdown."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return {name.strip(): [each.strip() for each in others] for name, *others in rows}


def test_a_step_is_measured_against_the_baseline(bare: dict[str, str]) -> None:
    _, *rows = figures(
        "train_step", "--m 2 --architecture small --batch-size 4 --micro-batch 2 --rounds 1", bare
    )
    found = {(each["precision"], each["step"]): each for each in rows}
    names = ("baseline", "study", "NCHW", "passes of 2")
    wanted = {(precision, name) for precision in ("float32", "bfloat16") for name in names}
    assert found.keys() == wanted | {("float32", "baseline, memory kept")}
    for (precision, _), each in found.items():
        own = found[precision, "baseline"]["seconds"][0] / each["seconds"][0]
        assert each["times_baseline_of_its_precision"] == own


@pytest.mark.parametrize("architecture", ["small", "perceptron"])
def test_a_pack_is_measured_beside_one_cell(bare: dict[str, str], architecture: str) -> None:
    sizes = "--m 2 --batch-size 4 --members 3 --rounds 1 --steps 1 --paradigm soft hard lvml"
    found = figures("pack", f"--architecture {architecture} {sizes}", bare)
    assert [each["times_alone"] for each in found[::2]] == [1.0] * 3


def test_a_missing_gpu_is_said_in_one_line(bare: dict[str, str]) -> None:
    """Of each benchmark, as one process runs them."""
    if torch.cuda.is_available():
        pytest.skip("needs a machine without a CUDA device")
    scripts = ["train_step.py", "pack.py"]
    code = f"""
import runpy, sys
for script in {scripts}:
    sys.argv = [script, "--device", "cuda"]
    try:
        runpy.run_path("benchmarks/" + script, run_name="__main__")
    except SystemExit as end:
        print(end.code)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=PROJECT, env=bare, capture_output=True, text=True)
    assert done.stderr == "".join(f"{script}: no CUDA device here\n" for script in scripts)
    assert done.stdout.split() == ["2"] * len(scripts)


@pytest.mark.parametrize(
    ("script", "options", "said"),
    [
        ("soak", "--cells 15", "--cells must be a multiple of 10, got 15"),
        ("calibration", "--resample /nowhere", "calibration: /nowhere"),
    ],
)
def test_what_it_cannot_take_is_said_in_a_line(
    script: str,
    options: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [script, *options.split()])
    with pytest.raises(SystemExit, match=str(UNUSABLE)):
        runpy.run_path(str(PROJECT / "benchmarks" / f"{script}.py"), run_name="__main__")
    assert said in capsys.readouterr().err.splitlines()[-1]


Printed = Callable[[str, str], str]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Printed:
    """What a benchmark prints that runs in this process as a whole."""

    @contextlib.contextmanager
    def here(prepare: Callable[..., Any], *arguments: object) -> Iterator[Any]:
        yield prepare(*arguments)

    def run(script: str, options: str) -> str:
        monkeypatch.setattr(measure, "in_a_process", here)
        monkeypatch.setattr(sys, "argv", [script, *options.split()])
        assert not importlib.import_module(f"benchmarks.{script}").main()
        return capsys.readouterr().out

    return run


def test_one_runs_as_a_command_that_measures_in_other_processes() -> None:
    assert re.search(r"60 cells ( +\| +[\d.]+){5}", typed("analysis", "--cells 60"))


def test_scheduling_sends_cells_the_whole_way() -> None:
    """Through Ray Tune and MLflow; the benchmark ends badly if a cell is missing."""
    # So many that the thread of MLflow, which wakes once a second, logs some while they run.
    text = typed("scheduling", "--cells 200 --workers 1 --evaluations 3 --plan-cells 20")
    assert "The driver: 200 trials on 1 workers" in text
    found = table(text)
    parts = sum(float(row[-1]) for name, row in found.items() if name.startswith("- "))
    assert parts == pytest.approx(float(found["driver CPU ms"][-1]), abs=0.1)
    assert float(found["- MLflow's thread"][-1]) > 0
    assert "MLflow's database, MB a 1,000 cells" in found


def test_a_cell_asks_an_object_store_for_little() -> None:
    found = table(typed("scheduling", "--requests --evaluations 3"))
    # The file of a cell, looked for and read, whatever else the directory holds.
    assert found["driver: MLflow's thread, of a cell"] == ["4", "0", "0", "0", "0", "4"]
    assert int(found["worker: a cell from start to record"][-1]) <= 8


def test_verdicts_are_simulated_through_the_packages_own_functions(printed: Printed) -> None:
    found = table(printed("calibration", "--replicates 4"))
    for name in ("6 seeds", "12 seeds, images differ much", "6 seeds, a run in 10 diverges"):
        assert len(found[name]) >= 5
    decided, overstated, *of_two = map(float, found["12"])
    assert decided < of_two[0] > 0.8  # a difference of two standard deviations of a run
    assert overstated > of_two[1] >= 1


def test_the_soak_fills_disks_and_flips_bytes(tmp_path: Path) -> None:
    if os.getuid():
        pytest.skip("needs the right to mount a file system")
    with small_disk(tmp_path / "disk") as disk:
        cells = disk.folder / "cells"
        cells.mkdir()
        (cells / "a.parquet").write_bytes(before := bytes(100))
        disk.fill()
        with pytest.raises(OSError, match="No space left on device"):
            (cells / "b.parquet").write_bytes(before)
        disk.free()
        (cells / "b.parquet").write_bytes(before)
        flipped = flip(disk.folder, "cells", random.Random(0))
        assert flipped is not None
        (changed,) = [path for path in cells.iterdir() if path.read_bytes() != before]
        assert flipped.name == f"cells/{changed.name}"
        assert sum(map(bool, changed.read_bytes())) == 1
        assert not flipped.set_aside(disk.folder)


def test_the_soaks_clock_is_another_one_in_each_process() -> None:
    wrong = []
    for _ in range(2):
        command = [sys.executable, "-c", "import time; print(time.time())"]
        said = subprocess.check_output(command, env=jumping_clock(7), text=True)
        wrong.append(float(said) - time.time())
    assert max(map(abs, wrong)) < 3_660
    assert abs(wrong[0] - wrong[1]) > 1
