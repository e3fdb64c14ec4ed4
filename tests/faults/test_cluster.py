"""A cluster of several nodes on this machine: where cells train, and what is refused at start."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from study.errors import RequestError
from study.launch.cluster import join
from study.results import Results
from tests.conftest import PROJECT
from tests.made_up.commands import python
from tests.made_up.parts import HALF
from tests.made_up.small_study import assert_whole, start, wait_for, wait_until
from tests.made_up.tiny_studies import MOSAICS

pytestmark = pytest.mark.timeout(600)


PREPARED = """
import os, pathlib
from study.tasks.mosaics import digits
folder = pathlib.Path(os.environ["ATTENTION_STUDY_CACHE"])
read = digits._divided
def counted():
    with (folder.parent / f"{folder.name}-prepared").open("a") as file:
        file.write("x")
    return read()
digits._divided = counted
"""
"""Notes every preparation of data, beside the cache."""

HELD = """
import pathlib, time
from study.train.steps.checkpoints import Checkpoints
steps, due = iter(range(100)), Checkpoints.due
def held(*members):
    if next(steps, None) is not None:
        time.sleep(0.01)
    else:
        while not any(pathlib.Path(CACHE).glob("prepared/digits*")):
            time.sleep(0.1)
    return due(*members)
Checkpoints.due = held
"""
"""Stops after some slow steps, at which a cell is saved, until data are in another cache."""

GARBAGE = """
import threading, time
from study.launch.cluster import ray_session
def discard(references):
    while references:
        cycle = [references.pop()]
        cycle.append(cycle)
        [[] for _ in range(800)]  # Python looks for garbage among what is new
        time.sleep(0.0001)
with ray_session(1) as ray:
    references = [ray.put(number) for number in range(10_000)]
    thread = threading.Thread(target=discard, args=(references,))
    thread.start()
print("went on")
thread.join()
"""
"""Frees references to Ray's objects, by Python's collector, in a thread that outlives Ray."""

_LOST: list[Any] = []
"""Nodes that were killed: Python warns of what is collected with them."""


class Nodes:
    """A head that does not train, and nodes with one core and one made-up GPU each."""

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster as RayCluster

        self._folder = folder
        head = {
            "num_cpus": 0,
            "include_dashboard": False,
            "dashboard_port": None,
            # Ray takes a node for lost that fails five checks, by default one every 3 s.
            "_system_config": {"health_check_period_ms": 300},
        }
        self._cluster = RayCluster(initialize_head=True, head_node_args=head)
        self.address: str = self._cluster.address

    def add(self, name: str, patch: str = PREPARED) -> Any:
        """A node with a cache of its own, whose workers begin with some code."""
        code = self._folder / f"{name}-code"
        code.mkdir()
        (code / "patch.py").write_text(patch)
        (code / "sitecustomize.py").write_text(
            "import sys\n"
            "if any('default_worker' in word for word in sys.orig_argv):\n"
            f"    exec(open({str(code / 'patch.py')!r}).read())\n"
        )
        return self._cluster.add_node(
            num_cpus=1,
            num_gpus=1,
            env_vars={
                "ATTENTION_STUDY_CACHE": str(self.cache(name)),
                "PYTHONPATH": f"{code}:{PROJECT}",
            },
        )

    def lose(self, node: Any) -> None:
        _LOST.append(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def cache(self, name: str) -> Path:
        return self._folder / f"{name}-cache"

    def hold(self, until: str) -> str:
        """Code that stops training there until a node begins to train."""
        return PREPARED + HELD.replace("CACHE", repr(str(self.cache(until))))

    def preparations(self, name: str) -> int:
        """How often data were prepared on a node."""
        file = self._folder / f"{name}-cache-prepared"
        return len(file.read_text()) if file.exists() else 0

    def stop(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory) -> Iterator[Nodes]:
    """Without a node that trains; those that a test adds, it takes away."""
    made = Nodes(tmp_path_factory.mktemp("nodes"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def one_node(nodes) -> Nodes:
    """With one that stays, for the last tests of this file."""
    nodes.add("stays")
    return nodes


def test_nodes_share_a_study_come_and_go(nodes, tmp_path, whole):
    """What is lost with a node are steps since a checkpoint; what comes out, no bit of it."""
    lost = nodes.add("lost", nodes.hold(until="never"))
    kept = nodes.add("kept", nodes.hold(until="late"))
    results = tmp_path / "results"
    process = start(results, "--address", nodes.address)
    wait_until(lambda: len(list(results.glob("checkpoints/*.ckpt"))) == 2, process)
    late = nodes.add("late")
    wait_for("cells/*.parquet", results, process)
    saved = {path.stem for path in results.glob("checkpoints/*.ckpt")}
    nodes.lose(lost)
    printed, _ = process.communicate(timeout=400)
    nodes.lose(kept)
    nodes.lose(late)
    assert process.returncode == 0, printed
    given_up = set(re.findall(r"\w+", " ".join(re.findall(r"cell (.*): worker lost", printed))))
    assert given_up, printed
    went_on = set(re.findall(r"cell (\w+) goes on from its checkpoint at step [1-9]", printed))
    assert given_up & saved
    assert given_up & saved <= went_on, printed
    assert [nodes.preparations(name) for name in ("lost", "kept", "late")] == [1, 1, 1]
    assert_whole(results, {}, whole)


def test_a_node_that_cannot_train_is_named(nodes):
    """Without the project, or with another version of it."""
    version = "import study.cell.version\nstudy.cell.version.source_digest = lambda: 'other'"
    with join(nodes.address) as cluster:
        for name, patch, said in (
            ("without", "sys.modules['study'] = None", "cannot import this project .*uv sync"),
            ("other", version, "has another version of this project"),
        ):
            node = nodes.add(name, patch)
            with pytest.raises(RequestError, match=f"^node .* {said}"):
                cluster.require()
            nodes.lose(node)


def typed(
    nodes: Nodes, *words: str, study: str = "digits", **environment: str
) -> subprocess.CompletedProcess[str]:
    """A study of the cluster, as a user types it."""
    command = ("-m", "study.run", study, "--address", nodes.address)
    return python(*command, *words, **environment)


def test_a_command_that_does_not_fit_the_cluster_is_refused(one_node, tmp_path):
    """It has another Ray; or a token, for which the cluster does not ask."""
    (tmp_path / "sitecustomize.py").write_text("import ray\nray.__version__ = '2.1.0'\n")
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
    for environment, said in (
        ({"PYTHONPATH": f"{tmp_path}:{PROJECT}"}, "differ in Ray or Python .*2.1.0"),
        (token, r"starts no worker for this command \(The actor died.*Set RAY_AUTH_MODE to"),
    ):
        done = typed(one_node, "--results", str(tmp_path / "results"), **environment)
        assert done.returncode == 2, done.stdout + done.stderr
        assert re.fullmatch(rf"study.run: .*{said}.*", done.stderr.splitlines()[-1])
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "results").exists()


def test_nodes_know_chapters_and_parts_and_the_plan_counts_nodes(one_node, tmp_path):
    """The file of parts is a pipe, which only the command can have read."""
    pipe, results = tmp_path / "my_parts.py", tmp_path / "results"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=(HALF,), daemon=True).start()
    small = f"{MOSAICS} lr=0.1 seed=0-1 confirm=none paradigm=half"
    done = typed(
        one_node, "--with", str(pipe), "--results", str(results), "--tracking", "none",
        "--price-per-hour", "2.5", "--set", *small.split(), study="series",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    cells = Results(results).cells()
    assert [*cells["paradigm"], *cells["task"]] == ["half", "half", "series", "series"]
    plan = done.stdout
    assert f"on the cluster at {one_node.address}: " in plan
    assert "trials at a time: 1," in plan
    found = re.search(r"estimated GPU hours: ([\d.e-]+), which cost ([\d.e-]+) at 2.5 each", plan)
    assert found, plan
    hours, cost = map(float, found.groups())
    assert cost == pytest.approx(2.5 * hours, rel=0.06)


def test_a_command_outlives_the_ray_that_it_started():
    done = python("-c", GARBAGE)
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
