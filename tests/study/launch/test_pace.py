"""How long a pack takes: at first as estimated, then as packs like it took."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest

from study.cell import Cell, Schedule
from study.launch.pace import MARGIN, Pace
from tests.made_up.comparisons import make_cell

SEEDS = [make_cell(seed=seed) for seed in range(4)]
OTHERS = [replace(cell, schedule=Schedule.single("lvml", 0.1)) for cell in SEEDS]


def pace(seconds: float = 100.0) -> tuple[Pace, list[float]]:
    """Of cells of 10 s each, and its clock."""
    now = [0.0]
    estimates = {cell.id: 10.0 for cell in (*SEEDS, *OTHERS)}
    return Pace(estimates, seconds, lambda: now[0]), now


def seconds(of: Pace, cells: list[Cell]) -> float:
    return of.seconds(cells) / MARGIN


def test_an_unknown_pack_takes_its_cells_one_after_the_other() -> None:
    assert seconds(pace()[0], SEEDS) == pytest.approx(40)


def test_packs_like_one_that_ended_take_as_long() -> None:
    one, _ = pace()
    one.learn(ended(4, 16.0))
    assert seconds(one, SEEDS) == pytest.approx(16)
    assert seconds(one, SEEDS[:3]) == pytest.approx(16)  # at most as long as the larger one
    assert seconds(one, SEEDS[:1]) == pytest.approx(10)
    assert seconds(one, OTHERS) == pytest.approx(40)
    one.learn(ended(4, 12.0))
    assert seconds(one, SEEDS) == pytest.approx(16)  # the longest


def test_if_cells_take_longer_than_estimated_others_do_too() -> None:
    one, _ = pace()
    one.learn(ended(1, 30.0))
    assert seconds(one, SEEDS[:1]) == pytest.approx(30)
    assert seconds(one, OTHERS[:1]) == pytest.approx(30)


def test_as_many_cells_start_as_end_in_time() -> None:
    one, now = pace(seconds=34.0)
    assert one.in_time(SEEDS) == 3
    now[0] = 22.0
    assert one.in_time(SEEDS) == 1
    now[0] = 24.0
    assert one.in_time(SEEDS) == 0


def test_only_cells_that_trained_from_start_to_end_count() -> None:
    one, _ = pace()
    for change in ({"status": "diverged"}, {"shared_prefix": True}):
        one.learn(ended(4, 5.0).assign(**change))
    assert seconds(one, SEEDS) == pytest.approx(40)


def ended(pack: int, took: float) -> pd.DataFrame:
    """What a cell of a pack recorded."""
    cell = json.dumps(SEEDS[0].to_dict())
    row = {"cell": cell, "pack": pack, "total_seconds": took, "status": "done", "kind": "training"}
    return pd.DataFrame([{**row, "shared_prefix": False}])
