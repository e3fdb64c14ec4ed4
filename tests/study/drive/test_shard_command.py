"""`study.run --shard K/N`: shards train one study, beside one another and beside nobody else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from study import run
from study.cell.work import Job
from study.drive.as_shard import estimate
from study.plan.plan import Division, Plan, rows_of
from study.results import Results
from study.results.merging import compact
from study.terminal.command import DONE, FAILED, UNUSABLE
from study.train.steps.packs import Measured, Packing, shape
from tests.conftest import PROJECT, run_without_ray
from tests.made_up.commands import called
from tests.made_up.comparisons import make_cell
from tests.made_up.jobs import table

pytestmark = pytest.mark.usefixtures("digits", "no_pictures")

STUDY = """digits --threads 1 --set n=100 m=3 epochs=2 lr=0.1 switch_point=0.3,0.6 seed=0,1
confirm=100,101 paradigm=soft,hybrid batch_size=10 evaluations=2 train_metrics_size=20
validation_size=20 test_size=20"""
TINY = STUDY.split()
CELLS = 8
"""Two options of the hybrid tune on two seeds; it and soft are confirmed on two others."""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "results")


@pytest.fixture(autouse=True)
def short_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("study.plan.estimate.TIMED_FLOPS", {"cpu": 1})


@pytest.fixture
def call(url: str, capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls shard K/N with further options."""
    return lambda shard, *more: called(
        run.main, capsys, *TINY, "--results", url, "--shard", shard, *more
    )


def assert_as(url: str, whole: str) -> None:
    pd.testing.assert_frame_equal(table(url), table(whole), check_exact=True)
    assert stages(url) == stages(whole)


def stages(url: str) -> dict[str, str]:
    cells = Results(url).cells()
    return dict(zip(cells["cell_id"], cells["stage"], strict=True))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The directory of an uninterrupted run of `study.run`."""
    made = str(tmp_path_factory.mktemp("whole") / "results")
    run_without_ray([*TINY, "--results", made, "--tracking", "none"])
    return made


def test_shards_one_after_the_other_are_one_uninterrupted_run(call, url, whole):
    _, printed, _ = call("1/3")
    assert printed.startswith("shard 1/3\nstudy digits, preset quick")
    assert "3 cells: 0 done already, 3 to run" in printed
    assert "to come: 1 cell confirms what is not chosen yet. 3 tuning cells of other" in printed
    for shard in ("3/3", "2/3"):
        assert call(shard)[0] == DONE
    compact(Results(url))
    for shard in ("3/3", "2/3", "1/3"):
        status, printed, _ = call(shard)
        assert status == DONE
        assert "this share is done; once all are, the same command without --shard" in printed
    assert_as(url, whole)
    assert "0 to run" in call("1/3")[1]
    assert not list(Path(url).glob("checkpoints/*"))


def test_a_share_is_planned_without_training(call, url):
    status, printed, _ = call("1/3", "--plan")
    assert status == DONE
    assert "3 cells: 0 done already, 3 to run" in printed
    assert "report" not in printed
    assert call("100/100", "--plan")[:2] == (DONE, "shard 100/100\n")
    assert not Path(url).exists()
    assert call("100/100")[1].startswith("shard 100/100\nresults: ")


def test_a_shard_takes_all_cores_or_as_many_as_openmp_may(call, url, capsys, monkeypatch):
    """Where it takes all, it says how several share them."""
    monkeypatch.setattr("study.drive.as_shard.cores_for", lambda threads: 7)
    shared = "takes all 7 cores; if all 3 run on this machine, give each --threads 2"
    assert shared not in " ".join(call("1/3", "--plan")[1].split())
    words = [word for word in TINY if word not in ("--threads", "1")]
    for given, threads in (("3,2", 3), ("64", 7), ("", 7), ("0", 7)):
        monkeypatch.setenv("OMP_NUM_THREADS", given)
        arguments = (*words, "--results", url, "--shard", "1/3", "--plan")
        printed = called(run.main, capsys, *arguments)[1]
        assert f"CPU threads each: {threads}\n" in printed
        assert (shared in " ".join(printed.split())) == (given in ("", "0"))


def test_a_shard_without_time_leaves_its_cells_to_the_same_command(call, url):
    status, printed, _ = call("1/1", "--minutes", "1e-9")
    assert (status, Results(url).finished()) == (DONE, set())
    assert "would not have ended in time" in printed
    assert "this share is done" not in printed
    assert call("1/1", "--minutes", "60")[0] == DONE
    assert len(Results(url).finished()) == CELLS


def test_what_failed_is_told_and_tried_again(call, monkeypatch, url):
    def bug(job: Job, *_: object) -> None:
        raise ZeroDivisionError("of a test")

    monkeypatch.setattr("study.launch.here.run_job", bug)
    status, printed, errors = call("1/3")
    assert status == FAILED
    assert "failed: bug: ZeroDivisionError: of a test" in errors
    assert "Traceback" in errors
    assert "this share is done" not in printed
    monkeypatch.undo()
    assert call("1/3")[0] == DONE
    assert Results(url).finished()


def test_a_smaller_pack_takes_as_long_as_the_measured_one_or_its_cells_one_by_one():
    """Four cells in a pack are measured to take as long as two alone."""
    cells = tuple(make_cell("soft", 0.1, seed) for seed in range(4))
    packing = Packing("seed", measured={shape(cells[0]): Measured(4, 2.0)})
    rows = rows_of(cells, [None] * len(cells)).assign(alone=10.0)
    plan = Plan("digits", "training", "quick", rows, {}, Division(packing))
    took = [estimate(plan, Job((cells[:size],))) for size in (1, 2, 3, 4)]
    assert took == pytest.approx([20, 40, 40, 40])


def test_it_needs_neither_ray_nor_mlflow(url):
    """Nor Matplotlib."""
    blocked = ["ray", "mlflow", "optuna", "torchvision", "matplotlib"]
    code = f"""
import sys
for name in {blocked}:
    sys.modules[name] = None
from study.run import main
status = main({[*TINY, "--results", url, "--shard", "1/2"]})
assert not [name for name in {blocked} if sys.modules.get(name)]
sys.exit(status)
"""
    subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, stdout=subprocess.DEVNULL, check=True
    )
    assert "tune" in stages(url).values()


def test_a_driver_ends_what_shards_began_and_no_shard_runs_beside_it(call, url, whole):
    assert call("1/3")[0] == DONE
    with Results(url).lock():
        status, printed, errors = call("2/3")
    assert (status, printed, errors.count("\n")) == (UNUSABLE, "", 1)
    assert f"another study is running with the results directory {url}" in errors
    run_without_ray([*TINY, "--results", url, "--tracking", "none"])
    assert_as(url, whole)
