"""Real processes are killed at random moments, and the same command finishes the study.

The seed of the moments is printed; `KILL_SEED=N pytest -m faults tests/test_kills.py` repeats it.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import processes
from study.results import Results
from tests.conftest import PROJECT

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

SEED = int(os.environ.get("KILL_SEED", time.time_ns() % 10**6))
GRID = [
    "--set", "n=400", "m=4", "epochs=25", "lr=0.1", "seed=0,1", "switch_point=0.3,0.6",
    "batch_size=10", "evaluations=4", "train_metrics_size=20", "validation_size=50",
    "test_size=50", "paradigm=soft,hard,hybrid",
]  # fmt: skip
CELLS = 8


def start(results: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "study.run", "digits", *GRID, "--tracking", "none",
         "--checkpoint-every", "0.2", "--results", str(results), *more],
        cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip


def finish(results: Path, *more: str) -> str:
    process = start(results, *more)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    return printed


def files(results: Path) -> dict[Path, bytes]:
    """Every file of every complete cell."""
    return {
        path: path.read_bytes()
        for cell_id in Results(results).finished()
        for path in results.glob(f"*/{cell_id}.parquet")
    }


def table(results: Path) -> pd.DataFrame:
    keys = ["cell_id", "budget_fraction", "split"]
    rows = Results(results).evaluations().drop(columns="train_seconds")
    return rows.sort_values(keys, ignore_index=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """What an uninterrupted run records."""
    results = tmp_path_factory.mktemp("whole") / "results"
    finish(results)
    rows = table(results)
    assert rows["cell_id"].nunique() == CELLS
    return rows


@pytest.fixture
def rng() -> random.Random:
    print(f"KILL_SEED={SEED}")
    return random.Random(SEED)


def assert_whole(results: Path, kept: dict[Path, bytes], whole: pd.DataFrame) -> None:
    """Nothing lost, doubled, half-written or changed; nothing left behind."""
    for path, data in kept.items():
        assert path.read_bytes() == data, path
    pd.testing.assert_frame_equal(table(results), whole, check_exact=True)
    assert Results(results).survey().damaged == ()
    assert len(list(results.glob("cells/*"))) == CELLS
    left = [path for folder in ("checkpoints", "forks") for path in results.glob(f"{folder}/*")]
    assert left == []
    assert not list(results.rglob("*.part"))
    assert not list(results.glob(".tune*"))


def wait_for(what: str, results: Path, process: subprocess.Popen[str]) -> None:
    """Until a file is there; the command must not end before."""
    deadline = time.monotonic() + 120
    while not list(results.glob(what)):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_driver_is_killed_at_random_moments(
    tmp_path: Path, whole: pd.DataFrame, rng: random.Random
) -> None:
    results = tmp_path / "results"
    kept: dict[Path, bytes] = {}
    for _ in range(3):
        process = start(results)
        wait_for("checkpoints/*", results, process)
        time.sleep(rng.uniform(0, 3))
        process.kill()
        process.communicate()
        kept |= files(results)
        if len(kept) == 2 * CELLS:
            break
    printed = finish(results)
    assert f"{CELLS} cells: {len(kept) // 2} done already" in printed
    assert_whole(results, kept, whole)


def test_a_long_cell_goes_on_from_its_checkpoint(tmp_path: Path, whole: pd.DataFrame) -> None:
    results = tmp_path / "results"
    process = start(results)
    wait_for("checkpoints/*", results, process)
    process.kill()
    process.communicate()
    left = {path.stem for path in results.glob("checkpoints/*")} - Results(results).finished()
    printed = finish(results)
    went_on = re.findall(r"cell (\w+) goes on from its checkpoint at step [1-9]", printed)
    assert left
    assert set(went_on) == left
    assert_whole(results, {}, whole)


def test_workers_are_killed_at_random_moments(
    tmp_path: Path, whole: pd.DataFrame, rng: random.Random
) -> None:
    results = tmp_path / "results"
    process = start(results, "--max-retries", "9")
    killed = 0
    wait_for("checkpoints/*", results, process)
    while process.poll() is None and killed < 3:
        time.sleep(rng.uniform(0, 2))
        if training := processes.training(process.pid):
            os.kill(rng.choice(training), signal.SIGKILL)
            killed += 1
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert killed
    if "retry" in printed:
        assert "worker lost (its process or its node died)" in printed
        assert "Traceback" not in printed
    assert_whole(results, {}, whole)


def test_no_training_outlives_a_killed_driver(tmp_path: Path) -> None:
    """Else the next driver would share the machine with it. (Agents of Ray stay for a while.)"""
    process = start(tmp_path / "results")
    wait_for("checkpoints/*", tmp_path / "results", process)
    training = processes.training(process.pid)
    assert training
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while not all(map(processes.is_gone, training)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [pid for pid in training if not processes.is_gone(pid)] == []


def test_a_node_is_killed_and_another_one_added(
    tmp_path: Path, whole: pd.DataFrame, rng: random.Random
) -> None:
    from ray.cluster_utils import Cluster

    results = tmp_path / "results"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        node = cluster.add_node(num_cpus=2)
        process = start(results, "--address", cluster.address, "--max-concurrent", "2")
        wait_for("checkpoints/*", results, process)
        time.sleep(rng.uniform(0, 2))
        cluster.remove_node(node, allow_graceful=False)
        time.sleep(1)
        cluster.add_node(num_cpus=2)
        printed, _ = process.communicate(timeout=400)
        assert process.returncode == 0, printed
    finally:
        cluster.shutdown()
    assert_whole(results, {}, whole)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for little more than a report."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if os.getuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_stops_the_study_and_loses_nothing(
    small_disk: Path, whole: pd.DataFrame
) -> None:
    results = small_disk / "results"
    results.mkdir()
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 8_190_000)
    process = start(results)
    printed, _ = process.communicate(timeout=300)
    last = printed.splitlines()[-1]
    assert process.returncode == 2, printed
    assert "Traceback" not in printed
    assert "No space left on device" in last
    assert "the same command goes on" in last
    kept = files(results)
    ballast.unlink()
    finish(results)
    assert_whole(results, kept, whole)


def test_a_lost_directory_stops_the_study_and_loses_nothing(
    tmp_path: Path, whole: pd.DataFrame
) -> None:
    results, away = tmp_path / "results", tmp_path / "away"
    process = start(results)
    wait_for("cells/*.parquet", results, process)
    results.rename(away)
    printed, _ = process.communicate(timeout=300)
    last = printed.splitlines()[-1]
    assert process.returncode == 2, printed
    assert "Traceback" not in printed
    assert str(results) in last
    assert re.search("[Bb]ring the directory back: the same command goes on", last)
    assert not results.exists()  # not made anew, empty
    away.rename(results)
    kept = files(results)
    assert kept
    finish(results)
    assert_whole(results, kept, whole)


def test_a_bug_is_shown_with_its_cell_and_the_mended_study_goes_on(
    tmp_path: Path, whole: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers begin with a hard paradigm that raises; then they do not."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import sys\n"
        "if any('default_worker' in word for word in sys.orig_argv):\n"
        "    from study.paradigms.hard import Hard\n"
        "    def loss(*arguments, **keywords):\n"
        "        raise ZeroDivisionError('mistyped')\n"
        "    Hard.loss = loss\n"
    )
    results = tmp_path / "results"
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{broken}:{PROJECT}")
        process = start(results)
        printed, _ = process.communicate(timeout=300)
    assert process.returncode == 1, printed
    assert re.search(r"^cell [0-9a-f]{16} raised:$", printed, re.M), printed
    assert "ZeroDivisionError: mistyped" in printed
    assert "what is done is kept: the same command goes on" in printed
    kept = files(results)
    assert len(kept) < 2 * CELLS
    finish(results)
    assert_whole(results, kept, whole)
