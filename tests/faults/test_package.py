"""The project and a repository of one's own, installed from wheels and used from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

import analysis
from study.results import Results
from tests.conftest import PROJECT

EXAMPLE = PROJECT / "examples" / "my-attention"
TINY = "n=200 epochs=2 lr=0.1 seed=0 confirm=100-101 paradigm=soft,sparsemax test_size=100"

Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Call:
    """Calls a command of an environment that has both wheels, in a folder far from the source.

    In that folder files have the names of this project's packages, and spoil whatever imports
    them. What the wheels depend on is this environment's own: to install it takes minutes.
    """
    if shutil.which("uv") is None:
        pytest.skip("needs uv and a package registry")
    folder = tmp_path_factory.mktemp("package")
    wheels, venv = folder / "wheels", folder / "venv"
    for source in (PROJECT, EXAMPLE):
        build = ["uv", "build", "--quiet", "--wheel", "--out-dir", str(wheels), str(source)]
        subprocess.run(build, check=True)
    pins = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["uv"]
    assert (wheels / "constraints.txt").read_text().split() == pins["constraint-dependencies"]
    subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, str(venv)], check=True)
    python = venv / "bin" / "python"
    install = ["uv", "pip", "install", "--quiet", "--python", str(python), "--no-deps"]
    subprocess.run([*install, *map(str, wheels.glob("*.whl"))], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    # A .pth within that folder is not followed, so its editable install of this project is not.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    for name in ("study", "analysis", "chapters"):
        (elsewhere / f"{name}.py").write_text("raise SystemExit('a file of the user')\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def call(command, *arguments):
        return subprocess.run(
            [venv / "bin" / command, *arguments],
            cwd=elsewhere,
            env=environment,
            capture_output=True,
            text=True,
            timeout=280,
        )

    return call


def test_it_is_imported_from_the_wheel(installed):
    code = (
        "import analysis, study.cell.version as version;"
        "from search_spaces import STUDIES;"
        "import sys; print(version.__file__, version.code_version(), 'series' in STUDIES);"
        "print(sys.modules['chapters.series.parts'].__file__)"
    )
    done = installed("python", "-P", "-c", code)
    project, chapter = done.stdout.splitlines()
    assert re.search(r"site-packages.*\+source\..* True", project), done.stderr
    assert "site-packages" in chapter


def test_a_repository_of_ones_own_is_found_checked_and_run(installed, tmp_path):
    """By its entry point, so without --with, also on Ray's workers."""
    checked = installed("attention-study", "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "paradigm sparsemax" in checked.stdout
    results = str(tmp_path / "results")
    arguments = ("shapes", "--results", results, "--tracking", "none", "--set", *TINY.split())
    ran = installed("attention-study", "run", *arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "sparsemax - soft" in ran.stdout
    assert len(Results(results).cells()) == 4
    (comparison,) = analysis.compare_results(results)
    assert list(comparison.summary["paradigm"]) == ["soft", "sparsemax"]
    reported = installed("attention-study", "report", results)
    assert reported.returncode == 0, reported.stderr


def test_what_a_package_alone_brings_is_used(installed, tmp_path):
    """A measure with its column, a task that has it, settings, a refusal, a command."""
    results = tmp_path / "results"
    arguments = ("rings", "--results", str(results), "--tracking", "none", "--set", *TINY.split())
    refused = installed("attention-study", "run", *arguments, "split=shared-base", "--plan")
    assert "a network could know those of a shared split by heart" in refused.stderr
    refused = installed("attention-study", "run", *arguments, "kernel_size=5", "--plan")
    assert "Did you mean 'kernel'?" in refused.stderr
    ran = installed("attention-study", "run", *arguments, "kernel=5")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "kernel-convolutions batch 256 kernel 5" in ran.stdout
    for file in results.glob("cells/*.parquet"):
        assert pq.read_table(file).to_pandas()["attended_segments"].between(1, 5).all()
    told = installed("attention-study", "spread", str(results))
    assert told.returncode == 0, told.stderr
    code = f"from analysis import attended_segments as a; print(len(a({str(results)!r})))"
    assert installed("python", "-P", "-c", code).stdout == "2\n"
    page = (results / "report" / "rings" / "report.html").read_text()
    for name, line in zip(("soft", "sparsemax"), told.stdout.splitlines()[1:], strict=True):
        paradigm, segments = line.split()[-2:]
        assert paradigm == name
        assert re.search(rf"attended segments</th>(?s:.)*>{name}</td><td>{segments}</td>", page)
    assert "spread" in installed("attention-study", "--help").stdout
