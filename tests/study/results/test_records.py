"""Of several records of a cell one counts, and all who read agree on which."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.results import SPLITS, Results, ResultsError
from study.results.merging import compact, merge
from study.storage.storage import Storage
from study.tasks.mosaics import mosaics
from tests.made_up.comparisons import POINTS, make_cell, make_results, write
from tests.made_up.tables import (
    FETCH,
    LIST,
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
Record = tuple[str, int, str, int]
"""Id of the cell, rank, file; and a number, which stands there as the seconds that it took."""

FILES = st.tuples(
    st.sampled_from(["", "a/", "z/deep/"]),
    st.dictionaries(st.sampled_from(CELLS), st.sampled_from(RANKS), min_size=1),
    st.booleans(),
)
"""A folder; cells and how they ended; whether a file of one is of the merged kind."""


@settings(max_examples=15)
@given(st.lists(FILES, max_size=3))
def test_all_who_read_agree_on_the_record_that_counts(files):
    """After each file that comes, and as each one goes."""
    results, numbers = in_memory(), count()
    records: list[Record] = []
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
            records.append((cell.id, RANKS.index(status), name, mine[cell.id]))
        assert_read(results, records)
    assert_read(Results(results.url), records)
    for name in {record[2] for record in records}:
        results.storage.remove(name)
        records = [record for record in records if record[2] != name]
        assert_read(results, records)


def assert_read(results: Results, records: list[Record]) -> None:
    counts = {record[0]: record[1:] for record in sorted(records)}
    seconds = {cell_id: number for cell_id, (_, _, number) in counts.items()}
    assert results.survey().statuses == {i: RANKS[rank] for i, (rank, _, _) in counts.items()}
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
        own = [rank for _, rank, name, _ in records if name.startswith(f"cells/{cell.id}-")]
        assert results.status(cell.id) == (RANKS[max(own)] if own else None)


def test_a_name_alone_makes_no_record(results):
    """Not even that of a file that somebody renamed."""
    one, other = make_cell(seed=0), make_cell(seed=1)
    write(results, one)
    (name,) = contents(results)
    results.storage.move(name, name.replace(one.id, other.id))
    assert results.status(other.id) is None
    assert results.finished() == {one.id}


@pytest.mark.parametrize(
    ("differ", "changes"),
    [
        (False, {"device": "other", "total_seconds": 99.0}),
        (False, {"loss": 0.3 * (1 + 1e-8)}),
        (False, {"status": "censored", "points": POINTS[:2]}),
        (True, {"loss": 0.31}),
        (True, {"loss": float("nan")}),
        (True, {"points": POINTS[1:]}),
        (True, {"status": "done"}),
    ],
)
def test_records_that_differ_beyond_rounding_are_named(results, differ, changes):
    other = in_memory()
    write(results, make_cell(seed=1))
    cell = write(results, make_cell(), status="diverged")
    write(other, cell, **{"status": "diverged", **changes})
    put(results, contents(other), "other/")
    found = results.disagreements()
    assert len(found) == differ
    assert results.disagreements([make_cell(seed=1).id]) == []
    if differ:
        names = [name for name in contents(results) if cell.id in name]
        assert all(word in found[0] for word in (cell.id, *map(results.storage.path, names)))
        with pytest.raises(ResultsError, match=f"^{found[0]}. Move one of the two away"):
            compact(results)
        assert len(contents(results)) == 3


def test_what_is_no_results_directory_is_refused(results):
    nothing = Results(f"{results.url}/nothing")
    assert nothing.finished() == nothing.finished() == set()
    for read in (nothing.cells, nothing.evaluations, nothing.tables, nothing.files):
        with pytest.raises(ResultsError, match=r"nothing is not a results directory \(it has no"):
            read()
    assert [len(frame) for frame in frames(results)] == [0, 0]


def test_splits_are_those_of_the_tasks():
    assert SPLITS == mosaics.SPLITS


# --- while others write


@pytest.mark.parametrize("store", [False, True])
def test_a_reader_is_not_confused_by_a_merge(results, store):
    """At whatever moment of a reading, or of a listing, small files become one."""
    source = in_memory()
    write_some(source)
    expected, places = frames(source), count()
    ids = expected[0]["cell_id"].tolist()
    files = {name.replace("/", "/other/"): data for name, data in contents(source).items()}

    def new() -> Results:
        return in_memory() if store else make_results(Path(results.url, str(next(places))))

    for _, found, _ in interrupted(
        files, frames, lambda place: merge(place, ids), NAMES, LIST, FETCH, READ, new=new
    ):
        assert_same(found, expected)


@pytest.mark.parametrize("stale", [2, None])
def test_a_listing_that_is_stale_for_a_while_is_read_again(results, monkeypatch, stale):
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
