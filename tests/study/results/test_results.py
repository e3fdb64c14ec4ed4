"""A results directory that is merged, damaged, interrupted and read meanwhile."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.cell import Cell
from study.compact import compact
from study.results import SPLITS, Damage, Results, ResultsError, Survey
from study.results.schema import NEW_COLUMNS, SCHEMAS
from study.storage.storage import Storage
from study.tasks.mosaics import mosaics
from tests.made_up.comparisons import POINTS, make_cell, make_results, write

TABLES = ("cells", "evaluations")


def in_memory() -> Results:
    results = Results(f"memory://{uuid.uuid4().hex}")
    results.prepare()
    return results


def write_some(results: Results) -> list[Cell]:
    """Cells of every kind: done, diverged with and without evaluations, censored."""
    return [
        write(results, make_cell(seed=0), 0.8),
        write(results, make_cell("hybrid", seed=1), 0.9),
        write(results, make_cell(seed=2), status="diverged", points=POINTS[:1]),
        write(results, make_cell(seed=3), status="diverged", points=()),
        write(results, make_cell(seed=4), status="censored", points=POINTS[:2], steps=50),
    ]


def contents(results: Results) -> dict[str, bytes]:
    """Name -> bytes of every file of both tables."""
    storage = results.storage
    return {name: storage.read(name) for table in TABLES for name in storage.names(table)}


def frames(results: Results, ids: Sequence[str] | None = None) -> list[pd.DataFrame]:
    return [results.cells(ids), results.evaluations(ids)]


def assert_same(found: list[pd.DataFrame], expected: list[pd.DataFrame]) -> None:
    for one, other in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def copy(
    results: Results,
    cell: Cell,
    file: str,
    change: Callable[[str, pd.DataFrame], pd.DataFrame] = lambda _, rows: rows,
    source: Results | None = None,
) -> None:
    """Puts a changed copy of a cell's rows into `file`.

    Args:
        results: where to.
        cell: of which.
        file: its name in both tables.
        change: gives the rows of the copy, of those of a table (named first).
        source: where from, if not from `results`.
    """
    rows = dict(zip(TABLES, frames(source or results, [cell.id]), strict=True))
    for table in TABLES:
        frame = change(table, rows[table])
        results.storage.make(f"{table}/{file}".rpartition("/")[0])
        results.write_table(
            table, file, pa.Table.from_pandas(frame, SCHEMAS[table], preserve_index=False)
        )


@contextmanager
def acting_before(action: Callable[[int], Any], *methods: str) -> Iterator[list[str]]:
    """Calls `action` with the number of the call before each call of methods of `Storage`."""
    calls: list[str] = []

    def acting(method: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Storage, name: str, *rest: Any) -> Any:
            calls.append(f"{method} {name}")
            action(len(calls) - 1)
            return real(self, name, *rest)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for method in methods:
            patch.setattr(Storage, method, acting(method, getattr(Storage, method)))
        yield calls


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


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, list[Cell]]:
    """A directory with cells of every kind; directories of tests lie in it, too."""
    results = make_results(tmp_path_factory.mktemp("some"))
    return results, write_some(results)


@pytest.fixture(scope="module")
def read_from_some(
    some: tuple[Results, list[Cell]],
) -> Callable[..., tuple[list[pd.DataFrame], Survey]]:
    """All that is read of given cells, or of all; each once."""
    results, _ = some

    @functools.cache
    def read(*ids: str) -> tuple[list[pd.DataFrame], Survey]:
        return frames(results, ids or None), results.survey()

    return read


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


def slightly(factor: float) -> Callable[[str, pd.DataFrame], pd.DataFrame]:
    def change(table: str, rows: pd.DataFrame) -> pd.DataFrame:
        return rows if table == "cells" else rows.assign(loss=rows["loss"] * factor)

    return change


def on_another_machine(table: str, rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(device="other", total_seconds=99.0) if table == "cells" else rows


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


def changed(only: str, **columns: Any) -> Callable[[str, pd.DataFrame], pd.DataFrame]:
    return lambda table, rows: rows.assign(**columns) if table == only else rows


CONTRADICTIONS = {
    "numbers": slightly(1.01),
    "missing number": changed("evaluations", ftpt=float("nan")),
    "missing row": lambda table, rows: rows if table == "cells" else rows.iloc[1:],
    "no rows": lambda table, rows: rows if table == "cells" else rows.iloc[:0],
    "status": changed("cells", status="done"),
    "steps": changed("cells", steps=99),
    "cell": changed("cells", cell=json.dumps({"evaluation_points": POINTS})),
}
"""Of a cell that diverged: a done one without some of its rows is damaged by itself."""


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


def with_files(files: Mapping[str, bytes]) -> Results:
    results = in_memory()
    for name, data in files.items():
        results.storage.write(name, data)
    return results


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(TABLES), st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_damaged_wherever_it_ends(
    some: tuple[Results, list[Cell]], table: Any, share: float
) -> None:
    source, cells = some
    name = f"{table}/{cells[0].id}.parquet"
    files = contents(source)
    results = with_files(files | {name: files[name][: int(share * len(files[name]))]})
    survey = results.survey()
    assert [damage.name for damage in survey.damaged] == [name]
    assert set(survey.statuses) == {cell.id for cell in cells[1:]}
    with pytest.raises(ResultsError, match=rf"{name} is damaged \(.*Run its study again"):
        frames(results)
    with pytest.raises(ResultsError, match=f"{name} is damaged"):
        (results.cells if table == "cells" else results.evaluations)([cells[0].id])


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(TABLES), st.floats(0, 1, exclude_max=True), st.integers(0, 7))
def test_a_flipped_bit_changes_no_number(
    some: tuple[Results, list[Cell]],
    read_from_some: Callable[..., tuple[list[pd.DataFrame], Survey]],
    table: Any,
    share: float,
    bit: int,
) -> None:
    """Pages have checksums: a file is found damaged, or what is read is what was written."""
    source, cells = some
    files = {name: data for name, data in contents(source).items() if cells[0].id in name}
    name = f"{table}/{cells[0].id}.parquet"
    data = bytearray(files[name])
    data[int(share * len(data))] ^= 1 << bit
    results = with_files(files | {name: bytes(data)})
    try:
        damaged = results.survey().damaged
    except ResultsError:  # the bit was one of the schema's version
        return
    if not damaged:
        assert_same(frames(results), read_from_some(cells[0].id)[0])


@pytest.mark.parametrize("table", TABLES)
def test_foreign_files_are_damaged(results: Results, tmp_path: Path, table: str) -> None:
    write(results, make_cell())
    folder = tmp_path / "results" / table
    pq.write_table(pa.table({"x": [1]}), folder / "foreign.parquet")
    (folder / "empty.parquet").write_bytes(b"")
    (folder / "notes.txt").write_text("no Parquet file is no result")
    metadata = pq.read_schema(next(folder.glob("[0-9]*.parquet"))).metadata
    for name, column in (("columns", {"x": [1]}), ("types", {"cell_id": [1]})):
        other = pa.table(column).replace_schema_metadata(metadata)
        pq.write_table(other, folder / f"{name}.parquet")
    survey = results.survey()
    assert [each.name for each in survey.damaged] == [
        f"{table}/{name}.parquet" for name in ("columns", "empty", "foreign", "types")
    ]
    assert survey.damaged[2].reason == "it was not written by this platform"
    assert len(survey.statuses) == 1


def test_another_schema_is_no_damage(results: Results, tmp_path: Path) -> None:
    cell = write(results, make_cell())
    path = tmp_path / "results" / "evaluations" / f"{cell.id}.parquet"
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"attention_study_schema": "0"}), path)
    message = (
        rf"{cell.id}.parquet has results schema 0, this version reads schemas 2 to 4.*--results"
    )
    for read in (results.survey, results.finished, results.evaluations):
        with pytest.raises(ResultsError, match=message):
            read()


def test_files_of_the_schema_before_are_read(results: Results, tmp_path: Path) -> None:
    """The columns that they have not are missing values; new cells may lie beside them."""
    cells = [write(results, make_cell(seed=seed)) for seed in (0, 1)]
    before = frames(results)
    for table, names in NEW_COLUMNS.items():
        path = tmp_path / "results" / table / f"{cells[0].id}.parquet"
        rows = pq.read_table(path).drop_columns(list(names))
        pq.write_table(rows.replace_schema_metadata({"attention_study_schema": "2"}), path)
    assert results.finished() == {cell.id for cell in cells}
    for old, new in zip(before, frames(results), strict=True):
        pd.testing.assert_frame_equal(old, new)
    assert results.evaluations()["incentive"].isna().all()
    compact(results)
    assert results.finished() == {cell.id for cell in cells}
    for old, new in zip(before, frames(results), strict=True):
        pd.testing.assert_frame_equal(old, new)


def test_a_new_file_needs_the_new_columns(results: Results, tmp_path: Path) -> None:
    cell = write(results, make_cell())
    path = tmp_path / "results" / "cells" / f"{cell.id}.parquet"
    rows = pq.read_table(path)
    kept = rows.drop_columns(["alpha"]).replace_schema_metadata(rows.schema.metadata)
    pq.write_table(kept, path)
    assert [each.name for each in results.survey().damaged] == [f"cells/{cell.id}.parquet"]


def test_a_column_that_may_not_be_missing_is_no_column_of_ours(
    results: Results, tmp_path: Path
) -> None:
    """One flipped bit of a file's schema makes it so."""
    cell = write(results, make_cell())
    path = tmp_path / "results" / "evaluations" / f"{cell.id}.parquet"
    rows = pq.read_table(path)
    index = rows.schema.get_field_index("split")
    strict = rows.schema.set(index, pa.field("split", pa.string(), nullable=False))
    pq.write_table(rows.cast(strict), path)
    assert [each.name for each in results.survey().damaged] == [f"evaluations/{cell.id}.parquet"]


def test_damaged_files_are_set_aside_and_their_cells_run_again(results: Results) -> None:
    cells = write_some(results)
    before = frames(results)
    for content in (b"damaged", b"again"):
        names = [f"cells/{cells[0].id}.parquet", f"evaluations/{cells[1].id}.parquet"]
        for name in names:
            results.storage.write(name, content)
        survey = results.survey()
        assert [each.name for each in survey.damaged] == names
        aside = results.set_aside(survey.damaged)
        assert [Path(path).read_bytes() for path in aside] == [content, content]
        survey = results.survey()
        assert survey.damaged == ()
        assert set(survey.statuses) == {cell.id for cell in cells[2:]}
        write(results, cells[0], 0.8)
        write(results, cells[1], 0.9)
        assert_same(frames(results), before)
    assert len(results.storage.names("damaged")) == 4
    assert results.set_aside([Damage("cells/gone.parquet", "")]) == []


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


# --- files that hold what they should not


def one_of_another(results: Results, cells: list[Cell]) -> None:
    own, other = (f"evaluations/{cell.id}.parquet" for cell in cells[:2])
    results.storage.write(own, results.storage.read(other))


def rows_of_evaluations(
    take: Callable[[pd.DataFrame], pd.DataFrame],
) -> Callable[[Results, list[Cell]], None]:
    """Changes the rows of the first cell's evaluations."""

    def act(results: Results, cells: list[Cell]) -> None:
        copy(
            results,
            cells[0],
            f"{cells[0].id}.parquet",
            lambda table, rows: rows if table == "cells" else take(rows),
        )

    return act


def a_dangling_link(results: Results, cells: list[Cell]) -> None:
    path = Path(results.url) / "evaluations" / f"{cells[0].id}.parquet"
    path.unlink()
    path.symlink_to("/nowhere/at/all")


def a_link_to_itself(results: Results, cells: list[Cell]) -> None:
    path = Path(results.url) / "evaluations" / f"{cells[0].id}.parquet"
    path.unlink()
    path.symlink_to(path)


WRONG_EVALUATIONS = {
    "of another cell": (one_of_another, "holds the evaluations of another cell"),
    "and of another cell": (
        rows_of_evaluations(lambda rows: pd.concat([rows, rows.assign(cell_id="0" * 16)])),
        "holds the evaluations of another cell",
    ),
    "no rows": (rows_of_evaluations(lambda rows: rows.iloc[:0]), "lacks evaluations of cell"),
    "half of the points": (
        rows_of_evaluations(lambda rows: rows.iloc[: len(rows) // 2]),
        "lacks evaluations of cell",
    ),
    "no last point": (
        rows_of_evaluations(lambda rows: rows[rows["budget_fraction"] < 1]),
        "lacks evaluations of cell",
    ),
    "one split": (
        rows_of_evaluations(lambda rows: rows[rows["split"] == "test"]),
        "lacks evaluations of cell",
    ),
    "one row less": (rows_of_evaluations(lambda rows: rows.iloc[1:]), "lacks evaluations of cell"),
    "another point": (
        rows_of_evaluations(
            lambda rows: rows.assign(budget_fraction=rows["budget_fraction"].replace(0.25, 0.3))
        ),
        "holds evaluations that cell",
    ),
    "link to nothing": (a_dangling_link, "is a link to nothing"),
    "link to itself": (a_link_to_itself, "is a link to nothing"),
}


@pytest.mark.parametrize("kind", WRONG_EVALUATIONS)
def test_a_cell_counts_only_with_its_own_evaluations(
    results: Results,
    read_from_some: Callable[..., tuple[list[pd.DataFrame], Survey]],
    kind: str,
) -> None:
    cells = write_some(results)
    act, reason = WRONG_EVALUATIONS[kind]
    act(results, cells)
    name = f"evaluations/{cells[0].id}.parquet"
    survey = results.survey()
    assert [damage.name for damage in survey.damaged] == [name]
    assert reason in survey.damaged[0].reason
    assert set(survey.statuses) == {cell.id for cell in cells[1:]}
    assert not results.has_cell(cells[0].id)
    for read in (results.cells, results.evaluations):
        for ids in (None, [cells[0].id]):
            with pytest.raises(ResultsError, match=rf"{name} is damaged \(.*{reason}"):
                read(ids)
        assert set(read([cells[1].id])["cell_id"]) == {cells[1].id}
    (aside,) = results.set_aside(survey.damaged)
    assert os.path.lexists(aside)
    assert results.survey() == dataclasses.replace(survey, damaged=())
    assert len(results.cells()) == len(cells) - 1
    write(results, cells[0], 0.8)
    assert_same(frames(results), read_from_some()[0])


@pytest.mark.parametrize("status", ["diverged", "censored"])
def test_evaluations_of_another_cell_damage_whatever_has_ended_early(
    results: Results, status: str
) -> None:
    cells = [
        write(results, make_cell(seed=0), status=status, points=()),
        write(results, make_cell(seed=1)),
    ]
    assert results.survey().damaged == ()
    one_of_another(results, cells)
    (damage,) = results.survey().damaged
    assert damage == Damage(
        f"evaluations/{cells[0].id}.parquet", "it holds the evaluations of another cell"
    )
    for read in (results.cells, results.evaluations):
        with pytest.raises(ResultsError, match=f"{damage.name} is damaged"):
            read([cells[0].id])


@pytest.mark.parametrize("partner", [True, False])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("folder", ["", "other/"])
def test_a_file_named_like_a_cell_holds_it(
    results: Results, table: str, folder: str, partner: bool
) -> None:
    cells = write_some(results)
    named = f"{folder}{cells[0].id}.parquet"
    for each in TABLES:
        data = results.storage.read(f"{each}/{cells[0].id}.parquet")
        other = results.storage.read(f"{each}/{cells[1].id}.parquet")
        results.storage.remove(f"{each}/{cells[0].id}.parquet")
        results.storage.make(f"{each}/{folder}".rstrip("/"))
        if each == table or partner:
            results.storage.write(f"{each}/{named}", other if each == table else data)
    survey = results.survey()
    assert [damage.name for damage in survey.damaged] == [f"{table}/{named}"]
    assert set(survey.statuses) == {cell.id for cell in cells[1:]}
    assert not results.has_cell(cells[0].id)
    assert len(results.set_aside(survey.damaged)) == 1
    assert results.survey() == dataclasses.replace(survey, damaged=())


def test_a_compacted_file_holds_the_evaluations_of_its_cells_only(results: Results) -> None:
    cells = write_some(results)
    merged_cells, merged_evaluations = results.tables()
    for held, names in (
        (
            merged_cells.filter(pc.not_equal(merged_cells["cell_id"], cells[0].id)),
            ["evaluations/compact-0.parquet"],
        ),
        (merged_cells, []),
    ):
        results.write_table("evaluations", "compact-0.parquet", merged_evaluations)
        results.write_table("cells", "compact-0.parquet", held)
        damaged = results.survey().damaged
        assert [damage.name for damage in damaged] == names
        assert results.finished() == {cell.id for cell in cells}
        if names:
            assert damaged[0].reason == "it holds the evaluations of another cell"
            with pytest.raises(ResultsError, match=f"{names[0]} is damaged"):
                results.evaluations()


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"evaluation_points": 1}'])
def test_a_row_of_no_cell_is_damaged(results: Results, text: str) -> None:
    cell = write(results, make_cell())
    copy(results, cell, f"{cell.id}.parquet", changed("cells", cell=text))
    (damage,) = results.survey().damaged
    assert damage == Damage(f"cells/{cell.id}.parquet", f"cell {cell.id} has no evaluation points")
    assert not results.has_cell(cell.id)


def test_splits_are_those_of_the_tasks() -> None:
    assert SPLITS == mosaics.SPLITS


@pytest.mark.parametrize("table", TABLES)
def test_a_dangling_link_is_damaged_and_never_overwrites_another(
    results: Results, tmp_path: Path, table: str
) -> None:
    cell = write(results, make_cell())
    before = frames(results)
    for number in range(2):
        name = f"{table}/link.parquet"
        (tmp_path / "results" / name).symlink_to(tmp_path / f"gone-{number}")
        assert_same(frames(results), before)
        survey = results.survey()
        assert survey.damaged == (Damage(name, "it is a link to nothing"),)
        assert set(survey.statuses) == {cell.id}
        (aside,) = results.set_aside(survey.damaged)
        assert Path(aside).readlink() == tmp_path / f"gone-{number}"
    assert len(list((tmp_path / "results" / "damaged" / table).iterdir())) == 2
    for each in TABLES:  # as a link to a whole folder, copied without its target
        (tmp_path / "results" / each / "link.parquet").symlink_to(tmp_path / "gone")
    assert len(results.survey().damaged) == 2
    with pytest.raises(ResultsError, match=r"link\.parquet is damaged \(it is a link to nothing"):
        results.cells()


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
        "cells", "evaluations", "checkpoints", "forks",
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
