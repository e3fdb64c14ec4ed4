"""Files that are cut short, of something else or of another cell: named, set aside, never read."""

from __future__ import annotations

import dataclasses
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import analysis
from analysis.comparison.compare import compare_results
from study.cell import Cell
from study.results import Damage, Results, ResultsError, Survey
from study.results.compaction import compact
from tests.made_up.comparisons import make_cell, write
from tests.made_up.tables import (
    TABLES,
    WRONG_EVALUATIONS,
    assert_same,
    changed,
    contents,
    copy,
    frames,
    in_memory,
    one_of_another,
    rewrite,
    with_files,
    write_some,
)


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


@pytest.mark.parametrize("table", TABLES)
def test_a_merged_file_with_other_bytes_in_its_middle_is_named(table: Any) -> None:
    """Its footer is whole, so that what is wrong shows where rows are read."""
    results = in_memory()
    write_some(results)
    compact(results)
    (name,) = (name for name in contents(results) if name.startswith(f"{table}/"))
    data = bytearray(contents(results)[name])
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    ids = metadata.row_group(0).column(metadata.schema.names.index("cell_id"))
    middle = ids.dictionary_page_offset + ids.total_compressed_size // 2
    data[middle : middle + 8] = bytes(8)
    broken = with_files(contents(results) | {name: bytes(data)})
    with pytest.raises(ResultsError, match=rf"{name} is damaged \(.*Run its study again"):
        analysis.load(broken)
    with pytest.raises(ResultsError, match=rf"{name} is damaged"):
        compare_results(broken)


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(TABLES),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 7),
    st.sampled_from(["", "other/"]),
)
def test_a_flipped_bit_is_found(
    some: tuple[Results, list[Cell]],
    read_from_some: Callable[..., tuple[list[pd.DataFrame], Survey]],
    table: Any,
    share: float,
    bit: int,
    folder: str,
) -> None:
    """In files of one cell, and in those that may hold more; or it changes no number."""
    source, cells = some
    both = {each: source.storage.read(f"{each}/{cells[0].id}.parquet") for each in TABLES}
    data = bytearray(both[table])
    data[int(share * len(data))] ^= 1 << bit
    file = f"{folder}x.parquet" if folder else f"{cells[0].id}.parquet"
    files = {f"{each}/{file}": bytes(kept) for each, kept in (both | {table: data}).items()}
    results = with_files(files)
    if damaged := results.survey().damaged:
        assert [each.name for each in damaged] == [f"{table}/{file}"]
    else:  # the bit was one of the digest's name
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


@pytest.mark.parametrize("table", TABLES)
def test_hidden_files_are_no_damage(results: Results, tmp_path: Path, table: str) -> None:
    """As macOS, notebooks and programs that synchronise leave them."""
    cell = write(results, make_cell())
    folder = tmp_path / "results" / table
    (folder / ".ipynb_checkpoints").mkdir()
    for name in (f"._{cell.id}.parquet", f".ipynb_checkpoints/{cell.id}-checkpoint.parquet"):
        (folder / name).write_bytes(b"no Parquet file")
    assert results.survey().damaged == ()
    assert len(results.cells()) == 1


def test_another_schema_is_no_damage(results: Results, tmp_path: Path) -> None:
    cell = write(results, make_cell())
    path = tmp_path / "results" / "evaluations" / f"{cell.id}.parquet"
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"attention_study_schema": "0"}), path)
    message = (
        rf"{cell.id}.parquet has results schema 0, this version reads schemas 2 to 9\..*--results"
    )
    for read in (results.survey, results.finished, results.evaluations):
        with pytest.raises(ResultsError, match=message):
            read()


def test_a_column_that_may_not_be_missing_is_no_column_of_ours(
    results: Results, tmp_path: Path
) -> None:
    """One flipped bit of a file's schema makes it so."""
    cell = write(results, make_cell())
    path = tmp_path / "results" / "evaluations" / f"{cell.id}.parquet"
    rows = pq.read_table(path)
    index = rows.schema.get_field_index("split")
    strict = rows.schema.set(index, pa.field("split", pa.string(), nullable=False))
    rewrite(path, rows.cast(strict))
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
