"""Fixed focus: attention is held, the classifier alone trains, the incentive is measured."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
import torch

from study import models, paradigms
from study.cell import PARADIGMS, Budget, Cell, Schedule
from study.evaluate.classification import evaluate
from study.models.base import Model
from study.paradigms.held import STEP, held_attention
from study.storage.storage import Storage
from study.tasks.mosaics.mosaics import MosaicTask
from study.theory.linear_orthogonal import INCENTIVE_STEP
from study.train.budget.cost import cell_flops, training_flops
from study.train.steps import loop
from study.train.steps.checkpoints import Checkpoints
from study.train.steps.pack_member import Member
from tests.conftest import tiny_cell, tiny_flops
from tests.made_up.training import Killed, Killing, numbers

ALPHAS = (0.0, 0.25, 0.6, 1.0)
EXACT = ("soft", "hard", "lvml")


def held_cell(digits: MosaicTask, name: str = "soft", alpha: float = 0.6, **changes) -> Cell:
    return tiny_cell(digits, Schedule.single(name, 0.1), alpha=alpha, **changes)


def model(seed: int = 0) -> Model:
    return models.build("perceptron", "digits", (1, 8, 8), 3, seed=seed)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_attention_is_alpha_on_the_foreground_and_even_elsewhere(alpha: float) -> None:
    foreground = torch.eye(5, dtype=torch.bool)[[1, 4, 0]]
    attention = held_attention(alpha, foreground)
    assert torch.allclose(attention[foreground], torch.tensor(alpha))
    assert torch.allclose(attention[~foreground], torch.tensor((1 - alpha) / 4))
    assert torch.allclose(attention.sum(1), torch.ones(3))


def test_several_foreground_segments_share_alpha() -> None:
    foreground = torch.tensor([[True, False, True, False, False]])
    expected = torch.tensor([[0.3, 0.4 / 3, 0.3, 0.4 / 3, 0.4 / 3]])
    assert torch.allclose(held_attention(0.6, foreground), expected)


@pytest.mark.parametrize("name", PARADIGMS)
def test_the_focus_neither_trains_nor_matters(digits: MosaicTask, name: str) -> None:
    cell = held_cell(digits, name)
    trained = Member(cell, digits, torch.device("cpu"), None)
    trained.enter_phase(0)
    before = {k: v.clone() for k, v in trained.state()["weights"].items()}
    for _ in range(5):
        trained.step()
    after = trained.state()["weights"]
    for key, value in before.items():
        assert torch.equal(value, after[key]) == key.startswith("focus"), key


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_loss_and_incentive_are_those_of_the_formulas(
    digits: MosaicTask, name: str, alpha: float
) -> None:
    """Against section 3.1 written out in float64, mosaic by mosaic."""
    mosaics = digits.splits(held_cell(digits, alpha=alpha))["train"].head(40)
    network, paradigm = model(), paradigms.get(name)
    found = evaluate(network, paradigm, mosaics, alpha, with_incentive=True)
    assert found is not None
    double = model().double()
    batch = mosaics.batch(torch.arange(40))
    segments, z = batch.segments.double(), mosaics.foreground.int().argmax(1)
    rows = torch.arange(40)
    rest = torch.ones(40, 4, dtype=torch.bool)
    rest[rows, z] = False

    def loss(a: torch.Tensor) -> torch.Tensor:
        own, others = segments[rows, z], segments[rest].unflatten(0, (40, 3))
        share = (1 - a) / 3
        if name == "soft":
            mixed = a * own + share * others.sum(1)
            return -double.classifier(mixed).log_softmax(1)[rows, batch.labels].mean()
        p = double.classifier(own).softmax(1)[rows, batch.labels]
        q = double.classifier(others.flatten(0, 1)).softmax(1).unflatten(0, (40, 3))
        q = q[rows, :, batch.labels]
        if name == "lvml":
            return -(a * p + share * q.sum(1)).log().mean()
        return -(a * p.log() + share * q.log().sum(1)).mean()

    a = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    expected = loss(a)
    (slope,) = torch.autograd.grad(expected, a)
    improved = loss(torch.tensor(min(alpha + STEP, 1.0), dtype=torch.float64))
    assert found["loss"] == pytest.approx(expected.item(), rel=1e-5)
    assert found["incentive"] == pytest.approx((expected - improved).item(), abs=1e-6)
    assert found["incentive_slope"] == pytest.approx(-slope.item(), rel=1e-4, abs=1e-6)
    if alpha == 1:
        assert found["incentive"] == 0


@pytest.mark.parametrize("name", EXACT)
def test_the_measured_loss_is_the_one_that_trains(digits: MosaicTask, name: str) -> None:
    """A step's loss before the update equals the evaluation of its mosaics."""
    cell = held_cell(digits, name, batch_size=50, n=50, train_metrics_size=50)
    trained = Member(cell, digits, torch.device("cpu"), None)
    trained.enter_phase(0)
    trained.step()
    evaluated = loop.train(cell, digits).evaluations[0]
    assert evaluated["split"] == "train"
    assert evaluated["budget_fraction"] == 0
    assert float(trained.state()["summed_loss"]) == pytest.approx(evaluated["loss"], rel=1e-5)


def test_one_hot_attention_makes_the_paradigms_one(digits: MosaicTask) -> None:
    """At alpha = 1 the three losses are equal, and so are the networks that they train."""
    budget = Budget(480, "mosaics")  # of FLOPs, soft would take more steps
    cells = [held_cell(digits, name, alpha=1.0, budget=budget) for name in EXACT]
    losses = [loop.train(cell, digits).evaluations[-3]["loss"] for cell in cells]
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-4)


def test_only_train_splits_and_held_attention_have_an_incentive(digits: MosaicTask) -> None:
    rows = loop.train(held_cell(digits), digits).evaluations
    assert all(("incentive" in row) == (row["split"] == "train") for row in rows)
    free = loop.train(tiny_cell(digits), digits).evaluations
    assert not any("incentive" in row or "mu" in row for row in free)


def test_held_attention_is_what_is_recorded(digits: MosaicTask) -> None:
    for row in loop.train(held_cell(digits, alpha=0.6), digits).evaluations:
        assert row["foreground_attention_mean"] == pytest.approx(0.6)
        assert row["saif"] == 0  # attention stays below .8
        assert row["ftpt"] + row["ftpf"] == 1  # and above that on any other segment


def test_packed_equals_separate(digits: MosaicTask) -> None:
    cells = [held_cell(digits, "lvml", seed=seed) for seed in (0, 1)]
    for cell, outcome in zip(cells, loop.train_pack(cells, digits), strict=True):
        assert numbers(outcome) == numbers(loop.train(cell, digits))


@pytest.mark.parametrize("name", PARADIGMS)
def test_resumed_equals_uninterrupted(digits: MosaicTask, tmp_path: Path, name: str) -> None:
    cell = held_cell(digits, name)
    storage = Storage(tmp_path)
    storage.make("checkpoints")
    with pytest.raises(Killed):
        loop.train(cell, digits, checkpoints=Killing(storage, [7]))
    resumed = loop.train(cell, digits, checkpoints=Checkpoints(storage))
    assert numbers(resumed) == numbers(loop.train(cell, digits))


def test_a_held_focus_costs_nothing(digits: MosaicTask) -> None:
    cell, flops = held_cell(digits), tiny_flops()
    held = cell_flops(cell, flops)
    assert training_flops("soft", held, cell.m) == 3 * flops.classifier
    assert training_flops("lvml", held, cell.m) == 3 * cell.m * flops.classifier
    assert cell_flops(dataclasses.replace(cell, alpha=None), flops) == flops


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan, math.inf, "0.5", True])
def test_alpha_outside_0_to_1_is_refused(digits: MosaicTask, alpha: object) -> None:
    with pytest.raises(ValueError, match=r"alpha must be a number in \[0, 1\]"):
        tiny_cell(digits, alpha=alpha)


def test_a_new_field_that_is_none_leaves_ids_as_they_were(digits: MosaicTask) -> None:
    """Results that were recorded before there was an alpha are found again."""
    cell = tiny_cell(digits)
    assert not {"alpha", "num_classes"} & cell.to_dict().keys()
    held = dataclasses.replace(cell, alpha=0.0)
    assert held.id != cell.id
    assert dataclasses.replace(cell, alpha=-0.0).id == held.id
    assert Cell.from_dict(held.to_dict()) == held
    assert Cell.from_dict(cell.to_dict()) == cell
    assert held.setting[0] == cell.setting[0]
    assert held.comparison_id != cell.comparison_id


def test_the_finite_difference_is_that_of_theory() -> None:
    assert STEP == INCENTIVE_STEP
