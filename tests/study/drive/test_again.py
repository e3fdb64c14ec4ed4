"""`study.run STUDY --again CELL`: equal numbers, and what is said where they are not."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from study import run as command
from study.cell import Schedule
from study.cell.version import code_version
from study.cell.work import Job, Work
from study.drive.again import largest_difference
from study.launch.run_job import run_job
from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA, Results
from study.results.cell_file import rows_of
from study.tasks.mosaics.mosaics import MosaicTask
from tests.conftest import tiny_cell
from tests.made_up.commands import one_line
from tests.made_up.jobs import trained
from tests.made_up.tables import contents

Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def recorded(digits: MosaicTask, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Cells that were trained in each of the ways a study may train them."""
    results = Results(tmp_path_factory.mktemp("repeat") / "results")
    results.prepare()
    how: dict[str, Any] = {"code_version": code_version(), "share": True}
    sampled = tiny_cell(digits, Schedule.single("hard-sampled", 0.1), seed=3)
    trained(results, (sampled,), micro_batch=7, **how)
    pack = (tiny_cell(digits, Schedule.single("lvml", lr)) for lr in (0.1, 1e20))
    trained(results, tuple(pack), **how)
    hybrid = tiny_cell(digits, Schedule.hybrid(0.1, 0.05, 0.5))
    trained(results, (tiny_cell(digits),), (hybrid,), **how)
    return results


@pytest.fixture
def copied(recorded: Results, tmp_path: Path) -> Results:
    """The same, to be spoilt."""
    shutil.copytree(recorded.url, tmp_path / "results")
    return Results(tmp_path / "results")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command; gives its exit status and the one line that it printed."""
    return lambda results, cell_id, *args: one_line(
        command.main, capsys, "digits", "--results", results.url, "--again", cell_id, *args
    )


@pytest.fixture(scope="module")
def cell_id(recorded: Results) -> str:
    """Of a cell that is repeated often."""
    return id_of(recorded, "soft lr=0.1")


@pytest.fixture
def rows(recorded: Results, cell_id: str) -> pd.DataFrame:
    """Its evaluations."""
    return recorded.evaluations([cell_id])


def id_of(results: Results, schedule: str) -> str:
    return str(results.cells().set_index("schedule").at[schedule, "cell_id"])


def rewrite(results: Results, of: str, to_saif: float = 0.0, **cell: Any) -> None:
    """Records a cell anew, with other columns and more SAIF in all its evaluations."""
    rows, evaluations = results.cells([of]).assign(**cell), results.evaluations([of])
    new_id = rows["cell_id"].item()
    evaluations = evaluations.assign(cell_id=new_id, saif=evaluations["saif"] + to_saif)
    for path in Path(results.url).rglob(f"{of}-*.parquet"):
        path.unlink()
    held = rows_of(
        pa.Table.from_pandas(rows, CELLS_SCHEMA, preserve_index=False),
        pa.Table.from_pandas(evaluations, EVALUATIONS_SCHEMA, preserve_index=False),
    )
    results.write(new_id, held, {new_id: rows["cell"].item()})


# --- equal numbers


def test_however_a_cell_was_trained_its_numbers_come_out_again(recorded, run):
    rows = recorded.cells()
    assert sorted(rows["pack"]) == [1, 1, 1, 2, 2]
    assert rows["shared_prefix"].sum() == 1
    assert sorted(rows["status"]) == ["diverged", *["done"] * 4]
    assert 7 in set(rows["micro_batch"])
    before = contents(recorded)
    for cell_id in rows["cell_id"]:
        count = len(recorded.evaluations([cell_id]))
        status, line = run(recorded, cell_id)
        assert status == 0, line
        assert line.startswith(f"cell {cell_id}: trained again in ")
        assert line.endswith(
            f"; {count} evaluations, largest difference 0 (metrics, heat maps, instances)"
        )
    assert contents(recorded) == before


def test_only_a_gpu_that_was_used_is_used(copied, cell_id, run, monkeypatch):
    asked: list[Work] = []

    def spy(job: Job, work: Work) -> dict[str, str]:
        asked.append(work)
        return run_job(job, replace(work, gpu=False, threads=1))

    monkeypatch.setattr("study.drive.again.run_job", spy)
    run(copied, cell_id)
    rewrite(copied, cell_id, device="NVIDIA H200", threads=2, micro_batch=8)
    run(copied, cell_id)
    assert [(each.gpu, each.threads, each.micro_batch) for each in asked] == [
        (False, 1, 16),
        (True, 2, 8),
    ]
    assert not any(Path(each.results).exists() for each in asked)


# --- other numbers


def test_a_difference_is_measured_and_what_differs_besides_is_named(copied, cell_id, run):
    rewrite(copied, cell_id, to_saif=0.25)
    status, line = run(copied, cell_id[:8].upper())  # the beginning is enough
    assert status == 1
    assert "NOT equal: largest difference 0.25 (saif, " in line
    assert line.endswith("allowed 1e-06; what differs: no recorded circumstance")
    other = id_of(copied, "lvml lr=0.1")
    rewrite(copied, other, status="diverged", device="NVIDIA H200")
    status, line = run(copied, other)
    assert status == 1
    assert "NOT equal: largest difference 0 (" in line
    for fact in ("status diverged then, done now", "device NVIDIA H200 then, cpu"):
        assert fact in line


def test_differences_by_hand(rows):
    last, end = rows.iloc[-1], rows.index[-1]
    first, *others = last["instance_saif"]
    heatmap = np.array(last["heatmap"])
    heatmap[7] += 0.5
    for shown, column, value, difference in [
        ("loss", "loss", last["loss"] + 0.5, 0.5),
        ("loss", "loss", math.nan, math.inf),
        ("heatmap", "heatmap", heatmap, 0.5),
        ("instance_saif", "instance_saif", bytes([first ^ 1, *others]), 1 / last["num_evaluated"]),
        ("instance_saif", "instance_saif", None, math.inf),
        # Of an evaluation after other steps, or of other instances, no number is the same one.
        ("accuracy", "step", 7, math.inf),
        ("accuracy", "instances", "others", math.inf),
    ]:
        other = rows.copy()
        other.at[end, column] = value
        largest, where = largest_difference(rows, other)
        assert largest == pytest.approx(difference)
        assert where.startswith(f"{shown}, test split at 100 % of the budget"), column
    assert largest_difference(rows, rows.sample(frac=1, random_state=0)) == (0.0, "")
    assert largest_difference(rows[:0], rows[:0]) == (0.0, "")  # it diverged before the first
    largest, where = largest_difference(rows, rows[:-1])
    assert (largest, where.partition(", which ")[2]) == (math.inf, "only one of them has")
    large = rows.assign(loss=1e9)
    assert largest_difference(large, large.assign(loss=1e9 + 1)) == (1.0, "")  # which is close


# --- unusable requests


@pytest.mark.parametrize(
    ("cell", "arguments", "fact"),
    [
        ({"status": "censored", "status_reason": ""}, "", "was stopped by the scheduler"),
        ({"study": "cifar10"}, "", "python -m study.run cifar10 --again"),
        ({"cell_id": "0123456789abcdef"}, "", "another trainer"),
        ({"cell": '{"paradigm": "of another file"}'}, "", "load) does not name now"),
        ({}, "--data-dir somewhere", "--data-dir is of no use to digits"),
    ],
)  # fmt: skip
def test_what_cannot_be_repeated_is_refused(copied, cell_id, run, cell, arguments, fact):
    rewrite(copied, cell_id, **cell)
    status, line = run(copied, cell.get("cell_id", cell_id), *arguments.split())
    assert (status, fact in line) == (2, True), line


def test_an_unknown_or_ambiguous_cell_and_other_data_are_named(copied, digits, cell_id, run):
    unknown, ambiguous = f"{cell_id[:12]}0000", f"{cell_id[:6]}0000000000"
    elsewhere = tiny_cell(digits, data_digest="of another copy")
    rewrite(copied, id_of(copied, "lvml lr=0.1"), cell_id=ambiguous)
    rewrite(
        copied, id_of(copied, "soft lr=0.1 until 0.5 > hard lr=0.05"),
        cell_id=elsewhere.id, cell=json.dumps(elsewhere.to_dict()),
    )  # fmt: skip
    for asked, fact in (
        (unknown, f"{copied.url} has no cell {unknown}. Did you mean {cell_id}?"),
        ("soft", "hexadecimal"),
        (cell_id[:6], ", ".join(sorted([cell_id, ambiguous]))),
        (elsewhere.id, digits.facts.digest),
    ):
        status, line = run(copied, asked)
        assert (status, fact in line) == (2, True), line
