"""The place where a command trains: what it merges."""

from __future__ import annotations

from pathlib import Path

import pytest

from study.drive import opened
from study.results import ResultsError, compaction
from study.run_options import requested
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.tables import contents, frames


def test_a_start_merges_what_earlier_commands_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MOST_SMALL_FILES", 3)
    results = make_results(tmp_path)
    for seed in range(4):
        write(results, make_cell(seed=seed))
    write(results, make_cell(seed=4), status="censored", points=(0.25,), steps=10)
    before = frames(results)
    notes: list[str] = []
    with opened(requested(["digits", "--results", str(tmp_path)])) as place:
        place.prepare()
        tables = [name.partition("/")[0] for name in contents(results)]
        assert tables.count("cells") == 1 + 2  # one is left, and one that may go on
        write(results, make_cell(seed=5))
        write(results, make_cell(seed=6))
        place.merge([make_cell(seed=5).id, make_cell(seed=6).id], notes.append)
    assert len(results.storage.names("cells", ".parquet")) == 2 + 1
    assert len(frames(results)[0]) == len(before[0]) + 2
    assert notes == []


def test_no_worker_of_an_earlier_command_records_what_is_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would find no file of the cell's own, and record the cell a second time."""
    monkeypatch.setattr(compaction, "MOST_SMALL_FILES", 3)
    results = make_results(tmp_path)
    mark = results.mark()
    for seed in range(3):
        results.require_mark(mark)
        write(results, make_cell(seed=seed))
        with opened(requested(["digits", "--results", str(tmp_path)])) as place:
            place.prepare()
    with pytest.raises(ResultsError, match="another command runs with it now"):
        results.require_mark(mark)
    mark = results.mark()
    compaction.compact(results)  # nothing to do
    results.require_mark(mark)
    write(results, make_cell(seed=3))
    compaction.compact(results)
    with pytest.raises(ResultsError, match="another command runs with it now"):
        results.require_mark(mark)


def test_a_study_goes_on_with_small_files_where_they_cannot_be_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MOST_SMALL_FILES", 1)
    results = make_results(tmp_path)
    notes: list[str] = []
    with opened(requested(["digits", "--results", str(tmp_path)])) as place:
        place.prepare()
        cells = [write(results, make_cell(seed=seed)) for seed in range(2)]

        def fail(*_: object) -> None:
            raise ResultsError("the disk is full")

        monkeypatch.setattr("study.results.results.Results.write_table", fail)
        for cell in cells:
            place.merge([cell.id], notes.append)
    assert notes == ["files of results are not merged any more: the disk is full"]
    assert len(results.survey().small) == 2
