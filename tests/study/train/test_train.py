"""The training loop: reproducible, on budget, paired, honest about divergence."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from torch import nn

from study import models, paradigms
from study.cell import PARADIGMS, Budget, Phase, Schedule
from study.evaluate.classification import evaluate
from study.models.flops import ModelFlops
from study.results import INSTANCES
from study.tasks.mosaics.mosaics import MosaicTask
from study.train.budget.timeline import steps_by_phase, timeline
from study.train.steps import loop
from study.train.steps.order import BatchOrder
from study.train.steps.step import SGD
from tests.conftest import tiny_cell
from tests.made_up.instances import marked
from tests.made_up.training import numbers


@pytest.mark.parametrize("name", PARADIGMS)
def test_two_runs_are_bitwise_equal(digits: MosaicTask, name: str) -> None:
    cell = tiny_cell(digits, Schedule.single(name, 0.1))
    torch.manual_seed(1)
    one = loop.train(cell, digits)
    torch.manual_seed(2)  # nothing may depend on the global stream
    other = loop.train(cell, digits)
    assert numbers(one) == numbers(other)


@pytest.mark.parametrize("name", [*PARADIGMS, "hybrid"])
def test_training_learns_and_records_every_evaluation(digits: MosaicTask, name: str) -> None:
    schedule = Schedule.hybrid(0.1, 0.1, 0.5) if name == "hybrid" else Schedule.single(name, 0.1)
    cell = tiny_cell(digits, schedule, n=600)
    outcome = loop.train(cell, digits)
    assert outcome.status == "done"
    key = [(row["budget_fraction"], row["split"]) for row in outcome.evaluations]
    expected = itertools.product(cell.evaluation_points, ["train", "validation", "test"])
    assert key == list(expected)
    first, last = outcome.evaluations[0], outcome.evaluations[-3]
    assert first["split"] == last["split"] == "train"
    assert last["loss"] < first["loss"]
    assert last["compute_flops"] <= cell.budget.amount
    assert outcome.steps == last["step"]
    assert last["mosaics_seen"] == last["step"] * cell.batch_size


@pytest.mark.parametrize("name", [*PARADIGMS, "hybrid"])
def test_the_last_evaluation_marks_each_test_instance(digits: MosaicTask, name: str) -> None:
    """Their means are accuracy and SAIF to the bit."""
    schedule = Schedule.hybrid(0.1, 0.1, 0.5) if name == "hybrid" else Schedule.single(name, 0.1)
    for seed in (0, 1):
        cell = tiny_cell(digits, schedule, n=600, seed=seed)
        *earlier, last = loop.train(cell, digits).evaluations
        assert not any(set(INSTANCES) & row.keys() for row in earlier)
        assert (last["split"], last["budget_fraction"]) == ("test", 1)
        assert marked(last, "right").mean() == last["accuracy"] > 0
        assert marked(last, "saif").mean() == last["saif"]


def test_a_step_equals_plain_momentum_sgd(digits: MosaicTask) -> None:
    """Twenty steps against an update rule written out in float64."""
    cell = tiny_cell(digits, Schedule.single("soft", 0.05), n=320, budget=Budget(320, "mosaics"))
    outcome = loop.train(cell, digits)
    assert outcome.steps == 20

    model = models.build("perceptron", "digits", (1, 8, 8), 3, seed=cell.seed).double()
    mosaics = digits.splits(cell)["train"]
    batches = BatchOrder(cell)
    velocity = [torch.zeros_like(p) for p in model.parameters()]
    for _ in range(20):
        batch = mosaics.batch(batches.take(1)[0])
        x = batch.segments.double()
        attention = model.focus(x.flatten(0, 1)).view(x.shape[:2]).softmax(dim=1)
        mixed = (attention[..., None, None, None] * x).sum(dim=1)
        loss = nn.functional.cross_entropy(model.classifier(mixed), batch.labels)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for p, v, g in zip(model.parameters(), velocity, gradients, strict=True):
                v.mul_(cell.momentum).add_(g)
                p.sub_(cell.lr * v)
    batch = mosaics.batch(torch.arange(cell.train_metrics_size))
    x = batch.segments.double()
    with torch.no_grad():
        attention = model.focus(x.flatten(0, 1)).view(x.shape[:2]).softmax(dim=1)
        mixed = (attention[..., None, None, None] * x).sum(dim=1)
        loss = nn.functional.cross_entropy(model.classifier(mixed), batch.labels)
    (recorded,) = (
        row["loss"]
        for row in outcome.evaluations
        if row["split"] == "train" and row["budget_fraction"] == 1
    )
    assert recorded == pytest.approx(loss.item(), rel=1e-5)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_optimiser_is_pytorchs(momentum: float) -> None:
    torch.manual_seed(0)
    target = torch.randn(5)
    ours, theirs = (torch.zeros(5, requires_grad=True) for _ in range(2))
    mine = SGD([ours], lr=0.3, momentum=momentum)
    reference = torch.optim.SGD([theirs], lr=0.3, momentum=momentum)
    for step in range(12):
        if step == 6:
            mine = SGD([ours], lr=0.1, momentum=momentum)
            reference = torch.optim.SGD([theirs], lr=0.1, momentum=momentum)
        mine.step(torch.autograd.grad(((ours - target) ** 2).sum(), [ours]))
        reference.zero_grad()
        ((theirs - target) ** 2).sum().backward()
        reference.step()
        assert torch.equal(ours, theirs)


def test_a_hybrid_is_soft_until_its_switch_point(digits: MosaicTask) -> None:
    soft = loop.train(tiny_cell(digits, Schedule.single("soft", 0.1)), digits)
    hybrid = loop.train(tiny_cell(digits, Schedule.hybrid(0.1, 0.02, 0.5)), digits)
    before = [row for row in numbers(hybrid)["evaluations"] if row["budget_fraction"] <= 0.5]
    assert before == [row for row in numbers(soft)["evaluations"] if row["budget_fraction"] <= 0.5]
    after = [row for row in numbers(hybrid)["evaluations"] if row["budget_fraction"] > 0.5]
    assert {row["inference"] for row in before} == {"soft"}
    assert {row["inference"] for row in after} == {"hard"}


def test_a_phase_starts_with_zero_momentum_and_its_own_rate(digits: MosaicTask) -> None:
    """Replays both phases with a fresh optimiser for the second, as the definition says."""
    cell = tiny_cell(digits, Schedule((Phase("soft", 0.1, 0.5), Phase("lvml", 0.03))))
    outcome = loop.train(cell, digits)

    model = models.build("perceptron", "digits", (1, 8, 8), 3, seed=cell.seed)
    splits = digits.splits(cell)
    batches = BatchOrder(cell)
    steps = steps_by_phase(cell, timeline(cell, _flops()))
    for phase, count in zip(cell.schedule.phases, steps, strict=True):
        fresh = torch.optim.SGD(model.parameters(), lr=phase.lr, momentum=cell.momentum)
        paradigm = paradigms.get(phase.paradigm)
        for _ in range(count):
            batch = splits["train"].batch(batches.take(1)[0])
            fresh.zero_grad()
            paradigm.loss(model.focus, model.classifier, batch.segments, batch.labels).backward()
            fresh.step()
    expected = evaluate(model, paradigms.get("lvml"), splits["validation"])
    recorded = next(r for r in outcome.evaluations[::-1] if r["split"] == "validation")
    assert recorded["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    assert recorded["accuracy"] == expected["accuracy"]


def test_paradigms_are_paired(digits: MosaicTask) -> None:
    """Equal seeds start from equal weights and see equal mosaics in equal order."""
    starts = {
        (row["split"], round(row["foreground_attention_mean"], 5))
        for name in PARADIGMS
        for row in loop.train(
            tiny_cell(digits, Schedule.single(name, 0.3), inference="soft"), digits
        ).evaluations
        if row["step"] == 0
    }
    assert len(starts) == 3
    one = tiny_cell(digits, Schedule.single("soft", 0.1))
    other = tiny_cell(digits, Schedule.single("lvml", 0.7))
    orders = [BatchOrder(cell) for cell in (one, other)]
    for _ in range(30):
        assert torch.equal(*(order.take(1) for order in orders))


def test_every_mosaic_is_seen_once_an_epoch(digits: MosaicTask) -> None:
    cell = tiny_cell(digits, n=50, batch_size=16)
    order = BatchOrder(cell)
    stream = torch.cat([order.take(count).flatten() for count in (1, 20, 4)])
    for epoch in stream.split(50):
        assert sorted(epoch.tolist()) == list(range(50))
    other = BatchOrder(dataclasses.replace(cell, seed=1))
    assert not torch.equal(stream[:16], other.take(1)[0])


def test_a_batch_may_be_larger_than_the_data(digits: MosaicTask) -> None:
    cell = tiny_cell(digits, n=5, batch_size=16)
    assert BatchOrder(cell).take(2).shape == (2, 16)


def test_divergence_is_a_result_with_the_last_finite_evaluation(digits: MosaicTask) -> None:
    cell = tiny_cell(digits, Schedule.single("soft", 1e20))
    outcome = loop.train(cell, digits)
    assert outcome.status == "diverged"
    assert "NaN or infinite between steps" in outcome.status_reason
    assert {row["step"] for row in outcome.evaluations} == {0}
    assert all(np.isfinite(row["loss"]) for row in outcome.evaluations)
    assert outcome.steps < timeline(cell, _flops())[-1].steps_done


def _flops() -> ModelFlops:
    model = models.build("perceptron", "digits", (1, 8, 8), 3)
    return model.flops((1, 8, 8))


@pytest.mark.parametrize("name", [*PARADIGMS])
def test_no_paradigm_crashes_when_it_diverges(digits: MosaicTask, name: str) -> None:
    cell = tiny_cell(digits, Schedule.single(name, 1e20))
    assert loop.train(cell, digits).status == "diverged"


def test_focus_starts_equal_beside_any_classifier() -> None:
    one = models.build("scripts", "cifar10", (3, 32, 32), 3, seed=4)
    two = models.build("scripts", "cifar10", (3, 32, 32), 7, seed=4)
    three = models.build("scripts", "cifar10", (3, 32, 32), 3, seed=5)
    for p, q, r in zip(*(m.focus.parameters() for m in (one, two, three)), strict=True):
        assert torch.equal(p, q)
        assert not torch.equal(p, r)


def test_building_a_model_leaves_the_global_stream_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    models.build("perceptron", "digits", (1, 8, 8), 3)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(("width", "hidden"), [(1.0, 64), (0.5, 32), (2.0, 128)])
def test_width_scales_hidden_layers(width: float, hidden: int) -> None:
    model = models.build("perceptron", "digits", (1, 8, 8), 3, width=width)
    sizes = [m.out_features for m in model.classifier if isinstance(m, nn.Linear)]
    assert sizes == [hidden, hidden // 2, 3]
