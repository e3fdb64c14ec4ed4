"""The commands of docs/cluster.md parse, and those about one machine are run.

From the first studies on a fresh checkout to a stopped job.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import psutil
import pytest
import requests

from benchmarks.support import processes
from study.results import Results
from tests.conftest import PROJECT
from tests.made_up.small_study import unfinished
from tests.made_up.sockets import listening, others_hear
from tests.made_up.waiting import until

DOCUMENT = PROJECT / "docs" / "cluster.md"
CLOUD = "# needs a cloud account"


def blocks() -> list[str]:
    """Its blocks of shell commands."""
    return re.findall(r"^```bash\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)


def lines_of(block: str) -> list[str]:
    """Commands, continued lines joined and what `<<END` feeds left out."""
    text = re.sub(r"<<END\n.*?^END$", "", block, flags=re.DOTALL | re.MULTILINE)
    joined = text.replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip() and line[0] != "#"]


def test_commands_of_ray_parse():
    """Those of studies, test_docs.py parses."""
    from ray.scripts.scripts import cli  # takes seconds

    lines = [line for block in blocks() for line in lines_of(block)]
    rays = [line for line in lines if line.startswith("ray ")]
    assert len(rays) > 10
    for line in rays:
        words, _, job = line.partition(" -- ")
        arguments = shlex.split(words, comments=True)[1:]
        if ">" in arguments[-1]:
            arguments.pop()
        if job:
            arguments += ["--", *shlex.split(job)]
        command = cli
        while isinstance(command, click.Group):
            command = command.commands[arguments.pop(0)]
        command.make_context(command.name, arguments)
        if job:
            assert job.startswith("python -m study.run ")


# On one machine

TINY = "--set m=4 n=120 paradigm=soft seed=0 confirm=none lr=0.1 epochs=2"
LONG = (
    "--checkpoint-every 0.2 --set m=4 n=2000 paradigm=soft seed=0-5 confirm=none lr=0.1 epochs=300"
)
"""Five cells take longer than `ray job stop` needs to start and be heard."""


@pytest.fixture
def work() -> Iterator[Path]:
    """A short path: Ray's sockets lie below."""
    with tempfile.TemporaryDirectory(prefix="c", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.faults
@pytest.mark.timeout(600)
def test_one_machine_from_nothing_to_a_finished_study(work):
    """Though its driver is killed once, and its job stopped once."""
    project, results = work / "project", work / "project" / "results"
    project.mkdir()
    for name in ("study", "analysis", "search_spaces", "chapters"):
        (project / name).symlink_to(PROJECT / name)
    (project / ".venv").symlink_to(sys.prefix)
    elsewhere = (CLOUD, "cluster_name:", "ray exec", "ray up", "ray down", "ray dashboard")
    environment_of_all, token, *ours = [b for b in blocks() if not b.startswith(elsewhere)]

    def block(words):
        """The one that shows these words."""
        (found,) = (each for each in ours if words in each)
        return found

    begin = (environment_of_all + block("OSX_CLUSTER")).replace("uv sync\n", "")
    join, submit = block("--address auto"), block("ray job list").splitlines()[0]
    stop, submit_again = block("ray job stop").splitlines()
    logs = "ray job logs --address http://127.0.0.1:8265 second"

    head_port, dashboard, client, agent = processes.free_ports(4)
    start = block("ray start --head").replace("ray start", f"exec ray start --num-cpus=2 "
        f"--port={head_port} --dashboard-port={dashboard} --ray-client-server-port={client} "
        f"--dashboard-agent-listen-port={agent}")  # fmt: skip
    environment = {
        **os.environ, "HOME": str(work), "RAY_TMPDIR": str(work), "RAY_JOB_STOP_WAIT_TIME_S": "60",
        "ATTENTION_STUDY_CACHE": str(work / "cache"),
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # under `uv run pytest`, too
    }  # fmt: skip
    environment.pop("PYTHONPATH", None)

    def typed(script, digits, **changes):
        script = script.replace(":8265", f":{dashboard}")
        script = script.replace("study.run digits", f"study.run digits --tracking none {digits}")
        return subprocess.run(
            ["bash", "-euc", begin + script], env=environment | changes,
            cwd=project, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    def run(script, digits=TINY):
        done = typed(script, digits)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def recorded():
        return Results(results).finished()

    with (work / "head.log").open("w") as log:
        head = subprocess.Popen(
            ["bash", "-euc", begin + token + start],
            env=environment, cwd=project, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        # Before `ray start` leaves this file, `auto` may be the cluster of another test.
        until((work / "ray" / "ray_current_cluster").exists, lambda: "ray start did not end")
        version = f"http://127.0.0.1:{dashboard}/api/version"
        assert requests.get(version, timeout=10).status_code == 401  # without the token
        ours_listen = listening(head.pid)
        assert f"127.0.0.1:{dashboard}" in ours_listen
        assert others_hear(ours_listen) == {}
        assert (work / ".ray" / "auth_token").stat().st_mode & 0o077 == 0
        stranger = typed(join, TINY, RAY_AUTH_TOKEN="0" * 64)
        assert stranger.returncode == 2, stranger.stderr
        assert "Traceback" not in stranger.stderr
        assert "refused this command's token" in stranger.stderr.splitlines()[-1]
        assert "trials at a time: 1" in run(join)
        assert len(recorded()) == 1

        assert "first" in run(submit, LONG)
        until(lambda: unfinished(results), lambda: run(logs.replace("second", "first")))
        drivers = [
            pid for pid, each in processes.below(head.pid).items() if "python -m study.run" in each
        ]
        assert drivers
        for pid in drivers:
            os.kill(pid, signal.SIGKILL)
        until(lambda: not processes.training(head.pid), lambda: "training outlives its driver")
        left, before = unfinished(results), recorded()
        assert left

        run(submit.replace("first", "second"), LONG)
        until(lambda: recorded() > before, lambda: run(logs))
        assert "was stopped" in run(stop.replace("first", "second"))
        said = run(logs)
        assert "on the cluster at auto" in said
        for cell_id in left:
            assert f"cell {cell_id} goes on from its checkpoint" in said
        assert "the same command goes on where this one ended" in said
        before = recorded()
        assert "succeeded" in run(submit_again.replace("second", "third"), LONG)
        assert before < recorded()
        assert len(recorded()) == 7
    finally:
        family = [psutil.Process(head.pid), *psutil.Process(head.pid).children(recursive=True)]
        head.send_signal(signal.SIGINT)
        head.wait(60)
    _, alive = psutil.wait_procs(family, timeout=30)
    for process in alive:
        process.kill()
    assert not alive
