"""Merging changes no row, whenever it is stopped, and whoever merges or writes beside it."""

from __future__ import annotations

import io

import pandas as pd
import pyarrow as pa
import pytest

from study import compact as command
from study.cell import Cell
from study.results import Results, merging
from study.results.merging import compact, merge
from tests.made_up.commands import one_line
from tests.made_up.comparisons import POINTS, make_cell, write
from tests.made_up.tables import (
    NAMES,
    REMOVE,
    WRITE,
    assert_same,
    contents,
    frames,
    in_memory,
    interrupted,
    put,
    write_some,
)


def run(results: Results, capsys: pytest.CaptureFixture[str]) -> str:
    status, line = one_line(command.main, capsys, results.url)
    assert status == 0
    return line


def with_copies(results: Results) -> list[Cell]:
    """Cells of every end, with what another machine has of them: one went further, one as far."""
    other = in_memory()
    cells = write_some(results)
    write(other, cells[4], status="censored", points=POINTS[:3], steps=75)
    write(other, cells[1], 0.9, device="other")
    write(other, make_cell(seed=5), 0.3)
    put(results, contents(other), "other/")
    return [*cells, make_cell(seed=5)]


def test_every_row_stays_as_it_is(results, capsys):
    cells = with_copies(results)
    before, statuses = frames(results), results.survey().statuses
    assert run(results, capsys) == f"{results.url}: 6 cells, 8 files merged into 1"
    assert_same(frames(results), before)
    assert results.survey().statuses == statuses
    whole = contents(results)
    assert run(results, capsys) == f"{results.url}: nothing to do (6 cells in 1 file)"
    assert contents(results) == whole
    write(results, cells[4], 0.4)  # a study goes on, here with one that was censored
    assert results.survey().statuses[cells[4].id] == "done"
    before = frames(results)
    compact(results)
    assert_same(frames(results), before)
    assert len(contents(results)) == 1


def test_columns_of_what_is_not_installed_here_stay(results):
    """Of a chapter or a package that another build has."""
    first, second = make_cell(seed=1), make_cell(seed=2)
    for cell in (first, second):
        write(results, cell)
    rows, texts = results.rows([first.id])
    (old,) = results.storage.names("cells", first.id)
    brought = [float(number) for number in range(len(rows))]
    results.write(first.id, rows.append_column("brought", pa.array(brought)), texts)
    results.storage.remove(old)
    compact(Results(results.url))
    (merged,) = contents(results).values()
    found = pd.read_parquet(io.BytesIO(merged)).groupby("cell_id")["brought"]
    assert found.get_group(first.id).tolist() == brought
    assert found.get_group(second.id).isna().all()


@pytest.mark.parametrize(("limit", "value"), [("ROWS_A_FILE", 25), ("CELLS_A_FILE", 2)])
def test_files_are_as_large_as_fits_into_memory(monkeypatch, limit, value):
    monkeypatch.setattr(merging, limit, value)
    results = in_memory()
    for seed in range(5):
        write(results, make_cell(seed=seed), 0.1 * seed)  # 12 rows each
    before = frames(results)
    for files in (5, 3):
        done = compact(results)
        assert (done.cells, done.before, done.after) == (5, files, 3)
        assert_same(frames(results), before)
        assert len(contents(results)) == 3


def merge_small(results: Results) -> None:
    """As a study that begins merges what an earlier one left."""
    merge(results, results.survey().small)


def merge_some(results: Results) -> None:
    merge(results, [make_cell(seed=seed).id for seed in (0, 2, 3)])


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("act", [compact, merge_small, merge_some])
def test_killed_at_any_moment_it_has_changed_nothing_and_goes_on(act, again):
    """The first time, and where there are merged files of which a cell went on."""
    first = in_memory()
    cells = with_copies(first)
    if again:
        compact(first)
        write(first, cells[4], 0.4)
        write(first, cells[0], 0.8)  # a late worker
    before, survey = frames(first), first.survey()
    for results, _, _ in interrupted(contents(first), act, kill, WRITE, REMOVE):
        assert_same(frames(results), before)
        assert results.survey().statuses == survey.statuses
        compact(results)
        assert_same(frames(results), before)
        assert len(contents(results)) == 1


def kill(_: Results) -> None:
    raise KeyboardInterrupt


def record(results: Results) -> None:
    write(results, make_cell(seed=6))


@pytest.mark.parametrize(
    ("act", "beside"),
    [(compact, compact), (merge_some, compact), (merge_small, merge_small), (compact, record)],
)
def test_others_may_merge_and_write_at_the_same_time(act, beside):
    """In an object store, where no lock keeps them apart."""
    first = in_memory()
    ids = [cell.id for cell in with_copies(first)]
    before, targets = frames(first), (NAMES, WRITE, REMOVE)
    for results, _, happened in interrupted(contents(first), act, beside, *targets):
        assert_same(frames(results, ids), before)
        assert len(results.finished()) == len(ids) + (happened and beside is record)
