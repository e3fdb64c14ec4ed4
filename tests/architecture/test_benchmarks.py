"""The benchmarks run; how fast is not tested. Most need torch, NumPy and pyarrow alone."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from benchmarks.support.soak_faults import flip, jumping_clock, small_disk
from tests.conftest import PROJECT

pytestmark = pytest.mark.faults

MISSING = (
    "pandas", "ray", "mlflow", "optuna", "scipy", "sklearn", "matplotlib", "torchvision", "PIL",
)  # fmt: skip

LEAN = {
    "train_step.py --device cpu --m 2 --paradigm soft --architecture small --batch-size 4 "
    "--rounds 1 --steps 2": "float32, baseline, memory kept|float32, study|bfloat16, NCHW",
    "operators.py --m 2 --architecture small --batch-size 4 --steps 2 --precision float32": (
        "\nconvolutions |\nproducts |\nothers |\nall "
    ),
    "captions.py --encoder small --m 4 --units 4 --batch-size 2 --rounds 1 --threads 1": (
        "plain loop, features given"
    ),
    **{
        f"pack.py --architecture {name} --m 2 --batch-size 4 --members 3 --rounds 1 --steps 1 "
        "--paradigm soft hard lvml": "side by side"
        for name in ("small", "perceptron")
    },
}
"""Benchmarks that run without these packages -> what they print."""

FULL = {
    "attention_paths.py --samples 10 20 --layers-of-four 1 2 --layers-of-one 1 2 --tokens 4 8 "
    "--rounds 2": "solve s ~ P^|solve s ~ D^|solve s ~ L^|solve s ~ T^",
    "one_shot.py --sizes quick --rounds 2 --examples 20": (
        "quick: a step |theory of P=20, D=16, N_0=192 at N=10 and 10 temperatures"
    ),
}


def output_of(command: str, lean: Path | None = None, *more: str) -> str:
    """What a benchmark prints, which has to end well; without some packages, if asked."""
    script, *options = command.split()
    environment = dict(os.environ)
    for name in MISSING if lean else ():
        (Path(str(lean)) / f"{name}.py").write_text(f"raise ImportError('no {name} here')\n")
        environment["PYTHONPATH"] = str(lean)
    done = subprocess.run(
        [sys.executable, f"benchmarks/{script}", *options, *more],
        cwd=PROJECT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", LEAN | FULL)
def test_it_measures(command: str, tmp_path: Path) -> None:
    """The study's step beside another one; what it writes are the quotients of what it timed."""
    file = tmp_path / "figures.json"
    lean = command in LEAN
    written = ("--json", str(file)) if lean and "operators" not in command else ()
    printed = output_of(command, tmp_path if lean else None, *written)
    for words in (LEAN | FULL)[command].split("|"):
        assert words in printed
    if written:
        found = json.loads(file.read_text())
        assert {"device", "threads", "torch", "date", "options"} < found.keys()
        first, *others = found["figures"]
        for each in others:
            baselines = [
                other["seconds"][0]
                for other in others
                if other.get("step") == "baseline" and other["precision"] == each["precision"]
            ]
            for name, base in (
                ("times_plain_loop", first["seconds"][0]),
                ("times_baseline_of_its_precision", sum(baselines)),
            ):
                assert name not in each or each[name] == base / each["seconds"][0]


def table(printed: str) -> dict[str, list[str]]:
    """First column -> the others, of all tables that were printed."""
    lines = [line.strip("| ").split(" | ") for line in printed.splitlines() if line[:2] == "| "]
    return {line[0]: line[1:] for line in lines}


def test_a_missing_gpu_is_said_in_one_line() -> None:
    """Of each benchmark, as one process runs them."""
    if torch.cuda.is_available():
        pytest.skip("needs a machine without a CUDA device")
    names = ("train_step", "pack", "pass_size", "evaluation", "captions")
    scripts = [f"{name}.py" for name in names]
    code = f"""
import runpy, sys
for script in {scripts}:
    sys.argv = [script, "--device", "cuda"]
    try:
        runpy.run_path("benchmarks/" + script, run_name="__main__")
    except SystemExit as end:
        print(end.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True
    )
    assert done.stderr == "".join(f"{script}: no CUDA device here\n" for script in scripts)
    assert done.stdout.split() == ["2"] * len(scripts)


def test_scheduling_sends_cells_the_whole_way() -> None:
    """Through Ray Tune and MLflow, in packs; the benchmark ends badly if a cell is missing."""
    # So many that the thread of MLflow, which wakes once a second, logs some while they run.
    options = "--cells 200 --workers 1 --evaluations 3 --pack 2 --plan-cells 20"
    text = output_of(f"scheduling.py {options}")
    assert "The driver: 100 trials on 1 workers" in text
    found = table(text)
    assert len(found["driver CPU ms"]) == 5
    parts = sum(float(row[-1]) for name, row in found.items() if name.startswith("- "))
    assert parts == pytest.approx(float(found["driver CPU ms"][-1]), abs=0.1)
    assert float(found["- MLflow's thread"][-1]) > 0
    assert "MLflow's database, MB a 1,000 cells" in found


def test_a_cell_asks_an_object_store_for_little() -> None:
    found = table(output_of("scheduling.py --requests --evaluations 3"))
    # The file of a cell, looked for and read, whatever else the directory holds.
    assert found["driver: MLflow's thread, of a cell"] == ["4", "0", "0", "0", "0", "4"]
    assert int(found["worker: a cell from start to record"][-1]) <= 8


def test_the_cost_of_segments_is_fitted(tmp_path: Path) -> None:
    options = "--m 64,128,256 --paradigm soft lvml --batch-size 2 --seconds 0.01"
    files = tmp_path / "cost.json", tmp_path / "cost.png"
    text = output_of(f"segments.py {options} --json {files[0]} --figure {files[1]}")
    of_flops = text.partition("training FLOPs a step")[2]
    assert re.search(r"\nlvml .* 1\.00 \(1\.00 to 1\.00\)", of_flops)
    assert "more than 4 GB: none" in text
    figures = json.loads(files[0].read_text())["figures"]
    assert [(each["paradigm"], each["m"]) for each in figures[:2]] == [("soft", 64), ("lvml", 64)]
    assert files[1].read_bytes().startswith(b"\x89PNG")


def test_verdicts_are_simulated_through_the_packages_own_functions() -> None:
    """The benchmark ends badly where its numbers differ from those of the package's tables."""
    found = table(output_of("calibration.py --quick"))
    for name in ("6 seeds", "24 seeds, images differ much", "6 seeds, a run in 10 diverges"):
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
        flipped = flip(disk.folder, ("cells",), random.Random(0))
        assert flipped is not None
        after = {path.name: path.read_bytes() for path in cells.iterdir()}
        changed = [name for name, data in after.items() if data != before]
        assert changed == [Path(flipped.name).name]
        assert sum(map(bool, after[changed[0]])) == 1
        assert not flipped.set_aside(disk.folder)


def test_the_soaks_clock_is_another_one_in_each_process() -> None:
    def wrong_by() -> float:
        command = [sys.executable, "-c", "import time; print(time.time())"]
        done = subprocess.run(
            command, env=jumping_clock(7), capture_output=True, text=True, check=True
        )
        return float(done.stdout) - time.time()

    one, other = wrong_by(), wrong_by()
    assert max(abs(one), abs(other)) < 3_660
    assert abs(one - other) > 1
