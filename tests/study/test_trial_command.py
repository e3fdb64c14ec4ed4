"""`study.trial`: a list of cells trains without Ray and MLflow, and as with them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from study import run, trial
from study.cell import Cell, Schedule
from study.cell.work import Work
from study.launch.cell_list import CellList
from study.launch.trial import train_cells
from study.results import Results
from study.results.compaction import compact
from study.tasks.mosaics.mosaics import MosaicTask
from study.terminal.command import DONE, FAILED, INTERRUPTED, UNUSABLE
from tests.conftest import PROJECT, tiny_cell
from tests.made_up.commands import called

SEEDS = 4

TINY = [
    "digits", "--set", "n=100", "m=3", "epochs=2", "lr=0.1", "seed=0,1", "confirm=none",
    "switch_point=0.5", "batch_size=10", "evaluations=2", "train_metrics_size=20",
    "validation_size=20", "test_size=20",
]  # fmt: skip


@pytest.fixture
def cells(digits: MosaicTask) -> list[Cell]:
    """Two paradigms, seed by seed."""
    schedules = (Schedule.single("soft", 0.1), Schedule.hybrid(0.1, 0.05, 0.5))
    return [tiny_cell(digits, each, seed=seed) for seed in range(SEEDS) for each in schedules]


@pytest.fixture
def listed(cells: list[Cell], tmp_path: Path) -> Path:
    """A file that lists the cells."""
    path = tmp_path / "cells.json"
    CellList("digits", "training", tuple(cells)).write(path)
    return path


Trial = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(listed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Trial:
    """Calls the command on the list; returns its status, what it printed and said of errors."""
    usual = ("--cells", str(listed), "--results", str(tmp_path / "results"), "--threads", "1")
    return lambda *more: called(trial.main, capsys, *usual, *more)


def recorded(tmp_path: Path) -> Results:
    return Results(tmp_path / "results")


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[list[Cell]]:
    """The packs that trained, in their order."""
    packs: list[list[Cell]] = []

    def watched(work: Work, *more: Any) -> dict[str, str]:
        packs.append(list(work.cells))
        return train_cells(work, *more)

    monkeypatch.setattr("study.launch.in_turn.train_cells", watched)
    return packs


def failing(
    monkeypatch: pytest.MonkeyPatch, error: Exception, when: Callable[[Sequence[Cell]], bool]
) -> None:
    """Packs of which `when` holds raise an error."""

    def train(work: Work, *more: Any) -> dict[str, str]:
        if when(work.cells):
            raise error
        return train_cells(work, *more)

    monkeypatch.setattr("study.launch.in_turn.train_cells", train)


def test_a_list_gives_its_cells_back(cells: list[Cell], tmp_path: Path) -> None:
    path = tmp_path / "cells.json"
    CellList("digits", "training", (*cells, cells[0])).write(path)
    assert CellList.read(path) == CellList("digits", "training", tuple(cells))


def test_a_plan_writes_the_cells_that_are_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And they train as the workers of `study.run` train them, to the bit."""
    (direct := Results(tmp_path / "direct")).prepare()
    results, path = recorded(tmp_path), tmp_path / "cells.json"
    plan = [*TINY, "--results", results.url, "--plan", "--write-cells", str(path)]
    assert run.main(plan) == DONE
    assert not (tmp_path / "results").exists()
    written = CellList.read(path)
    assert len(written.cells) == 8
    for cell in written.cells:
        train_cells(Work(study=written.study, results=direct.url, code_version="", cells=(cell,)))
    command = ["--cells", str(path), "--results", results.url, "--threads", "1"]
    assert called(trial.main, capsys, *command)[0] == DONE
    pd.testing.assert_frame_equal(evaluations(results), evaluations(direct))
    assert set(results.cells()["study"]) == {"digits"}
    assert run.main(plan) == DONE
    assert CellList.read(path).cells == ()
    assert trial.main(command) == DONE


def test_lists_of_two_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """First the cells that tune; once they are recorded, those that confirm what was chosen."""
    results, path = recorded(tmp_path), tmp_path / "cells.json"
    two = ["paradigm=soft", "lr=0.1,0.01", "confirm=100,101"]
    small = [text for text in TINY if text.partition("=")[0] not in ("lr", "confirm")]
    plan = [*small, *two, "--results", results.url, "--plan", "--write-cells", str(path)]
    command = ["--cells", str(path), "--results", results.url, "--threads", "1"]
    for seeds, stage, more in (({0, 1}, "tune", True), ({100, 101}, "confirm", False)):
        _, printed, _ = called(run.main, capsys, *plan)
        assert ("the same command lists the cells that follow" in printed) == more
        ids = {cell.id for cell in CellList.read(path).cells}
        assert trial.main(command) == DONE
        cells = results.cells(ids)
        assert (set(cells["seed"]), set(cells["stage"])) == (seeds, {stage})
    assert cells["schedule"].nunique() == 1


def evaluations(results: Results) -> pd.DataFrame:
    """All but times, in a fixed order."""
    keys = ["cell_id", "budget_fraction", "split"]
    rows = results.evaluations().drop(columns="train_seconds")
    return rows.sort_values(keys, ignore_index=True)


@pytest.mark.parametrize("more", ["", "--plan --search optuna --num-samples 3"])
def test_only_the_plan_of_a_grid_writes_cells(
    more: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, errors = called(run.main, capsys, "digits", "--write-cells", "x", *more.split())
    assert status == UNUSABLE
    assert "--write-cells lists the cells of a grid's plan: add --plan" in errors


def test_packs_train_seed_by_seed(call: Trial, trained: list[list[Cell]], tmp_path: Path) -> None:
    """All paradigms of the first seeds come first, and the same command has nothing to do."""
    status, printed, _ = call("--pack", "2")
    assert status == DONE
    assert [(pack[0].paradigm, [cell.seed for cell in pack]) for pack in trained] == [
        ("soft", [0, 1]), ("hybrid", [0, 1]), ("soft", [2, 3]), ("hybrid", [2, 3]),
    ]  # fmt: skip
    assert set(recorded(tmp_path).cells()["pack"]) == {2}
    assert "8 cells of digits: 0 done already, 8 to run" in printed
    assert "packs: 4 of up to 2 (as asked)" in printed
    assert f"`python -m analysis.report {tmp_path / 'results'}` compares them" in printed
    compact(recorded(tmp_path))
    status, printed, _ = call("--pack", "2")
    assert (status, len(trained)) == (DONE, 4)
    assert "8 done already, 0 to run" in printed


def test_nothing_starts_that_would_not_end_in_time(
    call: Trial, trained: list[list[Cell]], tmp_path: Path
) -> None:
    status, printed, _ = call("--minutes", "1e-9")
    assert (status, trained) == (DONE, [])
    why = r"8 cells would not have ended in time \(the shortest takes about \S.*\): the same"
    assert re.search(why, printed)
    assert call("--minutes", "60")[0] == DONE
    assert set(recorded(tmp_path).cells()["status"]) == {"done"}
    assert len(trained) == 8


def test_out_of_memory_is_tried_again_in_smaller_packs(
    call: Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing(monkeypatch, torch.OutOfMemoryError("no room"), lambda pack: len(pack) > 1)
    status, _, errors = call("--pack", "4")
    assert status == DONE
    assert "tried again in packs of 2" in errors
    assert "tried again in packs of 1" in errors
    assert len(recorded(tmp_path).cells()) == 8


def test_a_bug_fails_its_cells_and_the_rest_goes_on(
    call: Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cells: list[Cell]
) -> None:
    failing(monkeypatch, ZeroDivisionError("of a test"), lambda pack: pack[0].seed == 1)
    status, _, errors = call()
    assert status == FAILED
    ids = {cell.id for cell in cells if cell.seed == 1}
    assert recorded(tmp_path).finished() == {cell.id for cell in cells} - ids
    for cell_id in ids:
        assert f"cell {cell_id} failed: bug: ZeroDivisionError: of a test" in errors
    assert "Traceback" in errors
    monkeypatch.undo()
    assert call()[0] == DONE


def test_a_process_that_lost_its_gpu_leaves_the_rest_to_another(
    call: Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cells: list[Cell]
) -> None:
    lost = torch.AcceleratorError("CUDA error: uncorrectable ECC error encountered")
    failing(monkeypatch, lost, lambda pack: pack[0] == cells[2])
    status, printed, errors = call()
    assert status == FAILED
    assert recorded(tmp_path).finished() == {cell.id for cell in cells[:2]}
    assert f"cell {cells[2].id} failed: worker lost: torch.AcceleratorError: CUDA" in errors
    assert "5 cells wait for another process, as this one cannot use its GPU any more" in printed


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "other data": ({"data_digest": "0" * 16}, "was planned on data with digest 0000"),
    "an unknown task": ({"task": "digist"}, "unknown task 'digist'. Did you mean 'digits'?"),
    "an unknown network": ({"architecture": "perceptrn"}, "perceptrn"),
    "an unknown field": ({"colour": "red"}, "has colour, unknown to this version"),
    "a field out of range": ({"m": 1}, "m must be an integer >= 2, got 1"),
    "a precision of GPUs": ({"precision": "tf32"}, "which only a GPU does"),
    "a budget without a step": ({"budget": {"amount": 1, "unit": "flops"}}, "has no step"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_cell_that_cannot_run_here_is_refused(
    name: str, call: Trial, listed: Path, tmp_path: Path
) -> None:
    change, words = CHANGES[name]
    values = json.loads(listed.read_text())
    values["cells"][1] |= change
    listed.write_text(json.dumps(values))
    status, _, errors = call()
    assert status == UNUSABLE
    assert errors.count("\n") == 1
    assert words in errors
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not JSON"),
        ("[1, 2]", "is no list of cells of this version"),
        ('{"format": "attention-study cells 0"}', "is no list of cells of this version"),
        ('{"format": "attention-study cells 1", "study": "x"}', "lacks the study, the kind"),
        (
            '{"format": "attention-study cells 1", "study": "x", "kind": "training", '
            '"cells": [1]}',
            "cell 1 of",
        ),
    ],
)
def test_what_is_no_list_is_refused(text: str, words: str, call: Trial, listed: Path) -> None:
    listed.write_text(text)
    status, _, errors = call()
    assert status == UNUSABLE
    assert errors.count("\n") == 1
    assert words in errors
    assert "--plan --write-cells FILE" in errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--device cuda", "there is no CUDA device here"),
        ("--threads 100000", "but this process may use"),
        ("--data-dir somewhere", "--data-dir is of no use to digits"),
        ("--category-words /no/such/file", "/no/such/file: there is no such file"),
    ],
)
def test_what_is_not_there_or_of_no_use_is_refused(
    options: str, words: str, call: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    status, _, errors = call(*options.split())
    assert status == UNUSABLE
    assert errors.count("\n") == 1
    assert words in errors


@pytest.mark.parametrize("file", ["", "no-folder/cells.json"])
def test_a_list_that_cannot_be_written_is_refused_before_the_plan(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*TINY, "--results", str(tmp_path / "none"), "--plan", "--write-cells", file]
    status, printed, errors = called(run.main, capsys, *command)
    assert (status, printed) == (UNUSABLE, "")
    assert "name a file in a folder that is there" in errors


def test_a_stopped_command_goes_on_from_its_checkpoint(
    digits: MosaicTask, listed: Path, tmp_path: Path, call: Trial
) -> None:
    cell = tiny_cell(digits, n=2_000)
    cell = replace(cell, budget=replace(cell.budget, amount=8 * cell.budget.amount))
    CellList("digits", "training", (cell,)).write(listed)
    command = ["--cells", str(listed), "--results", str(tmp_path / "results"), "--threads", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "study.trial", *command, "--checkpoint-every", "0.1"],
        cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("results/checkpoints/*.ckpt")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert "the same command goes on where this one ended" in errors
    assert recorded(tmp_path).finished() == set()
    status, _, errors = call()
    assert status == DONE
    assert f"cell {cell.id} goes on from its checkpoint" in errors


def test_it_needs_neither_ray_nor_mlflow(listed: Path, tmp_path: Path) -> None:
    blocked = ["ray", "mlflow", "optuna", "matplotlib", "scipy", "torchvision", "PIL", "analysis"]
    words = ["--cells", str(listed), "--results", str(tmp_path / "results"), "--threads", "1"]
    code = f"""
import sys
for name in {blocked}:
    sys.modules[name] = None
from study.trial import main
sys.exit(main({words}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert done.returncode == DONE, done.stderr
    assert len(recorded(tmp_path).finished()) == 2 * SEEDS
