"""Cells, schedules and seeds: valid values round-trip, others say which rule they break."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.cell import PARADIGMS, Budget, Cell, Phase, Schedule
from study.cell.seeds import share_of_each, stream_seed
from tests.made_up.comparisons import make_cell

rates = st.floats(1e-6, 10)
fractions = st.floats(0.001, 0.999)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    ends = sorted(draw(st.sets(fractions, max_size=3)))
    return Schedule(
        tuple(
            Phase(draw(st.sampled_from([*PARADIGMS])), draw(rates), until)
            for until in [*ends, 1.0]
        )
    )


@st.composite
def cells(draw: st.DrawFn) -> Cell:
    points = sorted(draw(st.sets(st.floats(0, 0.999), max_size=5)))
    return make_cell(
        m=draw(st.integers(2, 200)),
        schedule=draw(schedules()),
        seed=draw(st.integers(0, 2**40)),
        budget=Budget(draw(st.integers(1, 2**62))),
        width=draw(rates),
        momentum=draw(st.floats(0, 0.99)),
        evaluation_points=(*points, 1.0),
    )


@given(cells())
def test_a_cell_survives_json_with_its_id(cell):
    again = Cell.from_dict(json.loads(json.dumps(cell.to_dict())))
    assert again == cell
    assert again.id == cell.id
    assert again.comparison_id == cell.comparison_id


@given(cells(), cells())
def test_ids_are_equal_exactly_where_cells_are(one, other):
    assert (one.id == other.id) == (one == other)


@given(cells(), schedules(), st.integers(0, 2**40))
def test_schedule_and_seed_alone_do_not_change_the_comparison(cell, schedule, seed):
    other = dataclasses.replace(cell, schedule=schedule, seed=seed)
    assert other.comparison_id == cell.comparison_id
    assert dataclasses.replace(cell, n=cell.n + 1).comparison_id != cell.comparison_id


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": 1}, "m must be an integer >= 2, got 1"),
        ({"n": 2.5}, "n must be an integer"),
        ({"seed": True}, "seed must be an integer"),
        ({"momentum": 1.0}, r"momentum must be a number in \[0, 1\), got 1.0"),
        ({"split": "shared"}, "split must be one of disjoint, shared-base, got 'shared'"),
        ({"evaluation_points": ()}, "evaluation points must be"),
        ({"evaluation_points": (0.5,)}, "the last one 1"),
        ({"evaluation_points": (0.5, 0.5, 1.0)}, "increasing"),
        ({"evaluation_points": (-0.1, 1.0)}, r"in \[0, 1\]"),
    ],
)
def test_a_bad_value_states_the_rule_and_what_was_got(changes, message):
    with pytest.raises(ValueError, match=message):
        make_cell(**changes)


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (lambda lr: Phase("soft", lr), [0, math.nan, math.inf, "fast", None], "finite"),
        (lambda s: Schedule.hybrid(0.1, 0.1, s), [0, 1, math.nan], r"in \(0, 1\)"),
        (Budget, [0, 1.5, 2**63], "budget must be an integer > 0"),
        (Schedule, [(), (Phase("soft", 0.1, 0.5), Phase("hard", 0.1, 0.4))], "increasing"),
    ],
)
def test_rates_ends_and_budgets_are_in_their_ranges(make, values, message):
    for value in values:
        with pytest.raises(ValueError, match=message):
            make(value)


def test_groups_are_named_by_their_schedule():
    assert Schedule.single("lvml", 0.1).paradigm == "lvml"
    assert Schedule.hybrid(0.1, 0.05, 0.3).paradigm == "hybrid"
    assert Schedule.hybrid(0.1, 0.05, 0.3).switch_point == 0.3
    assert Schedule((Phase("soft", 0.1, 0.5), Phase("lvml", 0.1))).paradigm == "soft>lvml"
    assert Schedule.single("soft", 0.1).switch_point is None


def test_streams_differ_by_name_and_order_of_names():
    seeds = {stream_seed("order", 1, 2), stream_seed("order", 2, 1), stream_seed("order", 12)}
    assert len(seeds) == 3
    assert stream_seed("order", 1, 2) == stream_seed("order", 1, 2)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_share_is_drawn_of_different_rows():
    """Where all differ, it is the same with and without their contents."""
    labels = [row % 3 for row in range(60)]
    drawn = share_of_each(labels, 0.2, "a draw")
    assert drawn == share_of_each(labels, 0.2, "a draw", contents=map(str, range(60)))
    assert [sum(labels[row] == label for row in drawn) for label in range(3)] == [4, 4, 4]
    again = share_of_each(labels * 2, 0.2, "a draw", contents=[*range(60), *range(60)])
    assert again == [*drawn, *(60 + row for row in drawn)]
