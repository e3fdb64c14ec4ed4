"""The scripts of examples/slurm on a real Slurm: a controller and two nodes of this machine's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import PROJECT
from tests.made_up import slurm as slurms
from tests.made_up.slurm import Slurm, until
from tests.made_up.small_study import arguments, assert_whole, files

pytestmark = pytest.mark.timeout(600)

SCRIPTS = PROJECT / "examples" / "slurm"
STUDY = "examples/slurm/study.sbatch"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    if not slurms.there():
        pytest.skip("needs root, slurm-wlm and munge, which .ci/run installs")
    own = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "TUNE_", "SLURM_"))}
    made = Slurm(tmp_path_factory.mktemp("slurm"), own)
    with made.running():
        yield made


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a user stands, with an environment."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("study", "analysis", "search_spaces", "examples"):
        (folder / name).symlink_to(PROJECT / name)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def log(project: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(project.glob("*.log")))


def test_shards_are_an_array_and_the_report_is_made_once(
    slurm: Slurm, project: Path, tmp_path: Path, whole: pd.DataFrame
) -> None:
    """A round for each stage; the first one is told that its time ends while it trains."""
    results = tmp_path / "results"
    study = arguments(results)
    for name in ("study", "shards"):  # so Slurm tells a job in time, and takes it again
        script = (SCRIPTS / f"{name}.sbatch").read_text()
        for option in ("--open-mode=append", "--signal=B:USR1@120", "--requeue"):
            assert f"\n#SBATCH {option}\n" in script

    def submit(script: str, *options: str) -> str:
        return slurm.call(
            "sbatch", "--parsable", "--cpus-per-task=1", *options,
            script, *study, cwd=project,
        )  # fmt: skip

    for line in ("#SBATCH --array=1-16", "SHARDS=16"):
        assert line in script
        script = script.replace(line, line.replace("16", "3"))
    (project / "shards.sbatch").write_text(script)
    first = submit("shards.sbatch")
    second = submit("shards.sbatch", f"--dependency=afterany:{first}")
    report = submit(STUDY, "--nodes=1", f"--dependency=afterany:{second}")
    until(lambda: bool(list(results.glob("checkpoints/*"))), lambda: log(project))
    slurm.call("scancel", "--batch", "--signal=USR1", first)
    until(lambda: "1" in slurm.told(first, "Restarts"), lambda: log(project))
    kept = files(results)
    for job in (first, second):
        slurm.wait_for(job)
    told = log(project)
    assert "stopped; the same command goes on where this one ended" in told
    assert "the job's time is over: queued again" in told
    assert "goes on from its checkpoint" in told
    slurm.wait_for(report)
    assert_whole(results, kept, whole)
    assert log(project).count("report: ") == 1
    assert "10 cells: 10 done already, 0 to run" in log(project)


def test_ray_runs_on_the_nodes_of_a_job_until_the_study_is_done(
    slurm: Slurm, project: Path, tmp_path: Path, whole: pd.DataFrame
) -> None:
    """Though its time ends before, and though another job's Ray runs on the same nodes."""
    results = tmp_path / "results"
    job = slurm.call(
        "sbatch", "--parsable", "--cpus-per-task=1", "--nodes=2", STUDY,
        *arguments(results), cwd=project,
    )  # fmt: skip
    until(lambda: bool(list(results.glob("checkpoints/*"))), lambda: log(project))
    slurm.call("scancel", "--batch", "--signal=USR1", job)
    until(lambda: "1" in slurm.told(job, "Restarts"), lambda: log(project))
    kept = files(results)
    slurm.wait_for(job)
    told = (project / f"study-{job}.log").read_text()
    assert told.count("Ray runs on 2 of 2 nodes") == 2
    assert "stopped; the same command goes on where this one ended" in told
    assert "queued again" in told
    assert_whole(results, kept, whole)
    until(lambda: not Path(f"/tmp/ray-{job}").exists(), lambda: "its folder stays")
