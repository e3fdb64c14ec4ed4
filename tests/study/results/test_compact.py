"""Compaction changes no row, whenever it is stopped."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from study import compact
from study.cell import Cell
from study.results import Results, compaction
from tests.made_up.commands import one_line
from tests.made_up.comparisons import POINTS, make_cell, write
from tests.made_up.tables import (
    CONTRADICTIONS,
    LACKING,
    acting_before,
    assert_same,
    contents,
    copy,
    frames,
    in_memory,
    on_another_machine,
    with_files,
    write_some,
)


def merge_other(results: Results, cells: list[Cell]) -> None:
    """Copies of cells as another machine may have them, and what a killed writer left."""
    for cell in cells[:3]:
        copy(results, cell, f"other/{cell.id}.parquet", on_another_machine)
    source = in_memory()
    write(source, cells[4], 0.9, steps=100)  # went on where the other machine stopped
    write(source, make_cell(seed=5), 0.3)
    for cell in (cells[4], make_cell(seed=5)):
        copy(
            results, cell, "compact-0.parquet" if cell is cells[4] else "x.parquet", source=source
        )


def run(results: Results, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    return one_line(compact.main, capsys, results.url)


def test_every_row_stays_as_it_is(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    cells = write_some(results)
    merge_other(results, cells)
    before, survey = frames(results), results.survey()
    status, line = run(results, capsys)
    assert (status, line) == (
        0,
        f"{results.url}: 6 cells, 10 files in each of cells/ and evaluations/ merged into 1",
    )
    names = list(contents(results))
    assert len(names) == 2
    assert names[0].removeprefix("cells/") == names[1].removeprefix("evaluations/")
    assert_same(frames(results), before)
    assert results.survey() == survey
    for cell in cells:
        assert_same(
            [results.cells([cell.id]), results.evaluations([cell.id])],
            [frame[frame["cell_id"] == cell.id].reset_index(drop=True) for frame in before],
        )
    whole = contents(results)
    assert run(results, capsys) == (0, f"{results.url}: nothing to do (6 cells in 1 file)")
    assert contents(results) == whole


@pytest.mark.parametrize(("limit", "value"), [("ROWS_A_FILE", 25), ("CELLS_A_FILE", 2)])
def test_files_are_as_large_as_fits_into_memory(
    results: Results,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
) -> None:
    monkeypatch.setattr(compaction, limit, value)
    for seed in range(5):
        write(results, make_cell(seed=seed), 0.1 * seed)  # 12 rows each
    before = frames(results)
    assert run(results, capsys)[1].endswith(
        "5 files in each of cells/ and evaluations/ merged into 3"
    )
    assert_same(frames(results), before)
    whole = contents(results)
    assert len(whole) == 6
    assert run(results, capsys) == (0, f"{results.url}: nothing to do (5 cells in 3 files)")
    assert contents(results) == whole
    last = max(make_cell(seed=seed).id for seed in range(5))
    later = next(c for seed in range(5, 99) if (c := make_cell(seed=seed)).id > last)
    write(results, later)
    before = frames(results)
    assert run(results, capsys)[1].endswith("merged into 3")
    assert_same(frames(results), before)
    kept = [name for name, data in contents(results).items() if whole.get(name) == data]
    assert len(kept) == 4  # those of cells that are together as before are not written again


def test_an_object_store_is_compacted(capsys: pytest.CaptureFixture[str]) -> None:
    results = in_memory()
    write_some(results)
    before = frames(results)
    assert run(results, capsys)[0] == 0
    assert len(contents(results)) == 2
    assert_same(frames(results), before)


def test_compacted_files_are_merged_with_newer_ones(results: Results) -> None:
    expected = in_memory()
    for seed in range(4):
        for each in (results, expected):
            write(each, make_cell(seed=seed), 0.1 * seed)
            write(each, make_cell("hybrid", seed=seed), 0.2 * seed)
        done = compaction.compact(results)
        assert (done.cells, done.before, done.after) == (2 * seed + 2, 2 + (seed > 0), 1)
        assert_same(frames(results), frames(expected))


def test_a_study_goes_on_with_a_compacted_directory(results: Results) -> None:
    """A censored cell is run again, and its new files are taken."""
    cells = write_some(results)
    compaction.compact(results)
    write(results, cells[4], 0.9)
    assert results.survey().statuses[cells[4].id] == "done"
    assert set(results.evaluations([cells[4].id])["budget_fraction"]) == set(POINTS)
    before = frames(results)
    compaction.compact(results)
    assert_same(frames(results), before)


def killed_at_each_call(
    files: Mapping[str, bytes], act: Callable[[Results], object]
) -> Iterator[Results]:
    """Directories of these files with which something was done up to a call that changes files:
    none, the first, and so on; the last one is done with."""
    call, killed = 0, True
    while killed:
        results = with_files(files)

        def kill(number: int, call: int = call) -> None:
            if number == call:
                raise KeyboardInterrupt

        with (
            acting_before(kill, "write", "remove") as calls,
            contextlib.suppress(KeyboardInterrupt),
        ):
            act(results)
        killed = len(calls) > call
        yield results
        call += 1


@pytest.mark.parametrize("again", [False, True])
def test_killed_at_any_moment_it_has_changed_nothing_and_goes_on(again: bool) -> None:
    """The first time, and when the merged file takes the place of one of the same cells."""
    first = in_memory()
    done, censored = (make_cell(seed=seed) for seed in range(2))
    write(first, done)
    write(first, make_cell(seed=2), status="diverged", points=())
    write(first, censored, status="censored", points=POINTS[:2], steps=50)
    if again:
        compaction.compact(first)
        write(first, censored, 0.9)
    else:
        source = in_memory()
        write(source, censored, 0.9)  # went on where the other machine stopped
        copy(first, censored, "compact-0.parquet", source=source)
    copy(first, done, "other/copy.parquet", on_another_machine)
    small = len(first.layout().files) - again
    files, before, survey = contents(first), frames(first), first.survey()
    calls = 0
    for results in killed_at_each_call(files, compaction.compact):
        calls += 1
        assert_same(frames(results), before)
        assert results.survey() == survey
        compaction.compact(results)
        assert_same(frames(results), before)
        assert len(contents(results)) == 2
    assert calls == 2 + 2 * small + 1


def test_a_running_study_leaves_few_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MOST_SMALL_FILES", 3)
    results, expected = in_memory(), in_memory()
    merger = compaction.Merger(results)
    for seed in range(7):
        for each in (results, expected):
            write(each, make_cell(seed=seed), 0.1 * seed)
        merger.add([make_cell(seed=seed).id])
        merged, small = divmod(seed + 1, 3)
        assert len(contents(results)) == 2 * (merged + small)
        assert len(results.survey().small) == small
        assert_same(frames(results), frames(expected))
    # The next start adds what the last one left.
    compaction.Merger(results).add([*results.survey().small, *write_two_more(results, expected)])
    assert len(contents(results)) == 2 * 3
    assert_same(frames(results), frames(expected))


def write_two_more(*several: Results) -> list[str]:
    cells = [make_cell("hybrid", seed=seed) for seed in range(2)]
    for results in several:
        for cell in cells:
            write(results, cell)
    return [cell.id for cell in cells]


def test_a_running_study_may_be_killed_while_it_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MOST_SMALL_FILES", 3)
    first = in_memory()
    for seed in range(3):
        write(first, make_cell(seed=seed), 0.1 * seed)
    files, before, survey = contents(first), frames(first), first.survey()

    def merge(results: Results) -> None:
        compaction.Merger(results).add(results.survey().small)

    calls = 0
    for results in killed_at_each_call(files, merge):
        calls += 1
        assert_same(frames(results), before)
        assert results.survey() == survey
        compaction.Merger(results).add([*results.survey().small, *write_two_more(results)])
        compaction.compact(results)
        assert len(contents(results)) == 2
    assert calls == 2 + 2 * 3 + 1


def test_what_killed_writers_left_goes(results: Results, tmp_path: Path) -> None:
    cells = write_some(results)
    part = tmp_path / "results" / "cells" / f"x.parquet.{uuid.uuid4().hex}.part"
    part.write_bytes(b"")
    unfinished = results.storage.read(f"evaluations/{cells[0].id}.parquet")
    results.storage.remove(f"cells/{cells[0].id}.parquet")
    compaction.compact(results)
    assert not part.exists()
    # The cell is not complete, so these are all there is of it.
    assert results.storage.read(f"evaluations/{cells[0].id}.parquet") == unfinished


def snapshot(folder: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_contradictions_are_refused(
    results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    cell = write(results, make_cell(), status="diverged")
    copy(results, cell, "copy.parquet", CONTRADICTIONS[kind])
    before = snapshot(tmp_path)
    status, line = run(results, capsys)
    assert status == 2
    assert f"cell {cell.id} has different results in" in line
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("act", LACKING)
def test_cells_without_all_their_evaluations_are_refused(
    results: Results,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    act: Callable[[Results, list[Cell]], None],
    compacted: bool,
) -> None:
    """Merged, they would be lost for good."""
    cells = write_some(results)
    if compacted:
        compaction.compact(results)
        for cell in cells[:2]:
            copy(results, cell, f"{cell.id}.parquet")
    act(results, cells)
    before = snapshot(tmp_path)
    status, line = run(results, capsys)
    assert status == 2
    assert f"{tmp_path}/results/evaluations/{cells[0].id}.parquet is damaged (" in line
    assert f"it lacks evaluations of cell {cells[0].id}" in line
    assert snapshot(tmp_path) == before
