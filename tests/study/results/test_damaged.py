"""Files that are cut short, changed or of something else: named, set aside, never read."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import analysis
from analysis.comparison.compare import compare_results
from study.cell import Cell
from study.results import Damage, Results, ResultsError, Survey, parquet
from study.results.compaction import compact
from tests.made_up.comparisons import make_cell, write
from tests.made_up.tables import (
    LACKING,
    TABLES,
    assert_same,
    contents,
    frames,
    in_memory,
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
    some: tuple[Results, list[Cell]], table: Any, share: float, bit: int, folder: str
) -> None:
    """In files of one cell, and in those that may hold more."""
    source, cells = some
    both = {each: source.storage.read(f"{each}/{cells[0].id}.parquet") for each in TABLES}
    data = bytearray(both[table])
    data[int(share * len(data))] ^= 1 << bit
    file = f"{folder}x.parquet" if folder else f"{cells[0].id}.parquet"
    files = {f"{each}/{file}": bytes(kept) for each, kept in (both | {table: data}).items()}
    results = with_files(files)
    assert [each.name for each in results.survey().damaged] == [f"{table}/{file}"]


@pytest.mark.parametrize("table", TABLES)
def test_foreign_files_are_damaged(results: Results, tmp_path: Path, table: str) -> None:
    write(results, make_cell())
    folder = tmp_path / "results" / table
    pq.write_table(pa.table({"x": [1]}), folder / "foreign.parquet")
    (folder / "empty.parquet").write_bytes(b"")
    (folder / "notes.txt").write_text("no Parquet file is no result")
    (own,) = folder.glob("[0-9a-f]*[0-9a-f].parquet")
    pq.write_table(pq.read_table(own), folder / "written-anew.parquet")
    survey = results.survey()
    assert {each.name.removeprefix(f"{table}/"): each.reason for each in survey.damaged} == {
        "empty.parquet": survey.damaged[0].reason,
        "foreign.parquet": "it was not written by this platform",
        "written-anew.parquet": "its bytes are not those that were written",
    }
    assert len(survey.statuses) == 1


def test_files_of_another_name_are_not_taken_for_that_cell() -> None:
    source = in_memory()
    one, other, *_ = write_some(source)
    files = contents(source)
    for table in TABLES:
        files[f"{table}/{other.id}.parquet"] = files[f"{table}/{one.id}.parquet"]
    results = with_files(files)
    assert [each.name for each in results.survey().damaged] == [f"cells/{other.id}.parquet"]
    assert not results.has_cell(other.id)
    with pytest.raises(ResultsError, match=f"{other.id}.parquet is damaged"):
        analysis.load(results)


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


def test_another_schema_is_no_damage(results: Results) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "SCHEMA_VERSION", 8)
        cell = write(results, make_cell())
    message = (
        rf"{cell.id}.parquet has results schema 8, this version reads schema 9\..*--results DIR"
    )
    for read in (results.survey, results.finished, results.evaluations):
        with pytest.raises(ResultsError, match=message):
            read()


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


@pytest.mark.parametrize("act", LACKING)
def test_a_cell_counts_only_with_its_evaluations(
    results: Results,
    read_from_some: Callable[..., tuple[list[pd.DataFrame], Survey]],
    act: Callable[[Results, list[Cell]], None],
) -> None:
    cells = write_some(results)
    act(results, cells)
    name, reason = f"evaluations/{cells[0].id}.parquet", f"lacks evaluations of cell {cells[0].id}"
    survey = results.survey()
    assert survey.damaged == (Damage(name, f"it {reason}"),)
    assert set(survey.statuses) == {cell.id for cell in cells[1:]}
    assert not results.has_cell(cells[0].id)
    for read in (results.cells, results.evaluations):
        for ids in (None, [cells[0].id]):
            with pytest.raises(ResultsError, match=rf"{name} is damaged \(.*{reason}"):
                read(ids)
        assert set(read([cells[1].id])["cell_id"]) == {cells[1].id}
    (aside,) = results.set_aside(survey.damaged)
    assert Path(aside).exists()
    assert results.survey() == dataclasses.replace(survey, damaged=())
    assert len(results.cells()) == len(cells) - 1
    write(results, cells[0], 0.8)
    assert_same(frames(results), read_from_some()[0])
