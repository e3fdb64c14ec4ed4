"""Which cells each shard has: every cell is one shard's, whatever is recorded by then."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from study.cell import Cell
from study.cell.work import Work
from study.concluding.choice import Choice
from study.kinds import KINDS
from study.launch.workplace import looked_at
from study.plan.plan import Plan
from study.plan.planning import planned
from study.plan.stages import staged
from study.request import Request, Shard
from study.results import Results
from study.run_options import requested
from study.shards.share import Share
from tests.made_up.comparisons import write
from tests.made_up.tables import in_memory

pytestmark = pytest.mark.usefixtures("digits")

NUMBERS = (1, 2, 3, 5, 16, 100)

GRID = ("paradigm=soft,hybrid", "lr=0.1,0.3", "switch_point=0.5", "seed=0,1", "confirm=100-102")
"""Four cells tune each paradigm, three confirm it."""


def request_of(*sets: str) -> Request:
    return requested(["digits", "--set", *(sets or GRID)])


def shares(request: Request, grid: Plan, of: int) -> list[Share]:
    return [Share(Shard(number, of), grid, request.confirm) for number in range(1, of + 1)]


def known(request: Request, results: Results, grid: Plan) -> Plan:
    """The plan of the whole study beside what is recorded."""
    place = looked_at(results.url)
    choose = Choice(request, place)
    return staged(grid, request.confirm, place.survey.cells, place.finished, choose)


def record(results: Results, cell: Cell) -> None:
    stage = Work(study="digits", results="", code_version="", confirm=(100, 101, 102)).stage(cell)
    write(results, cell, 0.5 + cell.lr, stage=stage)


@pytest.mark.parametrize("of", NUMBERS)
def test_every_cell_is_one_shard_s_and_each_group_is_spread_evenly(of: int) -> None:
    request = request_of("paradigm=soft,hard,hybrid", "lr=0.1,0.3", "m=3,4", "seed=0-6")
    grid = planned(request)
    parts = [share.of(grid).cells for share in shares(request, grid, of)]
    assert Counter(itertools.chain(*parts)) == Counter(grid.cells)
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    for group in {cell.group for cell in grid.cells}:
        counts = [sum(cell.group == group for cell in part) for part in parts]
        assert max(counts) - min(counts) <= 1


def test_what_is_recorded_moves_no_cell_to_another_shard() -> None:
    """At every moment of a study, what is known and what is to come is one shard's."""
    request, results = request_of(), in_memory()
    grid = planned(request)
    everybody = {of: shares(request, grid, of) for of in NUMBERS}
    owner: dict[tuple[int, str], int] = {}
    for plan in as_cells_end(request, results, grid):
        for of, each in everybody.items():
            parts = [share.of(plan) for share in each]
            assert sum(part.num_to_come for part in parts) == plan.num_to_come
            assert sum(len(part.cells) for part in parts) == len(plan.cells)
            for number, part in enumerate(parts):
                assert part.finished == plan.finished & {cell.id for cell in part.cells}
                for cell in part.cells:
                    assert owner.setdefault((of, cell.id), number) == number
    assert len(owner) == len(NUMBERS) * (8 + 6)
    for each in everybody.values():
        counts = [
            len(share.of(replace(plan, cells=tuple(plan.confirming))).cells) for share in each
        ]
        assert max(counts) - min(counts) <= 1


def as_cells_end(request: Request, results: Results, grid: Plan) -> Iterator[Plan]:
    """The plan of a study that has just begun, then after each of its cells, until the last."""
    while (plan := known(request, results, grid)).to_run:
        yield plan
        record(results, plan.to_run[-1])
    yield plan


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2)])
def test_shards_in_any_order_again_and_again_train_the_whole_study(order: tuple[int, ...]) -> None:
    request, results = request_of(), in_memory()
    grid = planned(request)
    trained: Counter[str] = Counter()
    for number in order * 2:  # a round for each stage
        part = Share(Shard(number, 3), grid, request.confirm).of(known(request, results, grid))
        for cell in part.to_run:
            record(results, cell)
            trained[cell.id] += 1
    plan = known(request, results, grid)
    assert (plan.to_run, plan.to_come) == ([], ())
    assert trained == Counter(cell.id for cell in plan.cells)


def test_an_only_option_needs_no_tuning_but_has_its_place() -> None:
    request = request_of("paradigm=soft,hard", "lr=0.1", "confirm=100-102")
    grid = planned(request)
    plan = known(request, in_memory(), grid)
    parts = [share.of(plan) for share in shares(request, grid, 3)]
    assert [[cell.paradigm for cell in part.cells] for part in parts] == [["soft", "hard"]] * 3
    assert [cell.seed for part in parts for cell in part.cells] == [100, 100, 101, 101, 102, 102]


def test_more_shards_or_a_wider_grid_divide_what_is_left_anew() -> None:
    request, results = request_of(), in_memory()
    grid = planned(request)
    for cell in Share(Shard(1, 3), grid, request.confirm).of(known(request, results, grid)).cells:
        record(results, cell)
    wider = request_of(*GRID[:1], "lr=0.1,0.3,1", *GRID[2:])
    grid = planned(wider)
    plan = known(wider, results, grid)
    left = [share.of(plan).to_run for share in shares(wider, grid, 5)]
    assert Counter(itertools.chain(*left)) == Counter(plan.to_run)
    assert len(plan.to_run) == 12 - 3


@pytest.mark.parametrize("study", ["one-shot", "attention-paths"])
def test_kinds_that_do_not_train_and_networks_that_they_need(study: str) -> None:
    request = requested([study, "--plan"])
    grid = planned(request)
    kind = KINDS[grid.kind]
    parts = shares(request, grid, 4)
    cells: list[Any] = [*kind.needs(grid.cells), *grid.cells]
    assert {sum(share.has(cell) for share in parts) for cell in cells} == {1}
    networks = replace(grid, cells=tuple(kind.needs(grid.cells)))
    for plan in (networks, grid):
        sizes = [len(share.of(plan).cells) for share in parts]
        assert max(sizes) - min(sizes) <= 1
