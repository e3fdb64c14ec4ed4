"""Responses show what the choice saw, and edges of a grid are named."""

from __future__ import annotations

import itertools
from math import nan

import pytest

from analysis.digest.choose import choose, options, response
from analysis.digest.limits import edges
from tests.made_up.comparisons import at_the_cut, compared, make_cell, write

RATES = (0.1, 0.2, 0.3)

# --- responses


def test_responses_by_hand(results):
    of_hybrid = {(0.2, 0.1): 0.8, (0.2, 0.2): 0.7, (0.6, 0.1): 0.5, (0.6, 0.2): 0.6}
    for seed, (saif, accuracy) in enumerate([(0.4, 0.7), (0.6, 0.8)]):
        write(results, make_cell(lr=0.1, seed=seed), accuracy, saif)
        write(results, make_cell(lr=0.2, seed=seed), 0.9, 0.3)
        for (point, lr), validation in of_hybrid.items():
            cell = make_cell("hybrid", lr, seed, switch_point=point)
            write(results, cell, 0.5, point, by_split={"validation": {"accuracy": validation}})
    write(results, make_cell(lr=0.3), status="censored", points=(0.25,))
    found = compared(results)
    table = response(found.at_budget, found.options, "lr")
    columns = ["paradigm", "lr", "num_seeds", "chosen", "switch_point"]
    assert table[columns].fillna(0).to_numpy().tolist() == [
        ["soft", 0.1, 2, False, 0],
        ["soft", 0.2, 2, True, 0],
        ["soft", 0.3, 0, False, 0],
        ["hybrid", 0.1, 2, True, 0.2],
        ["hybrid", 0.2, 2, False, 0.2],
    ]
    assert table["saif"].tolist() == pytest.approx([0.5, 0.3, nan, 0.2, 0.2], nan_ok=True)
    bounds = table.loc[0, ["accuracy", "accuracy_low", "accuracy_high"]].tolist()
    assert bounds == pytest.approx([0.75, 0.7, 0.8])
    table = response(found.at_budget, found.options, "switch_point")
    columns = ["switch_point", "lr", "chosen"]
    assert table[columns].to_numpy().tolist() == [[0.2, 0.1, True], [0.6, 0.2, False]]
    soft = found.at_budget[found.at_budget["paradigm"] == "soft"]
    assert response(soft, options(soft), "switch_point").empty


# --- edges of the grid


@pytest.mark.parametrize(
    ("first", "best", "rates"),
    [
        (None, 0.1, [("learning rate", 0.1, "smallest", 3)]),  # one rate for all phases
        (None, 0.2, []),
        (None, 0.3, [("learning rate", 0.3, "largest", 3)]),
        (0.1, 0.3, [("last learning rate", 0.3, "largest", 3)]),  # of one rate is no edge
    ],
)
def test_a_choice_at_the_edge_of_what_was_tried_is_named(results, first, best, rates):
    for last, point in itertools.product(RATES, (0.2, 0.4)):
        cell = make_cell("hybrid", first or last, last_lr=last, switch_point=point)
        write(results, cell, accuracy=0.9 if (last, point) == (best, 0.2) else 0.8)
    at_budget = at_the_cut(results)
    found = edges(options(at_budget), choose(at_budget))
    rates = [*rates, ("switch point", 0.2, "smallest", 2)]
    assert found.to_numpy().tolist() == [[*each, ["hybrid"]] for each in rates]
