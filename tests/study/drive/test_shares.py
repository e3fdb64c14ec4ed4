"""Which cells each shard has: every cell is one shard's, whatever is recorded by then."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pandas as pd
import pytest

from study.drive.as_shard import share_of
from study.launch.workplace import looked_at
from study.plan.networks_first import with_networks
from study.plan.plan import Plan
from study.plan.planning import planned
from study.plan.stages import staged
from study.request import Request, Shard
from study.results import Results
from study.run_options import requested
from tests.made_up.comparisons import write
from tests.made_up.tables import in_memory

pytestmark = pytest.mark.usefixtures("digits")

NUMBERS = (1, 2, 3, 5, 16, 100)

GRID = ("paradigm=soft,hybrid", "lr=0.1,0.3", "switch_point=0.5", "seed=0,1", "confirm=100-102")
"""Four cells tune each paradigm, three confirm it."""


def shares(plan: Plan, of: int) -> list[Plan]:
    return [share_of(plan, Shard(number, of)) for number in range(1, of + 1)]


@pytest.mark.parametrize(
    "words",
    [
        "digits --set paradigm=soft,hard,hybrid lr=0.1,0.3 m=3,4 seed=0-6",
        "one-shot --plan --set task=digits-one-shot",
        "attention-paths --plan",
    ],
)
def test_every_cell_is_one_shard_s_and_each_group_is_spread_evenly(words):
    """Also of kinds that do not train, and the networks that those need."""
    plans = with_networks(planned(requested(words.split())), looked_at(in_memory().url))
    for of, plan in itertools.product(NUMBERS, plans):
        parts = [part.known for part in shares(plan, of)]
        assert Counter(pd.concat(parts)["id"]) == Counter(plan.known["id"])
        assert evenly([len(part) for part in parts])
        for group in plan.known["group"].unique():
            assert evenly([part["group"].isin([group]).sum() for part in parts])


def evenly(counts: list[int]) -> bool:
    return max(counts) - min(counts) <= 1


def test_what_is_recorded_moves_no_cell_to_another_shard():
    """At every moment of a study, what is known and what is to come is one shard's."""
    request, results = requested(["digits", "--set", *GRID]), in_memory()
    grid = planned(request)
    owned: dict[tuple[int, str], int] = {}
    for plan in as_cells_end(request, results, grid):
        for of in NUMBERS:
            parts = shares(plan, of)
            assert sum(len(part.to_come) for part in parts) == len(plan.to_come)
            for number, part in enumerate(parts, start=1):
                for cell_id in part.known["id"]:
                    assert owned.setdefault((of, cell_id), number) == number
        assert {(of, cell.id) for of in NUMBERS for cell in plan.cells} <= owned.keys()
    confirming = plan.confirming(plan.known)["id"]
    assert len(owned) == len(NUMBERS) * (8 + len(confirming)) == len(NUMBERS) * (8 + 6)
    for of in NUMBERS:
        shard_of = [owned[of, cell_id] for cell_id in confirming]
        assert evenly([shard_of.count(number) for number in range(1, of + 1)])


def as_cells_end(request: Request, results: Results, grid: Plan) -> Iterator[Plan]:
    """The plan of a study that has just begun, then after each of its cells, until the last."""
    while (plan := staged(grid, looked_at(results.url), request.confirm)).to_run:
        yield plan
        cell = plan.to_run[-1]
        stage = "confirm" if cell.seed in request.confirm else "tune"
        write(results, cell, 0.5 + cell.lr, stage=stage)
    yield plan
