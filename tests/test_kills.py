"""Real processes are killed at random moments, and the same command finishes the study.

The seed of the moments is printed; `KILL_SEED=N pytest -m faults tests/test_kills.py` repeats it.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import processes
from study.results import Results
from tests.conftest import PROJECT
from tests.small_study import CELLS, assert_whole, files, finish, start, wait_for

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

SEED = int(os.environ.get("KILL_SEED", time.time_ns() % 10**6))


@pytest.fixture
def rng() -> random.Random:
    print(f"KILL_SEED={SEED}")
    return random.Random(SEED)


def kill(process: subprocess.Popen[str]) -> None:
    """Kills the driver, and waits for its workers to end: they record until then."""
    training = processes.training(process.pid)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while not all(map(processes.is_gone, training)):
        assert time.monotonic() < deadline, "training outlives a killed driver"
        time.sleep(0.1)


def test_the_driver_is_killed_at_random_moments(
    tmp_path: Path, whole: pd.DataFrame, rng: random.Random
) -> None:
    results = tmp_path / "results"
    kept: dict[Path, bytes] = {}
    for _ in range(3):
        process = start(results)
        wait_for("checkpoints/*.ckpt", results, process)
        time.sleep(rng.uniform(0, 3))
        kill(process)
        kept |= files(results)
        if len(kept) == 2 * CELLS:
            break
    printed = finish(results)
    assert f"{CELLS} cells: {len(kept) // 2} done already" in printed
    assert_whole(results, kept, whole)


def test_a_long_cell_goes_on_from_its_checkpoint(tmp_path: Path, whole: pd.DataFrame) -> None:
    results = tmp_path / "results"
    process = start(results)
    wait_for("checkpoints/*.ckpt", results, process)
    kill(process)
    left = {path.stem for path in results.glob("checkpoints/*.ckpt")} - Results(results).finished()
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
    wait_for("checkpoints/*.ckpt", results, process)
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
    wait_for("checkpoints/*.ckpt", tmp_path / "results", process)
    assert processes.training(process.pid)
    kill(process)


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
