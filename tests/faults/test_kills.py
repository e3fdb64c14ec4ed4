"""Studies are killed, stopped and starved, and the same command finishes them.

Killed are real processes, some at random moments. The seed of the moments is printed;
`KILL_SEED=N pytest -m faults tests/faults/test_kills.py` repeats it.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.support import processes
from study import run
from study.launch.cluster import NoRay
from study.results import Results
from study.terminal.command import DONE, FAILED, INTERRUPTED, TERMINATED, UNUSABLE
from study.train.steps.loop import train_pack
from tests.conftest import run_without_ray
from tests.made_up.commands import called, python
from tests.made_up.jobs import table
from tests.made_up.small_study import (
    CELLS,
    arguments,
    assert_whole,
    files,
    start,
    unfinished,
    wait_for_training,
    wait_until,
)
from tests.made_up.sockets import listening, others_hear
from tests.made_up.waiting import until

pytestmark = pytest.mark.timeout(600)

SEED = int(os.environ.get("KILL_SEED", time.time_ns() % 10**6))


@pytest.fixture
def rng() -> random.Random:
    print(f"KILL_SEED={SEED}")
    return random.Random(SEED)


# A command that is stopped again and again, and goes on in one directory.


class Study:
    """A study that one fault after another stops.

    Attributes:
        kept: the files of recorded cells, which no later command may touch.
    """

    def __init__(self, results: Path) -> None:
        self.results = results
        self.kept: dict[Path, bytes] = {}

    def start(
        self, *more: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        process = start(self.results, *more, environment=environment)
        wait_for_training(self.results, process)
        return process

    def ended(self, process: subprocess.Popen[str]) -> str:
        """What a command printed, which has gone on where the one before ended."""
        printed, _ = process.communicate(timeout=300)
        assert f"{CELLS} cells: {len(self.kept)} done already" in printed
        assert "Traceback" not in printed
        self.kept |= files(self.results)
        return printed

    def kill(self, process: subprocess.Popen[str]) -> None:
        """Kills the driver.

        No training outlives it, else the next driver would share the machine with it. (Agents of
        Ray stay for a while.)
        """
        training = processes.training(process.pid)
        assert training
        process.kill()
        process.wait()
        until(
            lambda: all(map(processes.is_gone, training)),
            lambda: "training outlives a killed driver",
            60,
        )
        self.ended(process)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Study:
    return Study(tmp_path_factory.mktemp("killed") / "results")


def test_sigterm_stops_a_study_like_ctrl_c(study, tmp_path):
    """Batch systems and containers send it.

    Till then the study listens to nobody else, and asks for a token that nobody can read.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    process = study.start(environment={**own, "HOME": str(tmp_path)})
    found = listening(process.pid)
    programs = " ".join(found.values())
    assert "gcs_server" in programs
    assert "raylet" in programs
    assert others_hear(found) == {}
    below = processes.below(process.pid)
    servers = [pid for pid, command in below.items() if "gcs_server" in command]
    for server in servers:  # the token lies in no file: Ray's others could read
        assert "RAY_AUTH_MODE=token" in Path(f"/proc/{server}/environ").read_text()
    assert servers
    assert not list(tmp_path.rglob("auth_token"))
    process.terminate()
    printed = study.ended(process)
    assert process.returncode == TERMINATED, printed
    assert "the same command goes on" in printed


def test_ctrl_c_leaves_a_directory_that_the_same_command_goes_on_in(study):
    process = study.start()
    before = len(Results(study.results).finished())
    wait_until(lambda: len(Results(study.results).finished()) > before, process)
    process.send_signal(signal.SIGINT)
    printed = study.ended(process)
    assert process.returncode == INTERRUPTED, printed
    assert "the same command goes on" in printed
    assert 1 <= len(study.kept) < CELLS


def test_cells_go_on_from_their_checkpoints_though_driver_and_workers_are_killed(
    study, whole, rng
):
    """The driver at a random moment, once cells have checkpoints; then workers, till the end."""
    left = set()
    while not left:  # those that had one may have ended
        process = study.start()
        time.sleep(rng.uniform(0, 0.5))
        study.kill(process)
        left = unfinished(study.results)
    process = study.start("--max-retries", "9")
    killed = 0
    for _ in range(3):
        if training := processes.training(process.pid):
            os.kill(rng.choice(training), signal.SIGKILL)
            killed += 1
        time.sleep(rng.uniform(0, 2))
    assert killed
    printed = study.ended(process)
    assert process.returncode == DONE, printed
    lost = set(re.findall(r"\w+", " ".join(re.findall(r"cell (.*): worker lost", printed))))
    went_on = set(re.findall(r"cell (\w+) goes on from its checkpoint at step [1-9]", printed))
    assert left <= went_on
    assert went_on <= left | lost
    assert_whole(study.results, study.kept, whole)


# What stops a study from inside, whatever runs its trials.


Command = Callable[[Path], tuple[int, str]]


def in_moments(results: Path, *more: str) -> list[str]:
    """The arguments of a study whose cells take a moment, since nothing has to meet them."""
    return ["epochs=6" if word == "epochs=60" else word for word in arguments(results, *more)]


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> pd.DataFrame:
    """What an uninterrupted run of it records."""
    results = tmp_path_factory.mktemp("short") / "results"
    run_without_ray(in_moments(results))
    return table(results)


@pytest.fixture
def command(without_ray, no_pictures, capsys) -> Command:
    """The command in this process: its exit status, and what it said of errors."""

    def typed(results):
        status, _, said = called(run.main, capsys, *in_moments(results))
        return status, said

    return typed


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system with room for little more than a report."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if os.getuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_stops_the_study_and_loses_nothing(small_disk, short, command):
    results = small_disk / "results"
    results.mkdir()
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 8_250_000)
    status, said = command(results)
    last = said.splitlines()[-1]
    assert status == UNUSABLE, said
    assert "Traceback" not in said
    assert "No space left on device" in last
    assert "the same command goes on" in last
    kept = files(results)
    ballast.unlink()
    assert command(results)[0] == DONE
    assert_whole(results, kept, short)


def test_a_lost_directory_stops_the_study_and_loses_nothing(tmp_path, short, command):
    results, away = tmp_path / "results", tmp_path / "away"

    def take_away():
        while not list(results.glob("cells/*.parquet")):
            time.sleep(0.01)
        results.rename(away)

    thief = threading.Thread(target=take_away, daemon=True)
    thief.start()
    status, said = command(results)
    thief.join()
    last = said.splitlines()[-1]
    assert status == UNUSABLE, said
    assert "Traceback" not in said
    assert str(results) in last
    assert re.search("[Bb]ring .* back: the same command goes on", last)
    assert not results.exists()  # not made anew, empty
    away.rename(results)
    kept = files(results)
    assert kept
    assert command(results)[0] == DONE
    assert_whole(results, kept, short)


def test_a_bug_is_shown_with_its_cell_and_the_mended_study_goes_on(
    tmp_path, short, command, monkeypatch
):
    """Trials of a hard paradigm raise; then they do not."""

    def broken(cells, *how):
        if cells[0].paradigm == "hard":
            raise ZeroDivisionError("mistyped")
        return train_pack(cells, *how)

    results = tmp_path / "results"
    with monkeypatch.context() as patch:
        patch.setattr("study.train.run_training.train_pack", broken)
        status, said = command(results)
    assert status == FAILED, said
    assert re.search(r"^cell [0-9a-f]{16} failed: bug:", said, re.M), said
    assert "ZeroDivisionError: mistyped" in said
    assert "what is done is kept: the same command goes on" in said
    kept = files(results)
    assert len(kept) < CELLS
    assert command(results)[0] == DONE
    assert_whole(results, kept, short)


def test_what_a_worker_killed_as_it_wrote_leaves_is_gone_at_the_end(
    tmp_path, short, command, monkeypatch
):
    results = tmp_path / "results"

    def leaving(*arguments):
        for name in ("cells/x.parquet", "checkpoints/x.ckpt"):
            (results / f"{name}.{uuid.uuid4().hex}.part").touch()
        return train_pack(*arguments)

    monkeypatch.setattr("study.train.run_training.train_pack", leaving)
    assert command(results)[0] == DONE
    assert_whole(results, {}, short)


def test_without_a_ray_that_starts_the_command_trains_by_itself(tmp_path, short):
    """As Ray gives its server no time here, it fails as on a machine that is too busy."""
    no_time = {"RAY_gcs_server_port_wait_time_s": "0"}
    done = python("-m", "study.run", *in_moments(tmp_path), **no_time)
    assert done.returncode == DONE, done.stderr
    assert done.stderr.count("Ray did not start (Timed out") == 2
    assert "cells train in this process" in done.stderr
    assert_whole(tmp_path, {}, short)


def test_without_a_ray_that_starts_a_scheduler_is_refused(tmp_path, capsys, monkeypatch):
    def none(*_):
        raise NoRay("Ray did not start")

    monkeypatch.setattr("study.drive.on_ray.OnRay.on_ray", none)
    status, _, said = called(run.main, capsys, *in_moments(tmp_path, "--scheduler", "asha"))
    assert status == UNUSABLE
    assert said.splitlines()[-1].endswith("run the command again when it can start.")
