"""A results directory that is merged, damaged, interrupted and read meanwhile."""

from __future__ import annotations

import itertools
import os
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.cell import Cell
from study.results import (
    EVALUATIONS_SCHEMA,
    SPLITS,
    Results,
    ResultsError,
    Survey,
    listing,
    parquet,
)
from study.storage.storage import Storage
from study.tasks.mosaics import mosaics
from tests.made_up.comparisons import POINTS, make_cell, make_results, write
from tests.made_up.tables import (
    CONTRADICTIONS,
    TABLES,
    acting_before,
    assert_same,
    contents,
    copy,
    frames,
    in_memory,
    on_another_machine,
    slightly,
    write_some,
)

FILES = [
    "{id}",
    "{id}",
    "copy-of-{id}",
    "other/{id}",
    "other/deep/{id}",
    "all",
    "compact-0",
    "z/all",
]
PLACES = st.lists(st.sets(st.sampled_from(FILES), min_size=1, max_size=3), min_size=5, max_size=5)
"""For each of five cells, the files that it lies in; files without an id hold many cells."""


def place(source: Results, cells: list[Cell], places: list[set[str]]) -> Results:
    """A directory with the cells of another one, copied into files."""
    target = make_results(Path(tempfile.mkdtemp(dir=source.url)))
    for table, rows in zip(TABLES, source.tables(), strict=True):
        if table == "cells":
            rows = rows[::-1]  # no order of cells is relied on
        for file in {template for each in places for template in each}:
            held = [cell.id for cell, each in zip(cells, places, strict=True) if file in each]
            for ids in [[each] for each in held] if "{id}" in file else [held]:
                name = f"{file.format(id=ids[0])}.parquet"
                target.storage.make(os.path.dirname(f"{table}/{name}"))
                part = rows.filter(pc.is_in(rows["cell_id"], pa.array(ids)))
                target.write_table(table, name, part)
    return target


@settings(max_examples=10, deadline=None)
@given(PLACES, st.integers(0, 4))
def test_in_whatever_files_and_copies_cells_lie_the_same_is_read(
    some: tuple[Results, list[Cell]],
    read_from_some: Callable[..., tuple[list[pd.DataFrame], Survey]],
    places: list[set[str]],
    one: int,
) -> None:
    source, cells = some
    results = place(source, cells, places)
    for ids in ((), (cells[one].id,), (cells[4].id, cells[0].id, "no-such-cell")):
        expected, survey = read_from_some(*ids)
        assert_same(frames(results, ids or None), expected)
    assert results.survey() == survey


def test_directories_are_merged_by_copying(tmp_path: Path) -> None:
    one, other, both = (make_results(tmp_path / name) for name in ("one", "other", "both"))
    for seed in range(6):
        write(one if seed < 4 else other, make_cell(seed=seed))
        write(both, make_cell(seed=seed))
    write(other, make_cell(seed=3))
    for table in TABLES:  # as `cp -r other/cells one/cells/other` does
        (tmp_path / "other" / table).rename(tmp_path / "one" / table / "other")
    assert_same(frames(one), frames(both))
    assert set(one.survey().statuses.values()) == {"done"}


def test_a_cell_counts_while_both_its_files_are_there(results: Results) -> None:
    cells = write_some(results)
    for cell in cells:
        copy(results, cell, f"other/{cell.id}.parquet")
    before = frames(results)
    for cell in cells:
        results.storage.remove(f"evaluations/{cell.id}.parquet")
    assert_same(frames(results), before)
    assert results.finished() == {cell.id for cell in cells}
    for cell in cells:
        results.storage.remove(f"cells/other/{cell.id}.parquet")
    assert results.finished() == set()
    assert [len(frame) for frame in frames(results)] == [0, 0]
    assert not any(results.has_cell(cell.id) for cell in cells)


@pytest.mark.parametrize("change", [slightly(1 + 1e-8), on_another_machine])
def test_a_copy_may_differ_by_rounding_and_in_circumstances(
    results: Results, change: Callable[[str, pd.DataFrame], pd.DataFrame]
) -> None:
    """Both rows of a cell are those of one pair of files: of its own, or the first by name."""
    cell = write(results, make_cell())
    before = frames(results)
    copy(results, cell, "a.parquet", change)
    copy(results, cell, "b.parquet")
    assert_same(frames(results), before)
    for table in TABLES:
        results.storage.remove(f"{table}/{cell.id}.parquet")
    changed = [change(table, rows) for table, rows in zip(TABLES, before, strict=True)]
    assert_same(frames(results), changed)
    assert_same([results.cells([cell.id]), results.evaluations([cell.id])], changed)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_contradictions_name_both_files(results: Results, kind: str, turned: bool) -> None:
    cell = write(results, make_cell(), status="diverged")
    copy(results, cell, "copy.parquet", CONTRADICTIONS[kind])
    if turned:
        for table in TABLES:
            results.storage.move(f"{table}/{cell.id}.parquet", f"{table}/other.parquet")
    write(results, make_cell(seed=1))
    other = "other" if turned else cell.id
    with pytest.raises(ResultsError, match=f"cell {cell.id} has different results in") as error:
        frames(results)
    table = "cells" if kind in ("status", "steps", "cell") else "evaluations"
    for name in (other, "copy"):
        assert results.storage.path(f"{table}/{name}.parquet") in str(error.value)
    assert len(results.finished()) == 2  # a survey judges no contents


@pytest.mark.parametrize("status", ["done", "diverged"])
def test_a_censored_copy_gives_way_with_its_evaluations(status: str) -> None:
    """Whichever of both is first by name, or has the cell's own name."""
    cell = make_cell()
    whole, censored = in_memory(), in_memory()
    write(whole, cell, 0.9, status=status)
    write(censored, cell, 0.7, status="censored", points=POINTS[:2], steps=50)
    expected = frames(whole)
    for names in ("ab", "ba", "-a", "a-"):
        results = in_memory()
        for name, source in zip(names, (censored, whole), strict=True):
            for file, data in contents(source).items():
                results.storage.write(file if name == "-" else file.replace(cell.id, name), data)
        assert_same(frames(results), expected)
        assert_same(frames(results, [cell.id]), expected)
        assert results.survey().statuses == {cell.id: status}, names


@pytest.mark.parametrize("status", ["done", "diverged", "censored"])
def test_the_status_of_one_cell_needs_no_list(results: Results, status: str) -> None:
    cell, other = make_cell(), make_cell(seed=1)
    assert results.status(cell.id) is None
    write(results, cell, status=status)
    write(results, other)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(Storage, "names")
        assert results.status(cell.id) == status
        assert results.has_cell(cell.id) == (status != "censored")
    results.storage.remove(f"evaluations/{cell.id}.parquet")
    assert results.status(cell.id) is None


def test_a_censored_cell_is_replaced_and_others_keep_their_bytes(results: Results) -> None:
    cells = write_some(results)
    before = contents(results)
    for cell in cells:
        assert results.has_cell(cell.id) == (cell is not cells[4])
        write(results, cell, 0.1)
    after = contents(results)
    assert {name for name in before if before[name] != after[name]} == {
        f"{table}/{cells[4].id}.parquet" for table in TABLES
    }
    assert results.survey().statuses[cells[4].id] == "done"
    assert set(results.evaluations([cells[4].id])["budget_fraction"]) == set(POINTS)


@pytest.mark.parametrize("before", ["nothing", "censored", "no evaluations"])
def test_a_writer_killed_at_any_moment_leaves_a_whole_cell_or_none(before: str) -> None:
    done = in_memory()
    cell = write(done, make_cell(), 0.9)
    for call in range(4):
        results = in_memory()
        if before != "nothing":
            write(results, cell, 0.7, status="censored", points=POINTS[:2], steps=50)
        old = frames(results)
        if before == "no evaluations":
            results.storage.remove(f"evaluations/{cell.id}.parquet")

        def kill(number: int, call: int = call) -> None:
            if number == call:
                raise KeyboardInterrupt

        with acting_before(kill, "write", "remove") as calls:
            try:
                write(results, cell, 0.9)
            except KeyboardInterrupt:
                assert len(calls) == call + 1
        if results.finished():
            assert_same(frames(results), frames(done) if len(calls) <= call else old)
        write(results, cell, 0.9)
        assert_same(frames(results), frames(done))
    assert [each.split("/")[0] for each in calls] == [
        "remove cells", "write evaluations", "write cells",
    ]  # fmt: skip


def test_values_of_lists_count_for_the_size_of_a_part(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of as many rows would hold a thousand times the numbers."""
    cells = [write(results, make_cell(seed=seed)) for seed in range(4)]
    written, evaluations = results.tables()
    counts = pa.array(
        [[1] * 1_000] * len(evaluations), EVALUATIONS_SCHEMA.field("image_count").type
    )
    at = evaluations.column_names.index("image_count")
    monkeypatch.setattr(parquet, "ROWS_A_GROUP", len(evaluations) // len(cells))
    whole = make_results(Path(results.url) / "whole")
    whole.write_table(
        "evaluations", "all.parquet", evaluations.set_column(at, "image_count", counts)
    )
    whole.write_table("cells", "all.parquet", written)
    monkeypatch.setattr(parquet, "VALUES_A_PART", 20_000)
    for column, parts in (("accuracy", 1), ("image_count", len(cells))):
        assert whole.scan(lambda _, found: len(list(found)), [column]) == parts


def test_a_reader_is_not_confused_by_a_merge(results: Results) -> None:
    """At whatever moment of a reading small files become one, the same is read."""
    write(results, make_cell(seed=0))
    write(results, make_cell(seed=1), status="diverged", points=())
    write(results, make_cell(seed=2), status="censored", points=POINTS[:2])
    before, files = frames(results), contents(results)
    merged_cells, merged_evaluations = results.tables()

    def merge() -> None:
        results.write_table("evaluations", "compact-0.parquet", merged_evaluations)
        results.write_table("cells", "compact-0.parquet", merged_cells)
        for name in files:
            results.storage.remove(name)

    def unmerge() -> None:
        for name, data in files.items():
            results.storage.write(name, data)
        for table in TABLES:
            results.storage.remove(f"{table}/compact-0.parquet")

    ids = before[0]["cell_id"].tolist()
    for read, expected in (
        (results.cells, before[0]),
        (results.evaluations, before[1]),
        (lambda: results.cells(ids), before[0]),
        (lambda: results.evaluations(ids), before[1]),
        (lambda: sorted(results.survey().statuses), ids),
    ):
        with acting_before(lambda _: None, "names", "read", "exists") as calls:
            read()
        for moment in range(len(calls)):

            def merge_then(number: int, moment: int = moment) -> None:
                if number == moment:
                    merge()

            with acting_before(merge_then, "names", "read", "exists"):
                found = read()
            if isinstance(expected, list):
                assert found == expected
            else:
                assert_same([found], [expected])
            unmerge()


def test_a_name_without_a_file_is_named(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an object store may list what was removed."""
    monkeypatch.setattr(listing, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(listing, "STALE_SECONDS", 0)
    write(results, make_cell())
    names = Storage.names
    monkeypatch.setattr(
        Storage,
        "names",
        lambda self, table, suffix="": [*names(self, table, suffix), f"{table}/gone.parquet"],
    )
    for read in (results.cells, results.survey):
        with pytest.raises(ResultsError, match=r"is listed, but not there .*gone\.parquet"):
            read()


def test_a_listing_that_is_stale_for_a_while_is_read_again(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As NFS shows another machine what was merged meanwhile."""
    write(results, make_cell())
    expected = results.cells()
    names, stale = Storage.names, iter(range(2 * 3))  # a listing asks for three
    monkeypatch.setattr(listing, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(
        Storage,
        "names",
        lambda self, table, suffix="": [
            *names(self, table, suffix),
            *(f"{table}/gone.parquet" for _ in itertools.islice(stale, 1)),
        ],
    )
    pd.testing.assert_frame_equal(results.cells(), expected)
    assert next(stale, None) is None


def test_splits_are_those_of_the_tasks() -> None:
    assert SPLITS == mosaics.SPLITS


def test_preparing_makes_folders_and_sweeps(results: Results, tmp_path: Path) -> None:
    part = tmp_path / "results" / "cells" / f"x.parquet.{uuid.uuid4().hex}.part"
    part.write_bytes(b"killed")
    assert results.storage.names("cells") == []
    with Results(results.url).lock():
        results.prepare()
        assert part.exists()
    results.prepare()
    assert not part.exists()
    assert {path.name for path in (tmp_path / "results").iterdir() if path.is_dir()} == {
        "cells", "evaluations", "checkpoints", "forks", "networks",
    }  # fmt: skip


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match=r"cannot write to the results directory .*/file/r"):
        Results(tmp_path / "file" / "r").prepare()


def test_a_lost_directory_is_not_made_anew(results: Results, tmp_path: Path) -> None:
    (tmp_path / "results").rename(tmp_path / "elsewhere")
    with pytest.raises(ResultsError, match="Bring the directory back"):
        write(results, make_cell())
    assert not (tmp_path / "results").exists()


def test_a_mark_tells_a_directory_from_others(results: Results, tmp_path: Path) -> None:
    mark = results.mark()
    Results(results.url).require_mark(mark)
    other = Results(tmp_path / "other")  # as another node sees the path that it does not share
    with pytest.raises(ResultsError, match=r"does not see the results directory .*/other"):
        other.require_mark(mark)
    other.prepare()
    other.mark()
    with pytest.raises(ResultsError, match=r"sees another results directory at .*/other"):
        other.require_mark(mark)
    results.mark()  # of the next command
    with pytest.raises(ResultsError, match="another command runs with it now"):
        results.require_mark(mark)


def test_an_empty_directory_holds_no_results(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="holds no results"):
        Results(tmp_path).cells()
    assert Results(tmp_path).finished() == set()
    assert Results(tmp_path / "missing").survey() == Results(tmp_path).survey()


def test_one_cell_is_read_without_the_others(results: Results) -> None:
    cells = write_some(results)
    with acting_before(lambda _: None, "names", "read") as calls:
        results.cells([cells[0].id])
        results.evaluations([cells[0].id])
    assert {call.rpartition("/")[2] for call in calls} == {f"{cells[0].id}.parquet"}


def test_a_directory_keeps_its_name_wherever_it_is_moved(tmp_path: Path) -> None:
    results = make_results(tmp_path / "results")
    name = results.origin()
    assert str(tmp_path / "results") in name  # people read it in MLflow
    assert make_results(tmp_path / "other").origin() != name
    moved = tmp_path / "moved"
    os.rename(tmp_path / "results", moved)
    assert Results(moved).origin() == name
    nowhere = Results(tmp_path / "nowhere")
    assert nowhere.origin() == nowhere.origin()  # it cannot be kept there
