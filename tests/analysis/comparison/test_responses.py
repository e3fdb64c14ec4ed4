"""Responses show what the choice saw, and edges of a grid are named."""

from __future__ import annotations

import itertools
from math import nan

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis.comparison.choice import by_preference, choose, options
from analysis.comparison.option_warnings import edge_warnings
from analysis.comparison.responses import MAX_RATES, learning_rate_response, switch_response
from analysis.groups import Select
from study.results import Results
from tests.made_up.comparisons import at_the_cut, compared, make_cell, write

# --- the order of options


@pytest.mark.parametrize("select", ["accuracy", "saif"])
def test_ranks_go_on_where_the_choice_stops(results: Results, select: Select) -> None:
    """Without its best option, a group's choice is the next in the order: ties, too."""
    grid = itertools.product(("soft", "hybrid"), (0.1, 0.2, 0.3), range(2))
    for i, (paradigm, lr, seed) in enumerate(grid):
        scores = (0.6 + 0.1 * (i % 2 + seed % 2), 0.5 + 0.1 * (i % 3))
        write(results, make_cell(paradigm, lr, seed), *scores, loss=0.3 if lr > 0.1 else 0.4)
    rest = at_the_cut(results)
    ranked = by_preference(options(rest), select).groupby("paradigm")["schedule"].agg(list)
    chosen = []
    for _ in range(3):
        best = choose(rest, select).set_index("paradigm")["schedule"]
        chosen.append(best)
        rest = rest[~rest["schedule"].isin(best)]
    assert pd.concat(chosen).groupby("paradigm").agg(list).equals(ranked)


# --- responses


def test_responses_by_hand(results: Results) -> None:
    of_hybrid = {(0.2, 0.1): 0.8, (0.2, 0.2): 0.7, (0.6, 0.1): 0.5, (0.6, 0.2): 0.6}
    for seed, (saif, accuracy) in enumerate([(0.4, 0.7), (0.6, 0.8)]):
        write(results, make_cell(lr=0.1, seed=seed), accuracy, saif)
        write(results, make_cell(lr=0.2, seed=seed), 0.9, 0.3)
        for (point, lr), validation in of_hybrid.items():
            cell = make_cell("hybrid", lr, seed, switch_point=point)
            write(results, cell, 0.5, point, by_split={"validation": {"accuracy": validation}})
    write(results, make_cell(lr=0.3), status="censored", points=(0.25,))
    found = compared(results)
    table = learning_rate_response(found.at_budget, found.options)
    columns = ["paradigm", "lr", "num_tried", "num_seeds", "chosen", "switch_point"]
    assert table[columns].fillna(0).to_numpy().tolist() == [
        ["soft", 0.1, 1, 2, False, 0],
        ["soft", 0.2, 1, 2, True, 0],
        ["soft", 0.3, 1, 0, False, 0],
        ["hybrid", 0.1, 2, 2, True, 0.2],
        ["hybrid", 0.2, 2, 2, False, 0.2],
    ]
    assert table["saif"].tolist() == pytest.approx([0.5, 0.3, nan, 0.2, 0.2], nan_ok=True)
    bounds = table.loc[0, ["accuracy", "accuracy_low", "accuracy_high"]].tolist()
    assert bounds == pytest.approx([0.75, 0.7, 0.8])
    table = switch_response(found.at_budget, found.options)
    columns = ["switch_point", "lr", "num_tried", "chosen"]
    assert table[columns].to_numpy().tolist() == [[0.2, 0.1, 2, True], [0.6, 0.2, 2, False]]
    soft = found.at_budget[found.at_budget["paradigm"] == "soft"]
    assert switch_response(soft, options(soft)).empty


def test_many_learning_rates_are_taken_together(results: Results) -> None:
    rates = np.geomspace(0.001, 1, 25).round(6).tolist()
    for lr in rates:
        write(results, make_cell(lr=lr), accuracy=lr**0.1, saif=lr)
    at_budget = at_the_cut(results)
    table = learning_rate_response(at_budget, options(at_budget))
    assert len(table) == MAX_RATES
    assert table["num_tried"].sum() == len(rates)
    assert table["chosen"].tolist() == [False] * (MAX_RATES - 1) + [True]
    # The best rate of a part is its largest here, and parts do not overlap.
    assert table["saif"].tolist() == table["lr"].tolist()
    assert table["lr"].iloc[0] < rates[len(rates) // MAX_RATES + 1]
    assert table["lr"].iloc[-1] == rates[-1]


def test_many_rates_of_one_paradigm_stand_beside_another_without_any(results: Results) -> None:
    options_of = [("soft", lr) for lr in np.geomspace(0.001, 1, 2 * MAX_RATES)]
    each = itertools.product([*options_of, ("hard", nan)], range(2), ("validation", "test"))
    runs = [
        {"paradigm": name, "lr": lr, "seed": seed, "split": split, "compute": 9, "accuracy": 0.5}
        for (name, lr), seed, split in each
    ]
    analysis.record(results, runs, options=["lr"])
    found = compared(results)
    table = learning_rate_response(found.at_budget, found.options)
    assert table["paradigm"].tolist() == ["soft"] * MAX_RATES


# --- edges of the grid


def _edges(results: Results) -> list[str]:
    """What is said of the edges of the grid, without the advice."""
    at_budget = at_the_cut(results)
    said = edge_warnings(options(at_budget), choose(at_budget))
    return [text.partition(" tried")[0] for text in said]


@pytest.mark.parametrize(("best", "end"), [(0.1, "smallest"), (0.2, None), (0.3, "largest")])
def test_a_learning_rate_at_the_edge_is_named(
    results: Results, best: float, end: str | None
) -> None:
    for lr in (0.1, 0.2, 0.3):
        write(results, make_cell(lr=lr), accuracy=0.9 if lr == best else 0.8)
    write(results, make_cell("hard", 0.1))  # one rate has no edge
    said = f"The learning rate {best} chosen for soft is the {end} of the 3"
    assert _edges(results) == ([said] if end else [])


@pytest.mark.parametrize("apart", [True, False])
def test_both_learning_rates_and_the_switch_point_of_a_hybrid_are_named(
    results: Results, apart: bool
) -> None:
    """One rate for all phases once."""
    for lr, last, point in itertools.product((0.1, 0.2, 0.3), (0.1, 0.2, 0.3), (0.2, 0.4)):
        if apart or lr == last:
            best = (lr, last, point) == (0.2 if apart else 0.3, 0.3, 0.2)
            cell = make_cell("hybrid", lr, last_lr=last, switch_point=point)
            write(results, cell, accuracy=0.9 if best else 0.8)
    rate = "last learning rate" if apart else "learning rate"
    assert _edges(results) == [
        f"The {rate} 0.3 chosen for hybrid is the largest of the 3",
        "The switch point 0.2 chosen for hybrid is the smallest of the 2",
    ]
