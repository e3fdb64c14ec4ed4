"""What fits on the nodes of a cluster, as Ray and `ray up` say it; where Ray has its sockets."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from study.errors import RequestError
from study.launch.cluster import LONGEST_FOLDER, _folder_for_ray
from study.launch.nodes import Cluster, Node
from tests.conftest import PROJECT

GROWS = {
    "max_workers": 3,
    "head_node_type": "head",
    "available_node_types": {
        "head": {"resources": {"CPU": 0}, "max_workers": 0},
        "spot": {"resources": {"CPU": 8, "GPU": 1}, "max_workers": 3},
        "on-demand": {"resources": {"CPU": 8, "GPU": 1}, "max_workers": 3},
    },
}


def there(cpus: float, gpus: float = 0, alive: bool = True) -> dict[str, Any]:
    resources = {"CPU": cpus, "GPU": gpus, "memory": 1.0}
    return {
        "NodeID": "1",
        "Alive": alive,
        "NodeManagerHostname": "host",
        "NodeManagerAddress": "10.0.0.1",
        "Resources": {name: value for name, value in resources.items() if value},
    }


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Cluster]:
    """Makes a cluster of these nodes, whose head `ray up` started if it may grow."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def make(*nodes: dict[str, Any], grows: bool = False) -> Cluster:
        if grows:
            (tmp_path / "ray_bootstrap_config.yaml").write_text(yaml.safe_dump(GROWS))
        return Cluster(SimpleNamespace(nodes=lambda: list(nodes)), "head:6379")

    return make


@pytest.mark.parametrize(
    ("cpus", "gpus", "threads", "each", "slots"),
    [
        (8, 4, 1, 1, 4),
        (8, 4, 4, 1, 2),
        (8, 3, 1, 0.4, 6),  # two on each, none on two halves
        (16, 1, 1, 0.1, 10),
        (8, 4, 1, 2, 2),
        (8, 0, 2, 0, 4),
        (8, 0, 1, 1, 0),
        (8, 4, 1, 0, 8),
    ],
)
def test_trials_that_find_room_on_a_node(cpus, gpus, threads, each, slots):
    assert Node("x", cpus, gpus).slots(threads, each) == slots


def test_dead_nodes_and_those_without_cores_do_not_train(cluster):
    found = cluster(there(4), there(8, alive=False), there(0))
    assert [node.cpus for node in found.nodes] == [4]
    assert found.slots(1, 0) == 4
    assert found.default_gpus() == 0


def test_a_cluster_counts_what_it_may_grow_to(cluster):
    """No GPU is there yet: trials are planned for those that will be, never for the head."""
    found = cluster(there(0), grows=True)
    assert found.nodes == []
    assert [node.gpus for node in found.to_come] == [1, 1, 1]
    assert found.default_gpus() == 1
    assert found.slots(1, 1) == 3
    started = cluster(there(0), there(8, 1), there(8, 1), grows=True)
    assert started.slots(1, 1) == 3


def test_what_fits_nowhere_is_refused(cluster):
    with pytest.raises(RequestError, match=r"4 CPU cores and 0 GPUs, .*:6379 has \(host \(10"):
        cluster(there(2)).slots(4, 0)
    with pytest.raises(RequestError, match=r"has \(none may train\)"):
        cluster(there(0)).slots(1, 0)
    with pytest.raises(RequestError, match=r"8 CPU cores and 1 GPU\)"):
        cluster(there(0), grows=True).slots(1, 2)


# --- sockets, whose paths have a limit


@pytest.fixture
def short() -> Iterator[str]:
    """A folder with a short path."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield folder


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Of a process that has not asked for its folder of temporary files."""
    for name in ("RAY_TMPDIR", "XDG_RUNTIME_DIR", "TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    return monkeypatch


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({}, "/tmp"),
        ({"TMPDIR": "{short}"}, "{short}"),
        ({"TMPDIR": "{long}"}, "/tmp"),
        ({"TMPDIR": "{short}/missing"}, "/tmp"),
        ({"TMPDIR": "/proc"}, "/tmp"),  # not even root can write there
        ({"TMPDIR": "{long}", "RAY_TMPDIR": "{short}"}, "{short}"),
        ({"TMPDIR": "{short}", "RAY_TMPDIR": "{long}"}, "{short}"),
    ],
)
def test_ray_has_a_folder_that_is_there_and_short_enough(
    variables,
    folder,
    short,
    tmp_path,
    environment,
):
    long = tmp_path / ("x" * LONGEST_FOLDER)
    long.mkdir()
    for name, value in variables.items():
        environment.setenv(name, value.format(short=short, long=long))
    assert _folder_for_ray() == os.path.join(folder.format(short=short), "ray")


def test_where_nothing_can_be_written_it_is_the_users_own_or_the_one_asked_for(
    short, tmp_path, environment
):
    """Python itself may find no folder for temporary files; else one line says what to set."""
    environment.setenv("TMPDIR", str(tmp_path))
    environment.setattr(os, "access", lambda path, _: path.startswith(short))
    for candidates in (tempfile._candidate_tempdir_list, list):
        environment.setattr(tempfile, "_candidate_tempdir_list", candidates)
        for name in ("XDG_RUNTIME_DIR", "RAY_TMPDIR"):
            with environment.context() as patch:
                patch.setenv(name, short)
                assert _folder_for_ray() == os.path.join(short, "ray")
        with pytest.raises(RequestError, match=rf"TMPDIR={tmp_path}.*Set RAY_TMPDIR"):
            _folder_for_ray()


@pytest.mark.faults
@pytest.mark.parametrize("size", [LONGEST_FOLDER, 90])
def test_ray_starts_whatever_the_length_of_the_folder(size, short):
    folder = os.path.join(short, "x" * (size - len(short) - 1))
    os.mkdir(folder)
    code = "from study.launch.cluster import ray_session\nwith ray_session(1): print('started')"
    environment = {**os.environ, "TMPDIR": folder}
    environment.pop("RAY_TMPDIR", None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == "started\n", done.stderr
    assert os.path.exists(os.path.join(folder, "ray")) == (size <= LONGEST_FOLDER)
