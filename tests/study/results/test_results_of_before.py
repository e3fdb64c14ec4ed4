"""Results that were recorded before the modules moved, at commit c9afe00, stay what they were.

The directory holds three cells of four, the `comparison.csv` of that day's report, and what a
checkpoint of the fourth held at three quarters of its budget: names, types and shapes.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from analysis.conclude import write_report
from study import run, tasks
from study.cell.work import Work
from study.launch.trial import train_cells
from study.plan.planning import planned
from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA, IMAGES, Results
from study.run_options import requested
from study.tasks.mosaics import digits
from study.terminal.command import DONE
from tests.conftest import PROJECT, not_drawn

BEFORE = PROJECT / "tests" / "made_up" / "results_of_c9afe00"
SOFT = ["ff3a25f87d0979ae", "ad580491e1c4e3de"]
HARD = ["114c5f410c8814e6", "a88fb6d67f783786"]
"""Ids of the cells of both seeds, as they were then; the last one is the fourth."""

COMMAND = [
    "digits", "--tracking", "none", "--set", "n=60", "m=3", "epochs=8", "seed=0,1", "lr=0.1",
    "confirm=none", "switch_point=0.5", "paradigm=soft,hard", "batch_size=20", "evaluations=4",
    "train_metrics_size=20", "validation_size=20", "test_size=20",
]  # fmt: skip


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return Path(shutil.copytree(BEFORE, tmp_path / "results"))


def test_every_row_and_column_is_read(before: Path) -> None:
    results = Results(before)
    cells, evaluations = results.cells(), results.evaluations()
    assert list(cells) == CELLS_SCHEMA.names
    assert list(evaluations) == EVALUATIONS_SCHEMA.names
    assert set(cells["cell_id"]) == {*SOFT, HARD[0]}
    assert len(evaluations) == 3 * 5 * 3  # cells, evaluations, splits
    assert cells["stage"].isna().all()
    assert evaluations[list(IMAGES)].isna().all(axis=None)
    assert not results.survey().damaged


def test_it_is_compared_as_it_was(before: Path, tmp_path: Path) -> None:
    """Every number of the table; soft and hard were chosen, cut and averaged as today."""
    with not_drawn():
        write_report(before, tmp_path / "report")
    then = pd.read_csv(before / "comparison.csv")
    then = then[[name for name in then if "_iqm" not in name]]  # no longer reported
    now = pd.read_csv(tmp_path / "report" / "comparison.csv")
    pd.testing.assert_frame_equal(now[list(then)], then, rtol=1e-12)


def outline(value: Any) -> Any:
    """The names, types and shapes of a state; of a list its length and what differs in it."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)}"
    if isinstance(value, dict):
        return {name: outline(each) for name, each in value.items()}
    if isinstance(value, list):
        found = [outline(each) for each in value]
        return [len(found), *(each for i, each in enumerate(found) if each not in found[:i])]
    return type(value).__name__


@pytest.fixture
def split_of_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits as they were parted into splits."""
    monkeypatch.setattr(digits, "TEST_SHARE", 1 / 3)
    monkeypatch.setattr(digits, "VALIDATION_SHARE", 0.1)
    monkeypatch.setattr(digits, "_PREPARED", "digits-v1")
    monkeypatch.setattr("study.train.run._task", tasks.load)  # other tests keep today's


@pytest.mark.usefixtures("without_ray", "split_of_then")
def test_a_study_that_was_begun_goes_on(before: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From a checkpoint that is as it was; the cells that were recorded stay."""
    kept = {path: path.read_bytes() for path in before.glob("*/*.parquet")}
    Results(before).prepare()
    plan = planned(requested([*COMMAND, "--results", str(before)]))
    (fourth,) = (cell for cell in plan.cells if cell.id == HARD[1])

    def stop(event: dict[str, Any]) -> None:
        if event["event"] == "evaluation" and event["budget_fraction"] == 0.75:
            raise InterruptedError

    work = Work(
        study="digits", results=str(before), code_version="", cells=(fourth,), checkpoint_every=0.0
    )
    with pytest.raises(InterruptedError):
        train_cells(work, stop)
    name = f"checkpoints/{fourth.id}.ckpt"
    checksum, data = (before / name).read_bytes()[:32], (before / name).read_bytes()[32:]
    begin = b"attention-study checkpoint 1" + name.encode()
    assert checksum == hashlib.sha256(begin + data).digest()
    state = torch.load(io.BytesIO(data), weights_only=True)
    assert state.pop("baseline") == 0  # newer; one without it is read as well
    assert outline(state) == json.loads((before / "checkpoint.json").read_text())
    with not_drawn():
        assert run.main([*COMMAND, "--results", str(before)]) == DONE
    printed = capsys.readouterr()
    assert "4 cells: 3 done already, 1 to run" in printed.out
    assert f"cell {HARD[1]} goes on from its checkpoint at step 11 of 15" in printed.err
    assert all(path.read_bytes() == data for path, data in kept.items())
    results = Results(before)
    assert results.finished() == {*SOFT, *HARD}
    assert not list(before.glob("checkpoints/*"))
    rows = results.evaluations([HARD[1]])
    assert len(rows) == 5 * 3
    assert np.isfinite(rows[["loss", "accuracy", "saif"]].to_numpy()).all()
