"""Where Ray keeps its sockets, whose paths have a limit."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from study.errors import RequestError
from study.launch.cluster import LONGEST_FOLDER, _folder_for_ray
from tests.conftest import PROJECT


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
    variables: dict[str, str],
    folder: str,
    short: str,
    tmp_path: Path,
    environment: pytest.MonkeyPatch,
) -> None:
    long = tmp_path / ("x" * LONGEST_FOLDER)
    long.mkdir()
    for name, value in variables.items():
        environment.setenv(name, value.format(short=short, long=long))
    assert _folder_for_ray() == os.path.join(folder.format(short=short), "ray")


def test_where_nothing_can_be_written_it_is_the_users_own_or_the_one_asked_for(
    short: str, tmp_path: Path, environment: pytest.MonkeyPatch
) -> None:
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
def test_ray_starts_whatever_the_length_of_the_folder(size: int, short: str) -> None:
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
