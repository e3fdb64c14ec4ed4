"""The cost model against PyTorch's own counter, and the timeline of a budget."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from study import models, paradigms
from study.cell import PARADIGMS, Budget, Cell, Phase, Schedule
from study.models.flops import ModelFlops, forward_flops
from study.train.budget.cost import soft_epochs, training_flops
from study.train.budget.timeline import steps_by_phase, timeline

NETWORKS = [
    ("scripts", "cifar10", (3, 32, 32), 3),
    ("scripts", "cifar100", (3, 32, 32), 50),
    ("paper", "cifar10", (3, 32, 32), 3),
    ("paper", "cifar100", (3, 32, 32), 50),
    ("small", "cifar10", (3, 32, 32), 3),
    ("perceptron", "digits", (1, 8, 8), 3),
    ("conv1d", "series", (12, 7, 1), 3),
    ("conv1d", "series", (2, 3, 1), 4),
]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: "-".join(map(str, n)))
@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_forward_cost_equals_what_pytorch_counts(network: tuple, paradigm: str) -> None:
    name, task, shape, num_classes = network
    model, m = models.build(name, task, shape, num_classes), 4
    flops = model.flops(shape)
    segments, labels = torch.randn(2, m, *shape), torch.zeros(2, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter:
        counted_on = paradigms.get(paradigm)
        counted_on.loss(model.focus, model.classifier, segments, labels)
    # The counter also sees the weighted sum: 2 m FLOPs a pixel, not a call of f or g.
    aggregation = 2 * 2 * m * segments[0, 0].numel() if counted_on.mixes else 0
    expected = 2 * counted_on.cost(flops.focus, flops.classifier, m)
    assert counter.get_total_flops() - aggregation == expected


@pytest.mark.parametrize("layer", [torch.nn.PReLU(), torch.nn.LayerNorm(2)])
def test_an_unknown_layer_is_refused_rather_than_counted_as_free(layer: torch.nn.Module) -> None:
    odd = torch.nn.Sequential(torch.nn.Identity(), layer)
    with pytest.raises(TypeError, match=f"no cost is known for a {type(layer).__name__} layer"):
        forward_flops(odd, (3, 2, 2))


FLOPS = ModelFlops(focus=100, classifier=40)


def make_cell(schedule: Schedule, budget: Budget, points: tuple[float, ...], batch: int) -> Cell:
    return Cell(
        task="digits",
        data_digest="d",
        m=3,
        n=50,
        architecture="perceptron",
        schedule=schedule,
        seed=0,
        budget=budget,
        batch_size=batch,
        evaluation_points=points,
    )


@st.composite
def timed_cells(draw: st.DrawFn) -> Cell:
    tenths = st.integers(1, 99).map(lambda i: i / 100)
    ends = sorted(draw(st.sets(tenths, max_size=2)))
    phases = tuple(
        Phase(draw(st.sampled_from([*PARADIGMS])), 0.1, until) for until in [*ends, 1.0]
    )
    points = sorted(draw(st.sets(st.integers(0, 99).map(lambda i: i / 100), max_size=8)))
    unit = draw(st.sampled_from(["flops", "mosaics"]))
    amount = draw(st.integers(1, 2_000 if unit == "mosaics" else 3_000_000))
    return make_cell(
        Schedule(phases), Budget(amount, unit), (*points, 1.0), draw(st.integers(1, 20))
    )


@given(timed_cells())
@settings(max_examples=300)
def test_every_stop_is_the_last_step_within_its_target(cell: Cell) -> None:
    """Replays the cell step by step: the plain way to count what the timeline predicts."""
    stops = timeline(cell, FLOPS)
    taken = steps_by_phase(cell, stops)
    spent, flops, steps = 0, 0, 0
    spent_after, flops_after = [0], [0]
    for phase, count in zip(cell.schedule.phases, taken, strict=True):
        step_flops = cell.batch_size * training_flops(phase.paradigm, FLOPS, cell.m)
        step_cost = cell.batch_size if cell.budget.unit == "mosaics" else step_flops
        target = round(phase.until * 100) * cell.budget.amount  # in hundredths of the unit
        for _ in range(count):
            spent, flops, steps = spent + step_cost, flops + step_flops, steps + 1
            spent_after.append(spent)
            flops_after.append(flops)
        assert 100 * spent <= target < 100 * (spent + step_cost)
    assert stops[-1].steps_done == steps
    seen = []
    for stop in stops:
        assert stop.compute_flops == flops_after[stop.steps_done]
        for point in stop.evaluate_at:
            assert 100 * spent_after[stop.steps_done] <= round(point * 100) * cell.budget.amount
            seen.append(point)
    assert tuple(seen) == cell.evaluation_points
    assert all(a.steps_done <= b.steps_done for a, b in itertools.pairwise(stops))


def test_an_evaluation_at_the_switch_point_is_the_first_phases() -> None:
    step = 10 * training_flops("soft", FLOPS, 3)
    cell = make_cell(
        Schedule.hybrid(0.1, 0.1, 0.5), Budget(100 * step), (0.0, 0.5, 0.51, 1.0), batch=10
    )
    by_point = {point: stop for stop in timeline(cell, FLOPS) for point in stop.evaluate_at}
    assert by_point[0.5].phase == 0
    assert by_point[0.5].steps_done == 50
    # A hard step does not fit into the hundredth between the two: the model is still the soft one.
    assert by_point[0.51] is by_point[0.5]
    assert by_point[1.0].phase == 1


def test_a_budget_in_epochs_of_soft_buys_costlier_paradigms_fewer_steps() -> None:
    """The ratio 1.10 of lvml to soft at m=5 is what comparisons at equal compute rest on."""
    scripts = models.build("scripts", "cifar10", (3, 32, 32), 3).flops((3, 32, 32))
    ratio = training_flops("lvml", scripts, 5) / training_flops("soft", scripts, 5)
    assert ratio == pytest.approx(1.10, abs=0.005)
    for epochs, inputs in ((2, 100), (0.1, 5)):
        assert soft_epochs(epochs, FLOPS, 3, 50).amount == inputs * 3 * (3 * 100 + 40)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0, FLOPS, 3, 50), "epochs must be a finite number > 0, got 0"),
        ((float("nan"), FLOPS, 3, 50), "epochs must be"),
        ((1, FLOPS, 1, 50), "m must be an integer >= 2, got 1"),
        ((1, FLOPS, 3, 0), "n must be an integer >= 1, got 0"),
        ((1e18, FLOPS, 3, 50), "budget must be an integer > 0 and < 2"),
    ],
)
def test_a_bad_budget_names_what_is_wrong(values: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        soft_epochs(*values)
