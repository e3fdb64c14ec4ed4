"""`study.run --shard K/N`: shards train one study, beside one another and beside nobody else."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

from study import run
from study.launch.failures import Failure
from study.launch.workplace import shared
from study.plan.planning import planned
from study.request import Request, Shard
from study.results import Results
from study.results.compaction import compact
from study.run_options import requested
from study.shards import run as shards
from study.shards.mark import Mark
from study.storage.storage import Storage
from study.terminal.command import DONE, FAILED, UNUSABLE
from tests.conftest import PROJECT, run_without_ray
from tests.made_up.commands import called

pytestmark = pytest.mark.usefixtures("digits", "no_pictures")

GRID = [
    "digits", "--set", "n=100", "m=3", "epochs=2", "lr=0.1", "switch_point=0.3,0.6",
    "paradigm=soft,hybrid", "batch_size=10", "evaluations=2", "train_metrics_size=20",
    "validation_size=20", "test_size=20", "--threads", "1",
]  # fmt: skip
SEEDS = ["--set", "seed=0,1", "confirm=100,101"]
TINY = [*GRID, *SEEDS]
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


def table(url: str) -> pd.DataFrame:
    """All but times, in a fixed order."""
    rows = Results(url).evaluations().drop(columns="train_seconds")
    return rows.sort_values(["cell_id", "budget_fraction", "split"], ignore_index=True)


def stages(url: str) -> dict[str, str]:
    cells = Results(url).cells()
    return dict(zip(cells["cell_id"], cells["stage"], strict=True))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The directory of an uninterrupted run of `study.run`."""
    made = str(tmp_path_factory.mktemp("whole") / "results")
    run_without_ray([*TINY, "--results", made, "--tracking", "none"])
    return made


def test_shards_one_after_the_other_are_one_uninterrupted_run(
    call: Call, url: str, whole: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, printed, _ = call("1/3")
    assert status == DONE
    assert "shard 1/3 of digits: 2 cells, 0 done already, 2 to run" in printed
    assert "to come: 1 cell confirms what is not chosen yet. Once all shards have ended" in printed
    for shard in ("3/3", "2/3"):
        assert call(shard)[0] == DONE
    compact(Results(url))
    for shard in ("3/3", "2/3", "1/3"):
        status, printed, _ = call(shard)
        assert status == DONE
        assert "this share is done; once all are, the same command without --shard" in printed
    pd.testing.assert_frame_equal(table(url), table(whole), check_exact=True)
    assert stages(url) == stages(whole)
    status, printed, _ = call("1/3")
    assert (status, "0 to run" in printed) == (DONE, True)
    command = [*TINY, "--results", url, "--tracking", "none"]
    status, printed, _ = called(run.main, capsys, *command)
    assert status == DONE
    assert f"{CELLS} cells: {CELLS} done already, 0 to run" in printed
    assert "report:" in printed
    assert not list(Path(url).glob("checkpoints/*"))


def test_an_only_shard_goes_from_one_stage_to_the_next(call: Call, url: str) -> None:
    assert call("1/1")[0] == DONE
    assert len(Results(url).finished()) == CELLS


def test_a_share_is_planned_without_training(call: Call, url: str) -> None:
    status, printed, _ = call("1/3", "--plan")
    assert status == DONE
    assert printed.startswith("shard 1/3\nstudy digits, preset quick")
    assert "3 cells: 0 done already, 3 to run" in printed
    assert "report" not in printed
    assert "to come: 1 cell" in printed
    status, printed, _ = call("100/100", "--plan")
    assert (status, printed) == (DONE, "shard 100/100\n")
    assert not Path(url).exists()


def test_a_shard_without_cells_has_nothing_to_do(call: Call) -> None:
    status, printed, _ = call("100/100")
    assert status == DONE
    assert "shard 100/100 of digits: 0 cells, 0 done already, 0 to run" in printed


def test_a_shard_without_time_leaves_its_cells_to_the_same_command(call: Call, url: str) -> None:
    status, printed, _ = call("1/1", "--minutes", "1e-9")
    assert (status, Results(url).finished()) == (DONE, set())
    assert "would not have ended in time" in printed
    assert "this share is done" not in printed
    assert call("1/1", "--minutes", "60")[0] == DONE
    assert len(Results(url).finished()) == CELLS


def test_what_failed_is_told_and_tried_again(
    call: Call, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    bug = Failure("bug", "ZeroDivisionError: of a test", ("x",))
    monkeypatch.setattr(shards, "train_in_turn", lambda *_: ([bug], []))
    status, printed, errors = call("1/3")
    assert status == FAILED
    assert "cell x failed: bug: ZeroDivisionError" in errors
    assert "this share is done" not in printed
    monkeypatch.undo()
    assert call("1/3")[0] == DONE
    assert Results(url).finished()


def test_it_needs_neither_ray_nor_mlflow(url: str) -> None:
    """And the same shard is not started twice, nor beside a driver."""
    blocked = ["ray", "mlflow", "optuna", "matplotlib", "torchvision"]
    code = f"""
import sys
for name in {blocked}:
    sys.modules[name] = None
from study.run import main
status = main({[*TINY, "--results", url]} + sys.argv[1:])
assert not [name for name in {blocked} if sys.modules.get(name)]
sys.exit(status)
"""

    def done(shard: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, "--shard", shard],
            cwd=PROJECT, capture_output=True, text=True, check=False,
        )  # fmt: skip

    request = requested([*TINY, "--shard", "3/3"])
    with beside(request, url) as storage, storage.lock_number(1):
        refused = done("1/3")
        assert refused.returncode == UNUSABLE
        assert refused.stderr == (
            f"study.run: shard 1/3 is running with the results directory {url}. Wait for its end, "
            "or start another shard.\n"
        )
        assert done("2/3").returncode == DONE


@contextlib.contextmanager
def beside(request: Request, url: str) -> Iterator[Storage]:
    """As long as one shard of a request trains."""
    shard = request.shard or Shard(1, 1)
    mark = Mark.of(request, shard, planned(request))
    with shared(url, mark.text, mark.why_not) as place:
        yield place.results.storage


OTHER = {
    "another number": ([*SEEDS, "--shard", "1/2"], "shards 3, here 2."),
    "another grid": (["--set", "seed=2", "confirm=100,101"], "grid 6 "),
    "other seeds": (["--set", "seed=0,1", "confirm=7"], "confirm [100, 101], here [7]."),
    "another choice": ([*SEEDS, "--select", "saif"], "select accuracy, here saif."),
}


@pytest.mark.parametrize("name", OTHER)
def test_shards_that_would_divide_otherwise_wait_for_those_that_run(
    name: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options, words = OTHER[name]
    command = [*GRID, "--results", url, "--shard", "1/3", *options]
    with beside(requested([*TINY, "--shard", "3/3"]), url):
        status, printed, errors = called(run.main, capsys, *command)
    assert (status, printed) == (UNUSABLE, "")
    assert errors.count("\n") == 1
    assert words in errors
    assert "Wait for their end, or choose another directory" in errors
    assert called(run.main, capsys, *command)[0] == DONE


def test_other_data_are_refused_though_nothing_is_recorded(call: Call, url: str) -> None:
    request = requested([*TINY, "--shard", "3/3"])
    mark = Mark.of(request, Shard(3, 3), planned(request))
    other = dataclasses.replace(mark, data={"digits": "0" * 16})
    for running in (True, False):
        with contextlib.ExitStack() as stack:
            if running:
                stack.enter_context(shared(url, other.text, other.why_not))
            status, _, errors = call("1/3")
        assert status == UNUSABLE
        assert errors == (
            f"study.run: shards of digits trained on digits with digest {'0' * 16}, but here it "
            "has digest 026b396193029697. Name the same data with --data-dir DIR, or choose "
            "another directory with --results DIR.\n"
        )
    assert Results(url).marked() == other.text


def test_other_data_are_refused_after_files_were_merged(call: Call, url: str) -> None:
    call("1/1")
    results = Results(url)
    mark = results.marked()
    assert mark is not None
    other = json.dumps({**json.loads(mark), "data": {"digits": "0" * 16}})
    results.mark(other)
    assert compact(results).after == 1
    assert "trained on digits with digest" in call("1/1")[2]


def test_shards_of_another_study_wait_but_its_data_are_its_own(call: Call, url: str) -> None:
    request = requested([*TINY, "--shard", "3/3"])
    mark = Mark.of(request, Shard(3, 3), planned(request))
    other = dataclasses.replace(mark, study="other", data={"digits": "0" * 16})
    with shared(url, other.text, other.why_not):
        status, _, errors = call("1/3")
        assert status == UNUSABLE
        assert "study other, here digits" in errors
    assert call("1/3")[0] == DONE


def test_a_shard_is_refused_beside_a_driver_and_stops_where_one_takes_over(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The latter in an object store, which has no locks: a driver's mark is another one."""
    monkeypatch.setattr("study.storage.storage._SOON", 0.1)
    request = requested([*TINY, "--shard", "3/3"])
    results = Results(url)
    results.prepare()
    refused = pytest.raises(Exception, match="another study is running")
    with results.lock(), refused, beside(request, url):
        pass
    store = f"memory://{Path(url).parent.name}"
    first, second = (functools.partial(beside, request, store) for _ in range(2))
    with first(), second():
        mark = Results(store).marked()
        assert mark is not None
        assert json.loads(mark)["shards"] == 3
        Results(store).require_mark(mark)
        Results(store).mark()
        with pytest.raises(Exception, match="another command runs with it now"):
            Results(store).require_mark(mark)
        Results(store).mark(mark)
        Results(store).fence()  # as a compaction does
        with pytest.raises(Exception, match="another command runs with it now"):
            Results(store).require_mark(mark)
    made, fenced = Mark.of(request, Shard(3, 3), planned(request)), Results(store).marked()
    assert fenced is not None
    assert made.why_not(fenced, running=False) is None
    assert "took the results directory over" in (made.why_not(fenced, running=True) or "")


def test_the_first_shard_puts_in_order_what_others_leave_alone(url: str) -> None:
    request = requested([*TINY, "--shard", "3/3"])
    results = Results(url)
    results.prepare()
    part = Path(url, "cells", f"x.parquet.{'0' * 32}.part")
    damaged = Path(url, "cells", f"{'0' * 16}.parquet")
    with beside(request, url):
        for path in (part, damaged):
            path.write_bytes(b"")
        with beside(request, url):
            assert part.exists()
            assert damaged.exists()
    with beside(request, url):
        assert not part.exists()
        assert not damaged.exists()
        assert Path(url, "damaged", "cells", damaged.name).exists()
