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


def run(tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs a benchmark, and the processes it starts, without these packages."""
    for name in MISSING:
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('no {name} here')\n")
    return subprocess.run(
        [sys.executable, *command],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_step_is_measured_against_the_baseline(tmp_path: Path) -> None:
    options = (
        "--device cpu --m 2 --paradigm soft --architecture small --batch-size 4 --rounds 1 "
        "--steps 2"
    )
    file = tmp_path / "figures.json"
    done = run(tmp_path, "benchmarks/train_step.py", *options.split(), "--json", str(file))
    assert done.returncode == 0, done.stderr
    rows = [line.split("  ")[0] for line in done.stdout.splitlines()]
    found = json.loads(file.read_text())
    figures = {f"{each['precision']}, {each['step']}": each for each in found["figures"][1:]}
    for precision in ("float32", "bfloat16"):
        for name in ("baseline", "study", "NCHW"):
            assert f"{precision}, {name}" in rows, done.stdout
        own = figures[f"{precision}, baseline"]["seconds"][0]
        study = figures[f"{precision}, study"]
        assert study["times_baseline_of_its_precision"] == own / study["seconds"][0]
    assert "float32, baseline, memory kept" in rows
    assert {"device", "threads", "torch", "date", "options"} < found.keys()


def test_operators_of_a_step_are_timed(tmp_path: Path) -> None:
    options = "--m 2 --architecture small --batch-size 4 --steps 2 --precision float32"
    done = run(tmp_path, "benchmarks/operators.py", *options.split())
    assert done.returncode == 0, done.stderr
    for row in ("convolutions", "products", "others", "all"):
        assert f"\n{row} " in done.stdout


def test_a_step_of_captions_is_measured_beside_a_plain_loop(tmp_path: Path) -> None:
    options = "--encoder small --m 4 --units 4 --batch-size 2 --rounds 1 --threads 1"
    file = tmp_path / "figures.json"
    done = run(tmp_path, "benchmarks/captions.py", *options.split(), "--json", str(file))
    assert done.returncode == 0, done.stderr
    plain, given, study = json.loads(file.read_text())["figures"]
    assert study["times_plain_loop"] == plain["seconds"][0] / study["seconds"][0]
    assert given["step"] == "plain loop, features given"
    assert all(0 < each["bytes_before"] <= each["peak_bytes"] for each in (plain, given, study))


@pytest.mark.parametrize("architecture", ["small", "perceptron"])
def test_a_pack_is_measured_beside_one_cell(tmp_path: Path, architecture: str) -> None:
    options = (
        f"--architecture {architecture} --m 2 --batch-size 4 --members 3 --rounds 1 --steps 1"
    )
    file = tmp_path / "figures.json"
    paradigms = ("--paradigm", "soft", "hard", "lvml", "--json", str(file))
    done = run(tmp_path, "benchmarks/pack.py", *options.split(), *paradigms)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("side by side") == 3
    figures = json.loads(file.read_text())["figures"]
    assert [each["times_alone"] for each in figures[::2]] == [1.0] * 3


def test_a_missing_gpu_is_said_in_one_line(tmp_path: Path) -> None:
    """Of each benchmark, as one process runs them."""
    if torch.cuda.is_available():
        pytest.skip("needs a machine without a CUDA device")
    scripts = [
        f"{name}.py" for name in ("train_step", "pack", "pass_size", "evaluation", "captions")
    ]
    code = f"""
import runpy, sys
for script in {scripts}:
    sys.argv = [script, "--device", "cuda"]
    try:
        runpy.run_path("benchmarks/" + script, run_name="__main__")
    except SystemExit as end:
        print(end.code)
"""
    done = run(tmp_path, "-c", code)
    assert done.stderr == "".join(f"{script}: no CUDA device here\n" for script in scripts)
    assert done.stdout.split() == ["2"] * len(scripts)


def table(printed: str) -> dict[str, list[str]]:
    """First column -> the others, of all tables that were printed."""
    lines = [line.strip("| ").split(" | ") for line in printed.splitlines() if line[:2] == "| "]
    return {line[0]: line[1:] for line in lines}


def output_of(script: str, options: str) -> str:
    """What a benchmark prints, which has to end well."""
    done = subprocess.run(
        [sys.executable, script, *options.split()],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_scheduling_sends_cells_the_whole_way() -> None:
    """Through Ray Tune and MLflow, in packs; the benchmark ends badly if a cell is missing."""
    # So many that the thread of MLflow, which wakes once a second, logs some while they run.
    options = "--cells 200 --workers 1 --evaluations 3 --pack 2 --plan-cells 20"
    text = output_of("benchmarks/scheduling.py", options)
    assert "The driver: 100 trials on 1 workers" in text
    found = table(text)
    assert len(found["driver CPU ms"]) == 5
    parts = sum(float(row[-1]) for name, row in found.items() if name.startswith("- "))
    assert parts == pytest.approx(float(found["driver CPU ms"][-1]), abs=0.1)
    assert float(found["- MLflow's thread"][-1]) > 0
    assert "MLflow's database, MB a 1,000 cells" in found


def test_a_cell_asks_an_object_store_for_little() -> None:
    found = table(output_of("benchmarks/scheduling.py", "--requests --evaluations 3"))
    # The file of a cell, looked for and read, whatever else the directory holds.
    assert found["driver: MLflow's thread, of a cell"] == ["4", "0", "0", "0", "0", "4"]
    assert int(found["worker: a cell from start to record"][-1]) <= 8


def test_the_theory_of_attention_paths_is_timed_as_its_sizes_grow() -> None:
    options = "--samples 10 20 --layers-of-four 1 2 --layers-of-one 1 2 --tokens 4 8 --rounds 2"
    text = output_of("benchmarks/attention_paths.py", options)
    for size in "PDLT":
        assert f"solve s ~ {size}^" in text


def test_one_shot_images_are_timed_beside_a_plain_loop() -> None:
    text = output_of("benchmarks/one_shot.py", "--sizes quick --rounds 2 --examples 20")
    assert re.search(r"quick: a step [\d.]+ ms, of a plain loop [\d.]+ ms: [\d.]+ times", text)
    assert re.search(r"theory of P=20, D=16, N_0=192 at N=10 and 10 temperatures [\d.]+ s", text)


def test_the_cost_of_segments_is_fitted(tmp_path: Path) -> None:
    options = "--m 64,128,256 --paradigm soft lvml --batch-size 2 --seconds 0.01"
    files = tmp_path / "cost.json", tmp_path / "cost.png"
    text = output_of("benchmarks/segments.py", f"{options} --json {files[0]} --figure {files[1]}")
    of_flops = text.partition("training FLOPs a step")[2]
    assert re.search(r"\nlvml .* 1\.00 \(1\.00 to 1\.00\)", of_flops)
    assert "more than 4 GB: none" in text
    figures = json.loads(files[0].read_text())["figures"]
    assert [(each["paradigm"], each["m"]) for each in figures[:2]] == [("soft", 64), ("lvml", 64)]
    assert files[1].read_bytes().startswith(b"\x89PNG")


def test_verdicts_are_simulated_through_the_packages_own_functions() -> None:
    """The benchmark ends badly where its numbers differ from those of the package's tables."""
    found = table(output_of("benchmarks/calibration.py", "--quick"))
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
