"""A file of cells: what is written is read again, and what was changed since never is."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import analysis
from study.results import Damage, Results, ResultsError, cell_file
from study.results.merging import compact
from tests.made_up import runs
from tests.made_up.chapters import brought
from tests.made_up.comparisons import make_cell, write
from tests.made_up.tables import (
    POINTER,
    assert_same,
    contents,
    frames,
    in_memory,
    put,
    write_some,
)


def recorded(results: Results) -> None:
    own = runs.CLEAR.assign(recall=runs.CLEAR["accuracy"] / 2)
    analysis.record(results.url, own, measures=["recall"])


@pytest.mark.parametrize(
    "make",
    [write_some, recorded, *(each.write for each in brought().results.values())],
)
def test_what_is_written_is_read_again(make, results, monkeypatch):
    """From a file of each cell, and from one of all."""
    written: list[tuple[pa.Table, ...]] = []
    real = cell_file.rows_of

    def rows_of(*tables: pa.Table) -> pa.Table:
        written.append(tables)
        return real(*tables)

    monkeypatch.setattr("study.results.cell_file.rows_of", rows_of)
    make(results)
    expected = [
        pa.concat_tables(tables)
        .to_pandas()
        .sort_values("cell_id", kind="stable", ignore_index=True)
        for tables in zip(*written, strict=True)
    ]
    assert_same(frames(results), expected)
    ids = expected[0]["cell_id"].tolist()
    assert_same(frames(results, [ids[-1], ids[0], "no cell"]), frames(results, [ids[0], ids[-1]]))
    monkeypatch.undo()
    compact(results)
    assert_same(frames(Results(results.url)), expected)


def test_a_directory_is_one_table(results, tmp_path):
    """To whoever reads Parquet; a cell without evaluations has a row without a split."""
    write_some(results)
    compact(results)
    write(results, make_cell(seed=9))
    rows = pd.read_parquet(tmp_path / "results" / "cells")
    cells, evaluations = frames(results)
    joined = cells.merge(evaluations, on="cell_id", how="left")[rows.columns]
    place = ["cell_id", "budget_fraction", "split"]
    one, other = (each.sort_values(place, ignore_index=True) for each in (rows, joined))
    pd.testing.assert_frame_equal(one, other, check_exact=True, check_dtype=False)


# --- damage


@pytest.fixture(scope="module")
def sound() -> dict[str, bytes]:
    """Files of one cell, and one of all."""
    results = in_memory()
    write_some(results)
    files = contents(results)
    compact(results)
    return files | contents(results)


def test_every_flipped_bit_and_every_cut_is_found(sound, results):
    draw = random.Random(0)
    put(results, sound)
    damaged = set()
    for number in range(3_200):
        name, data = draw.choice(list(sound.items()))
        bad = bytearray(data)
        if number < 3_000:
            bad[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        else:
            del bad[draw.randrange(len(data)) :]
        put(results, {name: bytes(bad)}, f"{number}/")
        damaged.add(name.replace("cells/", f"cells/{number}/"))
    survey = results.survey()
    assert {damage.name for damage in survey.damaged} == damaged
    assert len(survey.statuses) == 5


def test_foreign_files_are_damage_and_hidden_ones_and_others_are_none(sound, results):
    """As macOS, notebooks and programs that synchronise leave the latter."""
    put(results, sound)
    name = min(sound).removeprefix("cells/")
    foreign = {"foreign.parquet": b"x", f"copy-of-{name}": sound[f"cells/{name}"]}
    put(results, foreign)
    put(results, {f"._{name}": b"x", "notes.txt": b"x"})
    put(results, {name: b"x"}, ".ipynb_checkpoints/")
    survey = results.survey()
    assert survey.damaged == tuple(
        Damage(f"cells/{each}", "it was not written by this platform") for each in sorted(foreign)
    )
    assert len(survey.statuses) == 5


def test_what_stands_in_the_place_of_a_file_is_no_damage_whose_cell_would_run_again(
    results,
):
    cell, *_ = write_some(results)
    (name,) = (each for each in contents(results) if cell.id in each)
    results.storage.write(name, POINTER)

    def refused(match: str) -> None:
        for read in (
            results.survey,
            results.cells,
            lambda: results.status(cell.id),
            lambda: compact(results),
            lambda: results.storage.read(name),
        ):
            with pytest.raises(ResultsError, match=match):
                read()

    refused(f"{name} is a pointer of Git LFS.*git lfs pull")
    if results.storage.local:
        path = Path(results.storage.path(name))
        path.unlink()
        os.mkfifo(path)
        refused(f"{name} is a named pipe")


def test_damage_is_named_set_aside_and_its_cells_run_again(results):
    """One that is only being copied counts once it is whole."""
    cells = write_some(results)
    before, files = frames(results), contents(results)
    (name,) = (each for each in files if cells[0].id in each)
    for content in (files[name][:100], b"again"):
        results.storage.write(name, content)
        again = Results(results.url)
        for _ in range(2):
            assert again.finished() == {cell.id for cell in cells[1:]}
            assert again.status(cells[0].id) is None
        with pytest.raises(ResultsError, match=rf"{name} is damaged \(.*again, which"):
            again.cells()
        with pytest.raises(ResultsError, match=f"{name} is damaged"):
            again.evaluations([cells[0].id])
        assert len(again.cells([cells[1].id])) == 1
        results.storage.write(name, files[name])
        assert again.finished() == {cell.id for cell in cells}
        results.storage.write(name, content)
        again = Results(results.url)
        (aside,) = again.set_aside(again.survey().damaged)
        assert Path(aside).read_bytes() == content
        assert again.set_aside([Damage(name, "")]) == []  # another process did
        write(results, cells[0], 0.8)
        assert_same(frames(Results(results.url)), before)


@pytest.mark.parametrize("read", [Results.cells, Results.evaluations, Results.files, compact])
def test_a_byte_that_changes_after_it_was_looked_at_becomes_no_number(results, read):
    """Parquet itself reads most such files, as other numbers or texts, without an error."""
    cell, *others = write_some(results)
    (name,) = (each for each in contents(results) if cell.id in each)
    whole = results.storage.read(name)
    for place in range(5, len(whole), len(whole) // 20):
        assert len(results.finished()) == 1 + len(others)
        changed = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        results.storage.write(name, changed)
        with pytest.raises(ResultsError, match=f"{name} is damaged"):
            read(results)
        assert [damage.name for damage in results.survey().damaged] == [name]
        results.storage.write(name, whole)


@pytest.mark.parametrize("name", ["0123456789abcdef", "compact-0123456789abcdef", None])
def test_files_of_another_version_are_no_damage(name, results, monkeypatch):
    if name:
        put(results, {f"{name}.parquet": b"x"})
    else:
        with monkeypatch.context() as patch:
            patch.setattr(cell_file, "SCHEMA_VERSION", 9)
            write(results, make_cell())
    (there,) = contents(results)
    for read in (results.survey, results.cells):
        with pytest.raises(ResultsError, match=rf"{there} was made by another version.*--results"):
            read()
