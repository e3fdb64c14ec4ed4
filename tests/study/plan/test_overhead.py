"""What a study takes besides training: measured by one command, told by the next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from study.plan.describe import describe
from study.plan.jobs import Seconds
from study.plan.overhead import FILE, Overhead, recall, remember
from tests.study.plan.test_plan import plan


@pytest.mark.parametrize("text", [None, "", "[]", '{"here": 3}', '{"here": [1, NaN]}'])
def test_what_was_measured_is_recalled_where_it_was(tmp_path: Path, text: str | None) -> None:
    """Whatever the file held before; a cache that cannot be written stops nothing."""
    cache = tmp_path / "cache"
    if text is not None:
        cache.mkdir()
        (cache / FILE).write_text(text)
    assert recall(cache, "here") == Overhead(measured=False)
    for where, start in (("here", 20.04), ("there", 1.0), ("here", 21.0)):
        remember(cache, where, Overhead(start, start + 10))
    assert recall(cache, "here") == Overhead(21.0, 31.0, measured=True)
    assert recall(cache, "there") == Overhead(1.0, 11.0, measured=True)
    assert [path.name for path in cache.iterdir()] == [FILE]
    remember(cache / FILE, "here", Overhead(1.0, 2.0))
    assert recall(cache / FILE, "here") == Overhead(measured=False)


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
