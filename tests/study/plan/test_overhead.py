"""What a study takes besides training: measured by one command, told by the next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from study.plan.describe import describe
from study.plan.jobs import Seconds
from study.plan.overhead import FILE, Overhead, recall, remember
from tests.study.plan.test_plan import plan


def test_what_was_measured_is_recalled_where_it_was(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert recall(cache, "here") == Overhead(measured=False)
    remember(cache, "here", Overhead(20.04, 30.0))
    remember(cache, "there", Overhead(1.0, 2.0))
    remember(cache, "here", Overhead(21.0, 31.0))
    assert recall(cache, "here") == Overhead(21.0, 31.0, measured=True)
    assert recall(cache, "there") == Overhead(1.0, 2.0, measured=True)
    assert [path.name for path in cache.iterdir()] == [FILE]


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "1", '{"here": 3}', '{"here": [1]}', '{"here": [1, NaN]}',
             '{"here": [-1, 1]}', '{"here": [null, 1]}'],
)  # fmt: skip
def test_a_file_of_something_else_is_as_none_and_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert recall(tmp_path, "here") == Overhead(measured=False)
    remember(tmp_path, "here", Overhead(1.0, 2.0))
    assert recall(tmp_path, "here") == Overhead(1.0, 2.0, measured=True)


def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    remember(file, "here", Overhead(1.0, 2.0))
    assert recall(file, "here") == Overhead(measured=False)


def test_the_plan_counts_what_precedes_and_follows_training() -> None:
    """Two settings, each with a cell and a section of the report."""
    made = plan("digits", "m=5,10", "seed=0", "paradigm=soft", "lr=0.1")
    costs = {cell.id: Seconds(7.0, 0.0) for cell in made.cells}
    made = replace(made, concurrent=2, costs=costs)
    measured = replace(made, overhead=Overhead(13.0, 10.0, measured=True))
    assert (
        "estimated time on this machine: 40 s (start 13 s, training 7 s, report 20 s; "
        "start and report as in the last study here)\n"
    ) in describe(measured, "")
    assert "assumed: none trained here yet" in describe(made, "")
