"""The benchmarks run where torch, NumPy and pyarrow are all there is; how fast is not tested."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

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
    options = "--device cpu --m 2 --paradigm soft --architecture small --batch-size 4 --rounds 1"
    done = run(tmp_path, "benchmarks/train_step.py", *options.split())
    assert done.returncode == 0, done.stderr
    rows = [line.split("  ")[0] for line in done.stdout.splitlines()]
    for row in ("baseline", "baseline, memory kept", "float32, study", "bfloat16, study"):
        assert row in rows, done.stdout


@pytest.mark.parametrize("architecture", ["small", "perceptron"])
def test_all_ways_to_pack_take_the_same_step(tmp_path: Path, architecture: str) -> None:
    """The benchmark refuses to time ways whose weights differ after a step."""
    options = (
        f"--architecture {architecture} --m 2 --batch-size 4 --members 3 --rounds 1 --steps 1"
    )
    done = run(
        tmp_path, "benchmarks/pack.py", *options.split(), "--paradigm", "soft", "hard", "lvml"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("stacked") == 3


@pytest.mark.parametrize("script", ["train_step", "pack", "pass_size", "evaluation"])
def test_a_missing_gpu_is_said_in_one_line(tmp_path: Path, script: str) -> None:
    if torch.cuda.is_available():
        pytest.skip("needs a machine without a CUDA device")
    done = run(tmp_path, f"benchmarks/{script}.py", "--device", "cuda")
    assert (done.returncode, done.stderr) == (2, f"{script}.py: no CUDA device here\n")
