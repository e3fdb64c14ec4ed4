"""The Dockerfile keeps what cluster.yaml, the package and the documents say of it.

An image takes Docker and gigabytes; these are its parts that change elsewhere.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib

import pytest
from packaging.specifiers import SpecifierSet

from study.launch import cluster
from study.run_options import requested
from study.terminal.command import COMMANDS
from tests.conftest import PROJECT


def read(name: str) -> str:
    """A file of the project, commands on one line each."""
    return (PROJECT / name).read_text().replace("\\\n", " ")


IMAGE = read("Dockerfile")
PACKAGE = tomllib.loads(read("pyproject.toml"))


def instructions(name: str) -> list[str]:
    """The arguments of an instruction, each time it is there."""
    return re.findall(rf"^{name} +(.*)$", IMAGE, re.MULTILINE)


def test_python_and_uv_are_those_of_a_cluster():
    """Ray refuses a node with another Python, even another patch of it."""
    (base,), nodes = instructions("FROM"), read("cluster.yaml")
    (python,) = re.findall(r"--python (\S+)", nodes)
    assert base == f"python:{python}-slim"
    assert python in SpecifierSet(PACKAGE["project"]["requires-python"])
    (uv,) = re.findall(r"uv/([\d.]+)/install", nodes)
    assert f"uv=={uv}" in IMAGE


def test_it_holds_what_the_package_is_built_from_and_no_more():
    allowed = {line[1:] for line in read(".dockerignore").splitlines() if line[:1] == "!"}
    packages = PACKAGE["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    files = {"pyproject.toml", "hatch_build.py", PACKAGE["project"]["readme"], "LICENSE"}
    assert allowed == {*packages, *files}
    assert all((PROJECT / name).exists() for name in allowed)


def test_workers_read_the_settings_that_launchers_give():
    environment = dict(
        pair.split("=", 1) for line in instructions("ENV") for pair in shlex.split(line)
    )
    settings = {**cluster._WORKER_SETTINGS, **cluster.SETTINGS}
    drivers = {name for name in settings if name.startswith(("TUNE_", "RAY_AIR_"))}
    assert environment.items() >= {n: v for n, v in settings.items() if n not in drivers}.items()
    assert environment["HOME"] == instructions("WORKDIR")[-1] == instructions("VOLUME")[0]


def documented(command: str) -> list[str]:
    """Every such command that the document shows, without its name."""
    return re.findall(rf"^docker {command} (.*)$", read("docs/running.md"), re.MULTILINE)


def test_documented_builds_name_its_arguments():
    named = re.findall(r"--build-arg (\w+)=", " ".join(documented("build")))
    assert named == instructions("ARG")


@pytest.mark.parametrize("command", documented("run"))
def test_a_documented_run_is_understood(command):
    options, arguments = command.split(" attention-study ")
    assert f'-v "$PWD:{instructions("VOLUME")[0]}"' in options
    if "--entrypoint" in options:
        return
    assert json.loads(instructions("ENTRYPOINT")[0]) == [*PACKAGE["project"]["scripts"]]
    name, *rest = arguments.split()
    assert name in COMMANDS
    if name == "run":
        requested(rest)
