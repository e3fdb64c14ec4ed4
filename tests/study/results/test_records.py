"""Of several records of a cell one counts, and all who read agree on which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.results import CELLS_SCHEMA, EVALUATIONS_SCHEMA, SPLITS, Results, ResultsError
from study.results.cell_file import MERGED
from study.results.merging import compact, merge
from study.storage.storage import Storage
from study.tasks.mosaics import mosaics
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.tables import (
    FETCH,
    NAMES,
    READ,
    assert_same,
    contents,
    frames,
    in_memory,
    interrupted,
    put,
    write_some,
)

RANKS = ["censored", "diverged", "done"]
CELLS = [make_cell(seed=seed) for seed in range(3)]
FILES = st.tuples(
    st.sampled_from(["", "a/", "z/deep/"]),
    st.dictionaries(st.sampled_from(CELLS), st.sampled_from(RANKS), min_size=1),
    st.booleans(),
)
"""A folder; cells and how they ended; whether a file of one is of the merged kind."""


@settings(max_examples=15)
@given(st.lists(FILES, max_size=3))
def test_all_who_read_agree_on_the_record_that_counts(files: list) -> None:
    """After each file that comes, and as each one goes."""
    results, numbers = in_memory(), count()
    records: dict[str, dict[str, tuple[int, str, int]]] = defaultdict(dict)
    for folder, ends, of_many in files:
        source, mine = in_memory(), {}
        for cell, status in ends.items():
            mine[cell.id] = next(numbers)
            write(source, cell, status=status, seconds=mine[cell.id])
        if of_many or len(ends) > 1:
            merge(source, mine)
        (name,) = contents(source)
        put(results, contents(source), folder)
        name = name.replace("cells/", f"cells/{folder}")
        for cell, status in ends.items():
            records[name][cell.id] = (RANKS.index(status), name, mine[cell.id])
        assert_read(results, records)
    assert_read(Results(results.url), records)
    for name in list(records):
        results.storage.remove(name)
        del records[name]
        assert_read(results, records)


def assert_read(results: Results, records: dict[str, dict[str, tuple[int, str, int]]]) -> None:
    """Each record bears its number as the seconds that its cell took."""
    counts: dict[str, tuple[int, str, int]] = {}
    for held in records.values():
        for cell_id, record in held.items():
            counts[cell_id] = max(record, counts.get(cell_id, record))
    seconds = {cell_id: record[2] for cell_id, record in sorted(counts.items())}
    assert results.survey().statuses == {i: RANKS[rank] for i, (rank, *_) in counts.items()}
    cells, evaluations = frames(results)
    assert dict(zip(cells["cell_id"], cells["total_train_seconds"], strict=True)) == seconds
    last = evaluations[evaluations["budget_fraction"] == 1]
    assert len(last) == len(SPLITS) * len(seconds)
    assert dict(zip(last["cell_id"], last["train_seconds"], strict=True)) == seconds
    paths, left_out = results.files()
    rows = {
        (path, row["cell_id"], row["total_train_seconds"])
        for path in paths
        for row in pq.read_table(path, columns=["cell_id", "total_train_seconds"]).to_pylist()
    }
    assert {row[1:] for row in rows if row[:2] not in left_out} == set(seconds.items())
    for cell in CELLS:
        own = [
            held[cell.id][0]
            for name, held in records.items()
            if name.startswith(f"cells/{cell.id}-")
        ]
        assert results.status(cell.id) == (RANKS[max(own)] if own else None)


def test_a_name_alone_makes_no_record(results: Results) -> None:
    """Not even that of a file that somebody renamed."""
    one, other = make_cell(seed=0), make_cell(seed=1)
    write(results, one)
    (name,) = contents(results)
    results.storage.move(name, name.replace(one.id, other.id))
    assert results.status(other.id) is None
    assert results.finished() == {one.id}


def changed(**columns: object) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda rows: rows.assign(**columns)


def as_it_is(rows: pd.DataFrame) -> pd.DataFrame:
    return rows


@pytest.mark.parametrize(
    ("differ", "of_cell", "of_evaluations"),
    [
        (False, changed(device="other", total_seconds=99.0), as_it_is),
        (False, as_it_is, lambda rows: rows.assign(loss=rows["loss"] * (1 + 1e-8))),
        (False, changed(status="censored"), lambda rows: rows[:6]),
        (False, as_it_is, lambda rows: rows[::-1]),
        (True, as_it_is, lambda rows: rows.assign(loss=rows["loss"] * 1.01)),
        (True, as_it_is, changed(ftpt=float("nan"))),
        (True, as_it_is, lambda rows: rows[1:]),
        (True, as_it_is, lambda rows: rows[:0]),
        (True, changed(status="done"), as_it_is),
    ],
)
def test_records_that_differ_beyond_rounding_are_named(
    results: Results,
    differ: bool,
    of_cell: Callable[[pd.DataFrame], pd.DataFrame],
    of_evaluations: Callable[[pd.DataFrame], pd.DataFrame],
) -> None:
    write(results, make_cell(seed=1))
    cell = write(results, make_cell(), status="diverged")
    cells, evaluations = frames(results, [cell.id])
    (name,) = (name for name in contents(results) if cell.id in name)
    other = results.write(
        MERGED,
        pa.Table.from_pandas(of_cell(cells), CELLS_SCHEMA, preserve_index=False),
        pa.Table.from_pandas(
            of_evaluations(evaluations), EVALUATIONS_SCHEMA, preserve_index=False
        ),
    )
    names = [results.storage.path(each) for each in (other, name)]
    sentence = f"cell {cell.id} has different results in {names[0]} and {names[1]}"
    assert results.disagreements() == [sentence] * differ
    assert results.disagreements([make_cell(seed=1).id]) == []
    if differ:
        with pytest.raises(ResultsError, match=f"^{sentence}. Move one of the two away"):
            compact(results)
        assert len(contents(results)) == 3


def test_what_is_no_results_directory_is_refused(results: Results) -> None:
    nothing = Results(f"{results.url}/nothing")
    assert nothing.finished() == nothing.finished() == set()
    for read in (nothing.cells, nothing.evaluations, nothing.tables, nothing.files):
        with pytest.raises(ResultsError, match=r"nothing is no results directory \(it has no"):
            read()
    assert [len(frame) for frame in frames(results)] == [0, 0]


def test_splits_are_those_of_the_tasks() -> None:
    assert SPLITS == mosaics.SPLITS


# --- while others write


@pytest.mark.parametrize("store", [False, True])
def test_a_reader_is_not_confused_by_a_merge(results: Results, store: bool) -> None:
    """At whatever moment of a reading small files become one, the same is read."""
    source = in_memory()
    write_some(source)
    expected, files, places = frames(source), contents(source), count()
    ids = expected[0]["cell_id"].tolist()

    def new() -> Results:
        return in_memory() if store else make_results(Path(results.url, str(next(places))))

    def tables(place: Results) -> list[pd.DataFrame]:
        return [table.to_pandas() for table in place.tables()]

    for read in (frames, lambda place: frames(place, ids), tables):
        for _, found, _ in interrupted(
            files, read, lambda place: merge(place, ids), NAMES, FETCH, READ, new=new
        ):
            assert_same(found, expected)


@pytest.mark.parametrize("stale", [2, None])
def test_a_listing_that_is_stale_for_a_while_is_read_again(
    results: Results, monkeypatch: pytest.MonkeyPatch, stale: int | None
) -> None:
    """As NFS and object stores show for a while what was removed; for ever, it is named."""
    monkeypatch.setattr("study.results.records._PAUSES", (0.0,) * 5)
    cell = write(results, make_cell())
    gone = f"cells/{cell.id}-{'0' * 16}.parquet"
    names, asked = Storage.names, count()

    def listed(self: Storage, folder: str, prefix: str = "") -> list[str]:
        later = stale is not None and next(asked) // 2 >= stale  # each look lists twice
        return [*names(self, folder, prefix), *([] if later else [gone])]

    monkeypatch.setattr(Storage, "names", listed)
    if stale is not None:
        assert len(results.cells()) == 1
        assert next(asked) == 2 * stale + 2
    else:
        for read in (results.cells, results.survey):
            with pytest.raises(ResultsError, match=rf"is listed, but not there .*{gone}"):
                read()
