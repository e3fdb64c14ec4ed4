"""The scripts of examples/slurm on a real Slurm: a controller and two nodes of this machine's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.made_up import slurm as slurms
from tests.made_up.slurm import Slurm
from tests.made_up.small_study import CELLS, arguments, assert_whole, files
from tests.made_up.waiting import until

pytestmark = pytest.mark.timeout(600)

SCRIPTS = PROJECT / "examples" / "slurm"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[Slurm]:
    if not slurms.there():
        pytest.skip("needs root, slurm-wlm and munge, which .ci/run installs")
    own = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "TUNE_", "SLURM_"))}
    made = Slurm(tmp_path_factory.mktemp("slurm"), own)
    with made.running():
        yield made


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """Where a user stands, with an environment."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("study", "analysis", "search_spaces", "chapters", "examples"):
        (folder / name).symlink_to(PROJECT / name)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def test_shards_train_and_ray_does_the_rest(slurm, project, tmp_path, whole):
    """A round of shards tunes the hybrids, one confirms them; Ray on two nodes ends and reports.

    The first round and the job with Ray are told that their time ends while they train.
    """
    results = tmp_path / "results"
    for name in ("study", "shards"):  # so Slurm tells a job in time, and takes it again
        script = (SCRIPTS / f"{name}.sbatch").read_text()
        for option in ("--open-mode=append", "--signal=B:USR1@120", "--requeue"):
            assert f"\n#SBATCH {option}\n" in script
    assert "#SBATCH --array=1-16\n" in script
    script = script.replace("--array=1-16", "--array=1-2")
    (project / "shards.sbatch").write_text(script)

    def log(of="*"):
        return "\n".join(path.read_text() for path in sorted(project.glob(f"{of}.log")))

    def submit(script, study, *options):
        always = ("--parsable", "--cpus-per-task=1")
        return slurm.call("sbatch", *always, *options, script, *study, cwd=project)

    def end_the_time_of(job):
        until(lambda: any(results.glob("checkpoints/*")), log)
        slurm.call("scancel", "--batch", "--signal=USR1", job)
        until(lambda: "1" in slurm.told(job, "Restarts"), log)

    study = arguments(results)
    hybrids = [word.replace("=soft,hard,", "=") for word in study]
    first = submit("shards.sbatch", hybrids)
    second = submit("shards.sbatch", hybrids, f"--dependency=afterany:{first}")
    rest = submit("examples/slurm/study.sbatch", study, f"--dependency=afterany:{second}")
    end_the_time_of(first)
    for job in (first, second):
        slurm.wait_for(job)
    kept = files(results)
    assert 0 < len(kept) < CELLS
    assert not any(results.glob("checkpoints/*"))
    end_the_time_of(rest)
    kept |= files(results)
    slurm.wait_for(rest)
    assert_whole(results, kept, whole)
    of_shards, of_ray = log("shard-*"), log(f"study-{rest}")
    for told in (of_shards, of_ray):
        assert "stopped; the same command goes on where this one ended" in told
        assert "the job's time is over: queued again" in told
    assert "goes on from its checkpoint" in of_shards
    assert of_ray.count("Ray runs on 2 of 2 nodes") == 2
    assert log().count("\nreport: ") == 1
    until(lambda: not Path(f"/tmp/ray-{rest}").exists(), lambda: "its folder stays")
