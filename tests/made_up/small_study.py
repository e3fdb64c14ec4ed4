"""A study of seconds as a command that can be killed, and what its results must be."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from study.results import Results
from tests.made_up.jobs import table
from tests.made_up.waiting import until

PROJECT = Path(__file__).parents[2]
GRID = [
    "--set", "n=400", "m=4", "epochs=60", "lr=0.1", "seed=0,1", "confirm=100,101",
    "switch_point=0.3,0.6",
    "batch_size=10", "evaluations=4", "train_metrics_size=20", "validation_size=50",
    "test_size=50", "paradigm=soft,hard,hybrid",
]  # fmt: skip
CELLS = 10
"""The hybrids' two options tune on two seeds; then each paradigm's is confirmed on two others."""


def arguments(results: Path | str, *more: str) -> list[str]:
    """Of `study.run`."""
    return [
        "digits", *GRID, "--tracking", "none", "--checkpoint-every", "0.2",
        "--results", str(results), *more,
    ]  # fmt: skip


def start(
    results: Path | str, *more: str, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "study.run", *arguments(results, *more)],
        cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True, env=environment,
    )  # fmt: skip


def files(results: Path) -> dict[Path, bytes]:
    """Every file of recorded cells."""
    return {path: path.read_bytes() for path in results.glob("cells/*.parquet")}


def unfinished(results: Path) -> set[str]:
    """The cells that left a checkpoint to go on from."""
    saved = {path.stem for path in results.glob("checkpoints/*.ckpt")}
    return saved - Results(results).finished()


def assert_whole(results: Path, kept: dict[Path, bytes], whole: pd.DataFrame) -> None:
    """Nothing lost, doubled, half-written or changed; nothing left behind."""
    for path, data in kept.items():
        assert path.read_bytes() == data, path
    pd.testing.assert_frame_equal(table(results), whole, check_exact=True)
    assert Results(results).survey().damaged == ()
    assert len(list(results.glob("cells/*"))) == CELLS
    left = [*results.glob("checkpoints/*")]
    assert left == []
    assert not list(results.rglob("*.part"))


def wait_for_training(results: Path, process: subprocess.Popen[str]) -> None:
    """Until a command that has just begun writes its first checkpoint."""
    before = _checkpoints(results)
    wait_until(lambda: bool(_checkpoints(results) - before), process)


def _checkpoints(results: Path) -> set[tuple[Path, int]]:
    """Each with the time of its last change."""
    found = set()
    for path in results.glob("checkpoints/*.ckpt"):
        with contextlib.suppress(FileNotFoundError):  # its cell has ended
            found.add((path, path.stat().st_mtime_ns))
    return found


def wait_for(what: str, results: Path, process: subprocess.Popen[str]) -> None:
    """Until a file is there; the command must not end before."""
    wait_until(lambda: bool(list(results.glob(what))), process)


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Until something holds; the command must not end before."""

    def holds_while_it_runs() -> bool:
        if holds():
            return True
        assert process.poll() is None, process.communicate()[0]
        return False

    until(holds_while_it_runs)
