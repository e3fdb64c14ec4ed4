"""How long a pack takes: at first as estimated, then as packs like it took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from study.cell import Cell, Schedule
from study.launch.pace import MARGIN, Pace
from study.results import Results
from tests.made_up.comparisons import make_cell, write

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
    one.took(SEEDS, 16.0)
    assert seconds(one, SEEDS) == pytest.approx(16)
    assert seconds(one, SEEDS[:3]) == pytest.approx(16)  # at most as long as the larger one
    assert seconds(one, SEEDS[:1]) == pytest.approx(10)
    assert seconds(one, OTHERS) == pytest.approx(40)
    one.took(SEEDS, 12.0)
    assert seconds(one, SEEDS) == pytest.approx(16)  # the longest


def test_if_cells_take_longer_than_estimated_others_do_too() -> None:
    one, _ = pace()
    one.took(SEEDS[:1], 30.0)
    assert seconds(one, SEEDS[:1]) == pytest.approx(30)
    assert seconds(one, OTHERS[:1]) == pytest.approx(30)


def test_as_many_cells_start_as_end_in_time() -> None:
    one, now = pace(seconds=34.0)
    assert one.in_time(SEEDS) == 3
    now[0] = 22.0
    assert one.in_time(SEEDS) == 1
    now[0] = 24.0
    assert one.in_time(SEEDS) == 0


def test_cells_recorded_on_the_same_device_are_known(results: Results) -> None:
    write(results, SEEDS[0])
    cells = results.cells()
    one, _ = pace()
    one.recall(cells.assign(pack=4, total_seconds=5.0), "another device")
    assert seconds(one, SEEDS) == pytest.approx(40)
    one.recall(cells.assign(pack=4, total_seconds=5.0), cells["device"].item())
    assert seconds(one, SEEDS) == pytest.approx(5)
    assert seconds(one, OTHERS) == pytest.approx(40)
