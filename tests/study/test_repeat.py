"""A recorded cell trained once more: equal numbers, and what is said where they are not."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from study import repeat
from study.cell import Cell, Schedule
from study.cell.version import code_version
from study.cell.work import Job, Work
from study.launch.repetition import compare_evaluations, differing_circumstances
from study.launch.run_job import run_job
from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA, METRICS, Results
from study.results.cell_file import rows_of
from study.results.merging import compact
from study.results.records import DUPLICATE_TOLERANCE
from study.tasks.mosaics.mosaics import MosaicTask
from tests.conftest import tiny_cell
from tests.made_up.commands import one_line
from tests.made_up.screen import screen


def train(packs: Sequence[Sequence[Cell]], folder: Path, **more: Any) -> Results:
    """Runs a job and records its cells, as a study does."""
    results = Results(folder)
    results.prepare()
    known: dict[str, Any] = {"study": "digits", "results": results.url, "gpu": False}
    work = Work(**known, **{"code_version": code_version(), **more})
    run_job(Job(tuple(map(tuple, packs)), share=True), work)
    return results


@pytest.fixture(scope="module")
def recorded(digits: MosaicTask, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Cells that were trained in each of the ways a study may train them."""
    folder = tmp_path_factory.mktemp("repeat") / "results"
    alone = tiny_cell(digits, Schedule.single("hard-sampled", 0.1), seed=3)
    train([[alone]], folder, micro_batch=7)
    train([[tiny_cell(digits, Schedule.single("lvml", lr)) for lr in (0.1, 1e20)]], folder)
    hybrid = tiny_cell(digits, Schedule.hybrid(0.1, 0.05, 0.5))
    return train([[tiny_cell(digits)], [hybrid]], folder)


@pytest.fixture
def copied(recorded: Results, tmp_path: Path) -> Results:
    """The same, to be spoilt."""
    shutil.copytree(recorded.url, tmp_path / "results")
    return Results(tmp_path / "results")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs the command; gives its exit status and the one line that it printed."""

    return lambda results, *args: one_line(repeat.main, capsys, results.url, *args)


def ids(results: Results) -> dict[str, str]:
    """Schedule -> id."""
    cells = results.cells()
    return dict(zip(cells["schedule"], cells["cell_id"], strict=True))


def contents(results: Results) -> dict[str, tuple[bytes, int]]:
    """Every file of a results directory, with when it was written."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(Path(results.url).rglob("*"))
        if path.is_file()
    }


def rewrite(
    results: Results,
    cell_id: str,
    cell: dict[str, Any] | None = None,
    change: Callable[[pd.DataFrame], Any] = lambda _: None,
) -> None:
    """Records a cell anew with other columns, or other evaluations."""
    rows = results.cells([cell_id]).assign(**(cell or {}))
    evaluations = results.evaluations([cell_id])
    change(evaluations)
    new_id = rows["cell_id"].item()
    for path in Path(results.url).rglob(f"{cell_id}-*.parquet"):
        path.unlink()
    evaluations["cell_id"] = new_id
    held = rows_of(
        pa.Table.from_pandas(rows, CELLS_SCHEMA, preserve_index=False),
        pa.Table.from_pandas(evaluations, EVALUATIONS_SCHEMA, preserve_index=False),
    )
    results.write(new_id, held, {new_id: rows["cell"].item()})


# --- equal numbers


def test_however_a_cell_was_trained_its_numbers_come_out_again(
    recorded: Results, run: Callable[..., tuple[int, str]]
) -> None:
    rows = recorded.cells().set_index("schedule")
    assert sorted(rows["pack"]) == [1, 1, 1, 2, 2]
    assert rows["shared_prefix"].sum() == 1
    assert sorted(rows["status"]) == ["diverged", *["done"] * 4]
    assert 7 in set(rows["micro_batch"])
    before = contents(recorded)
    for cell_id in rows["cell_id"]:
        count = len(recorded.evaluations([cell_id]))
        status, line = run(recorded, cell_id)
        assert status == 0, line
        assert line.startswith(f"cell {cell_id}: repeated in ")
        assert line.endswith(
            f"; {count} evaluations, largest difference 0 (metrics, heat maps, instances)"
        )
    assert contents(recorded) == before


def test_the_beginning_of_an_id_is_enough_in_a_compacted_directory_too(
    copied: Results, run: Callable[..., tuple[int, str]]
) -> None:
    cell_id = ids(copied)["soft lr=0.1"]
    compact(copied)
    before = contents(copied)
    for asked in (cell_id[:8], cell_id[:8].upper(), cell_id):
        status, line = run(copied, asked)
        assert status == 0
        assert line.startswith(f"cell {cell_id}: ")
    assert contents(copied) == before


def test_only_a_gpu_that_was_used_is_used(
    copied: Results, run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Work] = []

    def spy(job: Job, work: Work, report: Any) -> dict[str, str]:
        asked.append(work)
        return run_job(job, replace(work, gpu=False), report)

    monkeypatch.setattr("study.launch.repetition.run_job", spy)
    cell_id = ids(copied)["soft lr=0.1"]
    assert run(copied, cell_id)[0] == 0
    rewrite(copied, cell_id, {"device": "NVIDIA H200", "threads": 2, "micro_batch": 8})
    run(copied, cell_id)
    assert [each.gpu for each in asked] == [False, True]
    assert [each.threads for each in asked] == [1, 2]
    assert [each.micro_batch for each in asked] == [16, 8]
    assert all(not Path(each.results).exists() for each in asked)


# --- other numbers


def test_a_difference_is_measured_and_its_circumstances_named(
    copied: Results, run: Callable[..., tuple[int, str]]
) -> None:
    cell_id = ids(copied)["soft lr=0.1"]
    versions = {**json.loads(copied.cells([cell_id])["package_versions"].item()), "torch": "2.0"}

    def change(evaluations: pd.DataFrame) -> None:
        at = evaluations.index[
            (evaluations["split"] == "test") & (evaluations["budget_fraction"] == 0.75)
        ]
        evaluations.loc[at, "saif"] += 0.25

    there = {"code_version": "0.0+old", "package_versions": json.dumps(versions)}
    rewrite(copied, cell_id, there, change)
    before = contents(copied)
    status, line = run(copied, cell_id)
    assert status == 1
    assert "NOT equal: largest difference 0.25 (saif, test split at 75 % of the budget)" in line
    assert f"what differs: code version 0.0+old then, {code_version()} now; torch 2.0 then" in line
    assert "CPU threads" not in line
    assert contents(copied) == before


def test_a_difference_without_a_circumstance_says_so(
    copied: Results, run: Callable[..., tuple[int, str]]
) -> None:
    cell_id = ids(copied)["soft lr=0.1"]
    rewrite(copied, cell_id, change=lambda rows: rows.update(rows[["loss"]] + 1e-3))
    status, line = run(copied, cell_id)
    assert status == 1
    assert "largest difference 0.001 (loss" in line
    assert line.endswith("no recorded circumstance differs")
    rewrite(copied, cell_id, {"device": "NVIDIA H200"})
    status, line = run(copied, cell_id)
    assert status == 1
    assert "device NVIDIA H200 then, cpu" in line
    assert "a GPU adds numbers in an order that varies, so two runs of a cell agree to r" in line


def test_another_end_is_a_difference(copied: Results, run: Callable[..., tuple[int, str]]) -> None:
    cell_id = ids(copied)["soft lr=0.1"]
    steps = copied.cells([cell_id])["steps"].item()
    rewrite(copied, cell_id, {"status": "diverged"})
    status, line = run(copied, cell_id)
    assert status == 1
    assert f"recorded as diverged after {steps} steps, now done after {steps} steps" in line


def test_differences_by_hand(recorded: Results) -> None:
    rows = recorded.evaluations([ids(recorded)["soft lr=0.1"]])
    assert compare_evaluations(rows, rows.sample(frac=1, random_state=0)) == (0.0, "", True)

    def changed(index: int, column: str, value: Any) -> tuple[float, str, bool]:
        other = rows.copy()
        other.at[index, column] = value
        return compare_evaluations(rows, other)

    first = rows.iloc[0]
    place = f"{first['split']} split at {100 * first['budget_fraction']:g} % of the budget"
    for name in METRICS:
        assert changed(0, name, math.nan) == (math.inf, f"{name}, {place}", False)
    largest, where, close = changed(0, "loss", first["loss"] + DUPLICATE_TOLERANCE / 2)
    assert (largest, close) == (pytest.approx(DUPLICATE_TOLERANCE / 2), True)
    assert where == f"loss, {place}"
    heatmap = list(first["heatmap"])
    heatmap[7] += 0.5
    assert changed(0, "heatmap", heatmap) == (pytest.approx(0.5), f"heat map, {place}", False)
    last = len(rows) - 1
    where = f"instances in SAIF, test split at {100 * rows.at[last, 'budget_fraction']:g} %"
    strong = bytearray(rows.at[last, "instance_saif"])
    strong[2] ^= 1
    largest, place_of, close = changed(last, "instance_saif", bytes(strong))
    assert (largest, close) == (pytest.approx(1 / rows.at[last, "num_evaluated"]), False)
    assert place_of.startswith(where)
    assert changed(last, "instance_saif", None)[0::2] == (math.inf, False)
    assert changed(0, "compute_flops", 7) == (math.inf, f"steps or instances, {place}", False)
    largest, where, close = compare_evaluations(rows, rows.iloc[1:])
    assert (largest, close) == (math.inf, False)
    assert where == f"{place} was evaluated by one of them only"
    assert compare_evaluations(rows.iloc[:0], rows.iloc[:0]) == (0.0, "", True)


def test_a_large_loss_that_is_close_does_not_hide_a_small_difference(recorded: Results) -> None:
    rows = recorded.evaluations([ids(recorded)["soft lr=0.1"]])
    one, other = rows.copy(), rows.copy()
    one.at[0, "loss"], other.at[0, "loss"] = 1e9, 1e9 + 1
    assert compare_evaluations(one, other)[0::2] == (1.0, True)
    other.at[1, "saif"] += 0.25
    largest, where, close = compare_evaluations(one, other)
    assert (largest, where[:4], close) == (0.25, "saif", False)


def test_circumstances_by_hand() -> None:
    row = {
        "device": "cpu x86_64",
        "threads": 4,
        "micro_batch": 16,
        "code_version": "1",
        "package_versions": '{"torch": "2.15", "numpy": "2.4"}',
        "pack": 1,
        "shared_prefix": False,
    }
    assert list(differing_circumstances(row, row)) == []
    other = {**row, "device": "NVIDIA H200", "threads": 1, "pack": 3}
    other["package_versions"] = '{"torch": "2.16", "numpy": "2.4", "python": "3.12"}'
    assert list(differing_circumstances(row, other)) == [
        "device cpu x86_64 then, NVIDIA H200 now",
        "CPU threads 4 then, 1 now",
        "python unknown then, 3.12 now",
        "torch 2.15 then, 2.16 now",
        "cells trained together 1 then, 3 now",
    ]


# --- unusable requests


def test_an_unknown_cell_gives_the_nearest(
    recorded: Results, run: Callable[..., tuple[int, str]]
) -> None:
    cell_id = ids(recorded)["soft lr=0.1"]
    wrong = cell_id[:-1] + ("0" if cell_id[-1] != "0" else "1")
    status, line = run(recorded, wrong)
    assert status == 2
    assert line.startswith(f"study.repeat: {recorded.url} has no cell {wrong}. Nearest: {cell_id}")
    status, line = run(recorded, "soft")
    assert (status, "hexadecimal" in line) == (2, True)


def test_an_ambiguous_beginning_names_the_cells(
    copied: Results, run: Callable[..., tuple[int, str]]
) -> None:
    cell_id = ids(copied)["soft lr=0.1"]
    other = cell_id[:6] + ("0" if cell_id[6] != "0" else "1") * 10
    rewrite(copied, ids(copied)["lvml lr=0.1"], {"cell_id": other})
    status, line = run(copied, cell_id[:6])
    assert status == 2
    assert f"begins the ids of 2 cells ({', '.join(sorted([cell_id, other]))})" in line
    status, line = run(copied, other)  # whose content does not make that id
    assert status == 2
    assert "was trained by another trainer" in line


def test_what_cannot_be_repeated_is_refused(
    copied: Results, digits: MosaicTask, run: Callable[..., tuple[int, str]]
) -> None:
    cells = ids(copied)
    rewrite(copied, cells["lvml lr=0.1"], {"status": "censored", "status_reason": "stopped"})
    status, line = run(copied, cells["lvml lr=0.1"])
    assert (status, "was stopped: what a scheduler stops" in line) == (2, True)

    other = tiny_cell(digits, data_digest="of another copy")
    as_text = {"cell_id": other.id, "cell": json.dumps(other.to_dict())}
    rewrite(copied, cells["soft lr=0.1"], as_text)
    status, line = run(copied, other.id)
    assert (status, "digest of another copy, here it has digest" in line) == (2, True)

    status, line = run(copied, other.id, "--data-dir", "somewhere")
    assert (status, "--data-dir is of no use to digits" in line) == (2, True)

    values = {**other.to_dict(), "colour": "red"}
    rewrite(copied, other.id, {"cell": json.dumps(values)})
    status, line = run(copied, other.id)
    assert (status, "was trained by another trainer" in line) == (2, True)


def test_a_terminal_shows_the_time_left_and_is_left_clean(
    recorded: Results, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert repeat.main([recorded.url, ids(recorded)["soft lr=0.1"]]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1
    assert "0/1 cell" in captured.err
    assert not any(screen(captured.err, 80))
