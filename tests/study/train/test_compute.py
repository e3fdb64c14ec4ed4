"""Costs of steps, and the timeline of a budget. (Costs of networks: test_network_settings.py.)"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study import models
from study.cell import PARADIGMS, Budget, Cell, Phase, Schedule
from study.models.flops import ModelFlops
from study.train.budget.cost import soft_epochs, training_flops
from study.train.budget.timeline import steps_by_phase, timeline
from tests.made_up.comparisons import make_cell

FLOPS = ModelFlops(focus=100, classifier=40)


@st.composite
def timed_cells(draw: st.DrawFn) -> Cell:
    hundredths = st.integers(1, 99).map(lambda i: i / 100)
    phases = tuple(
        Phase(draw(st.sampled_from([*PARADIGMS])), 0.1, until)
        for until in [*sorted(draw(st.sets(hundredths, max_size=2))), 1.0]
    )
    points = sorted(draw(st.sets(st.just(0.0) | hundredths, max_size=8)))
    unit = draw(st.sampled_from(["flops", "mosaics"]))
    amount = draw(st.integers(1, 2_000 if unit == "mosaics" else 3_000_000))
    return make_cell(
        m=3,
        schedule=Schedule(phases),
        budget=Budget(amount, unit),
        evaluation_points=(*points, 1.0),
        batch_size=draw(st.integers(1, 20)),
    )


@given(timed_cells())
@settings(max_examples=300)
def test_every_stop_is_the_last_step_within_its_target(cell):
    """Replays the cell step by step: the plain way to count what the timeline predicts."""
    stops = timeline(cell, FLOPS)
    spent_after, flops_after = [0], [0]
    for phase, count in zip(cell.schedule.phases, steps_by_phase(cell, stops), strict=True):
        step_flops = cell.batch_size * training_flops(phase.paradigm, FLOPS, cell.m)
        step_cost = cell.batch_size if cell.budget.unit == "mosaics" else step_flops
        target = round(phase.until * 100) * cell.budget.amount  # in hundredths of the unit
        for _ in range(count):
            spent_after.append(spent_after[-1] + step_cost)
            flops_after.append(flops_after[-1] + step_flops)
        assert 100 * spent_after[-1] <= target < 100 * (spent_after[-1] + step_cost)
    assert stops[-1].steps_done == len(spent_after) - 1
    seen = []
    for stop in stops:
        assert stop.compute_flops == flops_after[stop.steps_done]
        for point in stop.evaluate_at:
            assert 100 * spent_after[stop.steps_done] <= round(point * 100) * cell.budget.amount
            seen.append(point)
    assert tuple(seen) == cell.evaluation_points
    assert all(a.steps_done <= b.steps_done for a, b in itertools.pairwise(stops))


def test_an_evaluation_at_the_switch_point_is_the_first_phases():
    budget = Budget(100 * 10 * training_flops("soft", FLOPS, 3))
    points = (0.5, 0.51, 1.0)
    cell = make_cell("hybrid", m=3, budget=budget, evaluation_points=points, batch_size=10)
    stops = timeline(cell, FLOPS)
    # A hard step does not fit into the hundredth between the two: the model is still the soft one.
    assert [(stop.phase, stop.evaluate_at) for stop in stops] == [(0, (0.5, 0.51)), (1, (1.0,))]
    assert stops[0].steps_done == 50


def test_a_budget_in_epochs_of_soft_buys_costlier_paradigms_fewer_steps():
    """The ratio 1.10 of lvml to soft at m=5 is what comparisons at equal compute rest on."""
    scripts = models.build("scripts", "cifar10", (3, 32, 32), 3).flops((3, 32, 32))
    ratio = training_flops("lvml", scripts, 5) / training_flops("soft", scripts, 5)
    assert ratio == pytest.approx(1.10, abs=0.005)
    for epochs, inputs in ((2, 100), (0.1, 5)):
        assert soft_epochs(epochs, FLOPS, 3, 50).amount == inputs * 3 * (3 * 100 + 40)
