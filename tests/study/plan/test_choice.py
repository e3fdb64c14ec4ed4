"""What a running study chooses is what the report of its results chooses."""

from __future__ import annotations

import itertools
import random

import pytest

from analysis.digest.choose import chosen
from analysis.digest.compare import compare_results
from study.cell import Cell
from study.launch.workplace import looked_at
from study.plan.choice import chosen_cells
from study.results import Results
from tests.made_up.comparisons import make_cell, write
from tests.made_up.tables import in_memory


def tuned(results: Results, rng: random.Random) -> list[Cell]:
    """Cells of two comparisons, some of which are lost, diverged, stopped early or missing."""
    cells = []
    for m, name, lr, seed in itertools.product(
        (5, 10), ("soft", "hard", "hybrid"), (0.1, 0.2, 0.3), (0, 1)
    ):
        cell = make_cell(name, lr, seed, m=m)
        status = rng.choices(["done", "diverged", "censored", "failed"], [9, 2, 1, 1])[0]
        if status != "failed":
            points = {"diverged": (), "censored": cell.evaluation_points[:2]}.get(status)
            numbers = (rng.choice([0.5, 0.6, rng.random()]) for _ in range(3))
            write(results, cell, *numbers, status=status, points=points, stage="tune")
        cells.append(cell)
    return cells


@pytest.mark.parametrize(("draw", "select"), [(0, "accuracy"), (1, "saif")])
def test_it_is_the_choice_of_the_report(draw, select):
    results = in_memory()
    ids = {cell.id: cell for cell in tuned(results, random.Random(draw))}
    found = chosen(results, ids, select)
    expected = {
        (comparison.cells["comparison_id"].iloc[0], row["paradigm"]): row["schedule"]
        for comparison in compare_results(results, select=select)
        for row in comparison.choice.to_dict("records")
    }
    assert {group: ids[i].schedule.text for group, i in found.items()} == expected
    assert all(ids[i].group == group for group, i in found.items())


def test_it_is_made_among_all_that_the_directory_holds():
    """Also among what another command tuned; not by what confirms, nor in other groups."""
    results = in_memory()
    mine, other = make_cell(lr=0.1), make_cell(lr=0.2)
    write(results, other, 0.8, study="another", stage=None)
    write(results, make_cell(lr=0.3, seed=100), 0.99, stage="confirm")
    write(results, make_cell("hard"), 0.9, stage="tune")
    write(results, mine, 0.7, stage="tune")
    place = looked_at(results.url)
    assert chosen_cells(place, "accuracy", {mine.group: [mine.id]}) == {mine.group: other}


def test_where_nothing_is_recorded_nothing_is_chosen():
    results = in_memory()
    assert chosen(results, ["0123456789abcdef"]) == {}
