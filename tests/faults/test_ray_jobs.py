"""A real cluster with a token: jobs are submitted, killed and submitted again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.support import processes
from benchmarks.support.processes import free_port
from study.results import Results
from tests.conftest import PROJECT
from tests.made_up.small_study import GRID, assert_whole, files

pytestmark = pytest.mark.timeout(600)

RAY = str(Path(sys.executable).with_name("ray"))


class Head:
    """`ray start --head` as docs/cluster.md has it for one machine, with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.dashboard = f"http://127.0.0.1:{free_port()}"
        self.environment = {
            **os.environ,
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "RAY_AUTH_MODE": "token",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # all of its listeners on the loopback
            "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # under `uv run pytest`, too
        }
        for name in ("RAY_ADDRESS", "RAY_AUTH_TOKEN"):  # of other tests
            self.environment.pop(name, None)
        self.run("get-auth-token", "--generate")
        self._token = (home / ".ray" / "auth_token").read_text().strip()
        self._process = subprocess.Popen(
            [RAY, "start", "--head", "--block", "--num-cpus=2", "--temp-dir", str(home / "ray"),
             "--port", self.address.split(":")[1],
             "--dashboard-port", self.dashboard.rsplit(":", 1)[1],
             "--dashboard-agent-listen-port", str(free_port())],
            cwd=PROJECT, env=self.environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 120
        while self.jobs() is None:
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def jobs(self) -> dict[str, str] | None:
        """The status of every job that was submitted; None: the dashboard does not answer yet.

        Asked for without the command `ray job`, which takes seconds.
        """
        request = urllib.request.Request(
            f"{self.dashboard}/api/jobs/", headers={"Authorization": f"Bearer {self._token}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return {job["submission_id"]: job["status"] for job in json.load(answer)}
        except OSError:
            return None

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [RAY, *command], env=self.environment, capture_output=True, text=True, check=check,
            timeout=400, cwd=PROJECT,
        )  # fmt: skip

    def submit(self, results: Path, *how: str) -> subprocess.CompletedProcess[str]:
        return self.run(
            "job", "submit", "--address", self.dashboard, *how, "--",
            "python", "-m", "study.run", "digits", *GRID, "--tracking", "none",
            "--checkpoint-every", "0.2", "--results", str(results),
        )  # fmt: skip

    def drivers(self) -> list[int]:
        """Process ids of the commands that run as jobs."""
        below = processes.below(self._process.pid)
        return [pid for pid, command in below.items() if "python -m study.run" in command]

    def wait_for_workers(self) -> None:
        """Until none trains."""
        deadline = time.monotonic() + 60
        while processes.training(self._process.pid):
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def stop(self) -> None:
        below = processes.below(self._process.pid)
        self._process.terminate()
        self._process.wait(60)
        for pid in below:
            if not processes.is_gone(pid):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    home = Path(tempfile.mkdtemp(dir="/tmp"))  # short: the names of sockets have a limit
    made = Head(home)
    yield made
    made.stop()
    shutil.rmtree(home, ignore_errors=True)


def test_a_job_whose_driver_dies_is_submitted_again_and_goes_on(
    head: Head, tmp_path: Path, whole: pd.DataFrame
) -> None:
    results = tmp_path / "results"
    head.submit(results, "--no-wait", "--submission-id", "first")
    deadline = time.monotonic() + 120
    while not list(results.glob("checkpoints/*.ckpt")):
        jobs = head.jobs()
        assert jobs
        assert jobs["first"] != "FAILED"
        assert time.monotonic() < deadline, jobs
        time.sleep(0.1)
    drivers = head.drivers()
    assert drivers
    for pid in drivers:
        os.kill(pid, signal.SIGKILL)
    head.wait_for_workers()
    kept = files(results)
    left = {path.stem for path in results.glob("checkpoints/*.ckpt")} - Results(results).finished()
    again = head.submit(results)
    for cell_id in left:
        assert f"cell {cell_id} goes on from its checkpoint" in again.stdout
    assert "on the cluster at auto" in again.stdout
    assert_whole(results, kept, whole)
