"""The benchmarks run; how fast is not tested. Most need torch, NumPy and pyarrow alone."""

from __future__ import annotations

import json
import os
import random
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import scale
from benchmarks.support.soak_faults import fill, flip, free, jumping_clock, small_disk
from study.terminal.command import DONE, UNUSABLE
from tests.made_up.commands import python

pytestmark = pytest.mark.faults

MISSING = (
    "pandas", "ray", "mlflow", "optuna", "scipy", "sklearn", "matplotlib", "torchvision", "PIL",
)  # fmt: skip


@pytest.fixture
def bare(tmp_path) -> dict[str, str]:
    """The environment of processes without these packages."""
    for name in MISSING:
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('no {name} here')\n")
    return {"PYTHONPATH": str(tmp_path)}


STEP = "soft, m=2, float32"
"""A row of benchmarks/roofline.py."""


def typed(script: str, options: str, **environment: str) -> str:
    """What a benchmark prints as a command, which has to end well."""
    done = python(f"benchmarks/{script}.py", *options.split(), **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(script: str, options: str, environment: dict[str, str]) -> list[dict[str, Any]]:
    """What it writes with --json."""
    file = Path(environment["PYTHONPATH"]) / "figures.json"
    typed(script, f"{options} --threads 1 --json {file}", **environment)
    found = json.loads(file.read_text())
    assert {"device", "threads", "torch", "date", "options"} < found.keys()
    return found["figures"]


def table(text: str) -> dict[str, list[str]]:
    """First column -> the others, of all tables in Markdown."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return {name.strip(): [each.strip() for each in others] for name, *others in rows}


def test_a_step_is_measured_against_the_baseline(bare):
    sizes = "--m 2 --architecture small --batch-size 4 --micro-batch 2 --kernels flat --rounds 1"
    _, *rows = figures("train_step", sizes, bare)
    found = {(each["precision"], each["step"]): each for each in rows}
    names = ("baseline", "study", "passes of 2", "kernels flat")
    wanted = {(precision, name) for precision in ("float32", "bfloat16") for name in names}
    assert found.keys() == wanted | {("float32", "baseline, memory kept")}
    for (precision, _), each in found.items():
        own = found[precision, "baseline"]["seconds"][0] / each["seconds"][0]
        assert each["times_first"] == [own]


def test_a_step_is_measured_against_the_least_time_of_its_operators(bare):
    """At the rates of the same device; what it does is the sum of its kinds of operators."""
    sizes = "--m 2 --architecture small --batch-size 64 --precision float32"
    rates, *steps = figures("train_step", f"{sizes} --rounds 1", bare)
    file = Path(bare["PYTHONPATH"]) / "figures.json"
    found = table(typed("roofline", f"{sizes} --measured {file} --detail", **bare))
    kinds = [name for name in found if name[0] not in "s-"]
    whole, *parts = ([float(each) for each in found[name][:6]] for name in [STEP, *kinds])
    assert whole == pytest.approx([sum(each) for each in zip(*parts, strict=True)], rel=0.01)
    _, gigaflop, _, by_flops, by_bytes, least = whole
    assert by_flops == pytest.approx(1e12 * gigaflop / rates["ceilings"]["float32"], rel=0.01)
    assert max(by_flops, by_bytes) <= least <= by_flops + by_bytes
    (study,) = (each["seconds"][0] for each in steps if each["step"] == "study")
    assert float(found["- study"][-1]) == pytest.approx(1e3 * study / least, rel=0.01)


def test_a_pack_is_measured_beside_one_cell(bare):
    """Of posts; the step above is one of images."""
    sizes = "--m 2 --batch-size 4 --members 3 --rounds 1 --paradigm soft hard lvml"
    _, *found = figures("train_step", f"--architecture embedding {sizes}", bare)
    assert [each["step"] for each in found] == ["study", "3 side by side"] * 3
    assert [each["times_first"] for each in found[::2]] == [[1.0]] * 3


def test_a_missing_gpu_is_said_in_one_line(bare):
    if torch.cuda.is_available():
        pytest.skip("needs a machine without a CUDA device")
    done = python("benchmarks/train_step.py", "--device", "cuda", **bare)
    assert (done.returncode, done.stderr) == (UNUSABLE, "train_step.py: no CUDA device here\n")


def test_the_analysis_of_many_cells_is_timed():
    found = table(typed("scale", "--cells 1000 --analysis"))
    for what in ("compared", "with heat maps"):
        assert min(map(float, found[what])) > 0


def test_cells_that_train_nothing_go_the_whole_way():
    """Through `study.run`, with Ray Tune and MLflow; the benchmark ends badly if it does."""
    text = typed("scale", "--cells 60 --evaluations 3")
    assert "After 60 cells" in text
    found = table(text)
    assert float(*found["CPU ms of the main thread"]) > 0
    assert {"wall ms", "CPU ms of MLflow and Ray", "memory, KB", "runs in MLflow"} < found.keys()
    for name in ("results", "MLflow's database", "MLflow's artifacts"):
        (size,) = found[f"{name}, a 1,000 cells"]
        assert float(size.removesuffix(" MB")) > 0


@pytest.mark.usefixtures("no_pictures")
def test_the_commands_that_are_timed_take_what_it_writes(results_with_store, monkeypatch):
    """In this process: each by itself would import PyTorch."""
    axes = [*scale.FEW_OPTIONS, "seed=0-1", "epochs=4", "evaluations=2", "confirm=none"]
    scale.record(results_with_store, scale.cells_of(axes), a_file=4)

    def here(command):
        assert import_module(command[0]).main(command[1:]) == DONE
        return 0.0

    monkeypatch.setattr(scale, "command_seconds", here)
    monkeypatch.setattr("study.plan.estimate.MOST_STEPS", 3)
    found = dict(scale.afterwards(results_with_store, axes))
    assert len(found) == 1 + len(scale.KEPT) + 5


def test_a_cell_asks_an_object_store_for_little():
    found = table(typed("scale", "--requests --evaluations 3"))
    # The file of a cell, looked for and read, whatever else the directory holds.
    assert found["driver: MLflow's thread, of a cell"] == ["4", "0", "0", "0", "0", "4"]
    assert int(found["worker: a cell from start to record"][-1]) <= 8


def test_verdicts_are_simulated_through_the_packages_own_functions():
    found = table(typed("calibration", "--replicates 4"))
    for name in ("12 seeds, a run in 10 diverges", "12 seeds, images differ much", "eight parts"):
        assert len(found[name]) >= 4
    *_, apart = found["12 seeds, each learns with chance 0.5"]
    assert float(apart) > 0.9


def test_the_soak_fills_disks_and_flips_bytes(tmp_path):
    if os.getuid():
        pytest.skip("needs the right to mount a file system")
    with small_disk(disk := tmp_path / "disk"):
        first, second = disk / "a.ckpt", disk / "b.ckpt"
        first.write_bytes(before := bytes(100))
        fill(disk)
        with pytest.raises(OSError, match="No space left on device"):
            second.write_bytes(before)
        free(disk)
        second.write_bytes(before)
        assert flip([first], random.Random(0)) == set()
        assert sum(map(bool, first.read_bytes())) == 1
        assert flip([disk / "gone"], random.Random(0)) is None


def test_the_soaks_clock_is_another_one_in_each_process():
    wrong = []
    for _ in range(2):
        said = python("-c", "import time; print(time.time())", **jumping_clock(7)).stdout
        wrong.append(float(said) - time.time())
    assert max(map(abs, wrong)) < 3_660
    assert abs(wrong[0] - wrong[1]) > 1
