"""Responses show what the choice saw, and edges of a grid are named."""

from __future__ import annotations

import itertools
from math import nan

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis.comparison.choice import by_preference, choose, options
from analysis.comparison.compare import Comparison, compare
from analysis.comparison.option_warnings import edge_warnings
from analysis.comparison.responses import MAX_RATES, learning_rate_response, switch_response
from study.results import Results
from tests.made_up.comparisons import make_cell, write


def _comparison(results: Results) -> Comparison:
    (comparison,) = compare(analysis.load(results))
    return comparison


def _at_budget(results: Results) -> pd.DataFrame:
    return analysis.equal_compute(analysis.load(results))


# --- the order of options


@pytest.mark.parametrize("select", ["accuracy", "saif"])
def test_ranks_go_on_where_the_choice_stops(results: Results, select: str) -> None:
    """Without its best option, a group's choice is the next in the order: ties, too."""
    grid = itertools.product(("soft", "hybrid"), (0.1, 0.2, 0.3), range(2))
    for i, (paradigm, lr, seed) in enumerate(grid):
        scores = (0.6 + 0.1 * (i % 2 + seed % 2), 0.5 + 0.1 * (i % 3))
        write(results, make_cell(paradigm, lr, seed), *scores, loss=0.3 if lr > 0.1 else 0.4)
    at_budget = _at_budget(results)
    ranked = by_preference(options(at_budget), select)
    rest = at_budget
    for _ in range(3):
        best = choose(rest, select)
        for pick in best.to_dict("records"):
            rows = ranked[ranked["paradigm"] == pick["paradigm"]]
            assert rows["schedule"].iloc[0] == pick["schedule"]
            ranked = ranked.drop(rows.index[0])
        rest = rest[~rest["schedule"].isin(best["schedule"])]
    assert ranked.empty


# --- responses


def test_learning_rates_by_hand(results: Results) -> None:
    for seed, (saif, accuracy) in enumerate([(0.4, 0.7), (0.6, 0.8)]):
        write(results, make_cell(lr=0.1, seed=seed), accuracy, saif)
        write(results, make_cell(lr=0.2, seed=seed), 0.9, 0.3)
        for point, validation in ((0.2, 0.8), (0.6, 0.7)):
            cell = make_cell("hybrid", 0.1, seed, switch_point=point)
            write(results, cell, 0.5, point, by_split={"validation": {"accuracy": validation}})
    write(results, make_cell(lr=0.3), status="censored", points=(0.25,))
    comparison = _comparison(results)
    table = learning_rate_response(comparison.at_budget, comparison.options)
    assert table["paradigm"].tolist() == ["soft", "soft", "soft", "hybrid"]
    assert table["lr"].tolist() == [0.1, 0.2, 0.3, 0.1]
    assert table["num_tried"].tolist() == [1, 1, 1, 2]
    assert table["num_seeds"].tolist() == [2, 2, 0, 2]
    assert table["chosen"].tolist() == [False, True, False, True]
    assert table["switch_point"].iloc[-1] == 0.2
    assert table["saif"].tolist() == pytest.approx([0.5, 0.3, nan, 0.2], nan_ok=True)
    first = table.iloc[0]
    assert (first["accuracy"], first["accuracy_low"], first["accuracy_high"]) == pytest.approx(
        (0.75, 0.7, 0.8)
    )


def test_switch_points_by_hand(results: Results) -> None:
    for point in (0.2, 0.4):
        for lr, accuracy in ((0.1, 0.6 + point), (0.2, 0.9 - point)):
            cell = make_cell("hybrid", lr, switch_point=point)
            write(results, cell, accuracy, saif=lr)
    write(results, make_cell("soft"))
    comparison = _comparison(results)
    table = switch_response(comparison.at_budget, comparison.options)
    assert table["switch_point"].tolist() == [0.2, 0.4]
    assert table["lr"].tolist() == [0.1, 0.1]
    assert table["chosen"].tolist() == [False, True]
    assert (table["saif_low"] == table["saif"]).all()
    assert table["num_tried"].tolist() == [2, 2]


def test_switch_points_without_a_hybrid(results: Results) -> None:
    write(results, make_cell())
    at_budget = _at_budget(results)
    assert switch_response(at_budget, options(at_budget)).empty


def test_many_learning_rates_are_taken_together(results: Results) -> None:
    rates = np.geomspace(0.001, 1, 25).round(6)
    for lr in rates:
        for paradigm in ("soft", "hard"):
            write(results, make_cell(paradigm, float(lr)), accuracy=float(lr) ** 0.1, saif=lr)
    at_budget = _at_budget(results)
    table = learning_rate_response(at_budget, options(at_budget))
    soft = table[table["paradigm"] == "soft"]
    assert len(soft) == MAX_RATES
    assert soft["num_tried"].sum() == len(rates)
    assert soft["chosen"].tolist() == [False] * (MAX_RATES - 1) + [True]
    # The best rate of a part is its largest here, and parts do not overlap.
    assert (soft["saif"] == soft["lr"]).all()
    assert soft["lr"].iloc[0] < rates[len(rates) // MAX_RATES + 1]
    assert soft["lr"].iloc[-1] == rates[-1]


# --- edges of the grid


def _edges(results: Results) -> list[str]:
    at_budget = _at_budget(results)
    return edge_warnings(options(at_budget), choose(at_budget))


@pytest.mark.parametrize(("best", "warned"), [(0.1, "smallest"), (0.2, None), (0.3, "largest")])
def test_a_learning_rate_at_the_edge_is_named(
    results: Results, best: float, warned: str | None
) -> None:
    for lr in (0.1, 0.2, 0.3):
        write(results, make_cell(lr=lr), accuracy=0.9 if lr == best else 0.8)
    write(results, make_cell("hard", 0.1))  # one rate has no edge
    texts = _edges(results)
    if warned is None:
        assert texts == []
    else:
        (text,) = texts
        assert text.startswith(
            f"The learning rate {best} chosen for soft is the {warned} of the 3"
        )


def test_both_learning_rates_and_the_switch_point_of_a_hybrid_are_named(results: Results) -> None:
    for lr, last, point in itertools.product((0.1, 0.2, 0.3), (0.01, 0.02, 0.03), (0.2, 0.4)):
        best = (lr, last, point) == (0.2, 0.03, 0.2)
        cell = make_cell("hybrid", lr, last_lr=last, switch_point=point)
        write(results, cell, accuracy=0.9 if best else 0.8)
    last, switch = _edges(results)
    assert last.startswith("The last learning rate 0.03 chosen for hybrid is the largest of the 3")
    assert switch.startswith("The switch point 0.2 chosen for hybrid is the smallest of the 2")


def test_one_rate_for_all_phases_is_named_once(results: Results) -> None:
    for lr in (0.1, 0.2):
        write(results, make_cell("hybrid", lr, last_lr=lr), accuracy=1 - lr)
    (text,) = _edges(results)
    assert text.startswith("The learning rate 0.1 chosen for hybrid is the smallest of the 2")
