"""Fixed focus: attention is held, the classifier alone trains, the incentive is measured."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from study import models, paradigms
from study.cell import PARADIGMS, Cell, Schedule
from study.evaluate.classification import evaluate
from study.paradigms.held import STEP, held_attention
from study.tasks.mosaics.mosaics import MosaicTask
from study.train.budget.cost import cell_flops, training_flops
from study.train.steps import loop
from study.train.steps.pack_member import Member
from tests.conftest import tiny_cell, tiny_flops

EXACT = ("soft", "hard", "lvml")


def held_cell(digits: MosaicTask, name: str = "soft", alpha: float = 0.6, **changes: Any) -> Cell:
    return tiny_cell(digits, Schedule.single(name, 0.1), alpha=alpha, **changes)


def test_alpha_is_shared_by_the_foreground_and_the_rest_by_the_others():
    foreground = torch.tensor([[0, 1, 0, 0, 0], [1, 0, 0, 1, 0]]) == 1
    expected = torch.tensor([[0.075, 0.7, 0.075, 0.075, 0.075], [0.35, 0.1, 0.1, 0.35, 0.1]])
    torch.testing.assert_close(held_attention(0.7, foreground), expected)


@pytest.mark.parametrize("name", PARADIGMS)
def test_the_classifier_alone_trains_by_the_loss_that_is_measured(digits, name):
    """A step's loss, before its update, is the evaluation of its mosaics."""
    cell = held_cell(digits, name, batch_size=50, n=50, train_metrics_size=50)
    trained = Member(cell, digits, torch.device("cpu"), None)
    trained.enter_phase(0)
    before = {key: value.clone() for key, value in trained.state()["weights"].items()}
    trained.step()
    state = trained.state()
    for key, value in before.items():
        assert torch.equal(value, state["weights"][key]) == key.startswith("focus"), key
    rows = loop.train(cell, digits).evaluations
    if name in EXACT:
        assert (rows[0]["split"], rows[0]["budget_fraction"]) == ("train", 0)
        assert float(state["summed_loss"]) == pytest.approx(rows[0]["loss"], rel=1e-5)
    for row in rows:
        assert row["foreground_attention_mean"] == pytest.approx(0.6)
        assert row["saif"] == 0  # attention stays below .8
        assert row["ftpt"] + row["ftpf"] == 1  # and above that on any other segment
        assert ("incentive" in row) == (row["split"] == "train")


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.6, 1.0])
def test_the_incentive_is_what_a_better_focus_would_gain(digits, name, alpha):
    """Section 3.2 in float64; that losses take an attention, tests/contracts/test_paradigms.py."""
    mosaics = digits.splits(held_cell(digits))["train"].head(40)
    model = models.build("perceptron", "digits", (1, 8, 8), 3)
    found = evaluate(model, paradigms.get(name), mosaics, alpha, with_incentive=True)
    assert found is not None
    batch, classifier = mosaics.batch(torch.arange(40)), model.classifier.double()

    def loss(a: Tensor) -> Tensor:
        held = torch.where(mosaics.foreground, a, (1 - a) / 3)
        return paradigms.get(name).loss(
            model.focus, classifier, batch.segments.double(), batch.labels, attention=held
        )

    a = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    expected = loss(a)
    (slope,) = torch.autograd.grad(expected, a)
    improved = loss(torch.tensor(min(alpha + STEP, 1.0), dtype=torch.float64))
    assert found["loss"] == pytest.approx(expected.item(), rel=1e-5)
    assert found["incentive"] == pytest.approx((expected - improved).item(), abs=1e-6)
    assert found["incentive_slope"] == pytest.approx(-slope.item(), rel=1e-4, abs=1e-6)
    if alpha == 1:
        assert found["incentive"] == 0


def test_a_held_focus_costs_nothing(digits):
    cell, flops = held_cell(digits), tiny_flops()
    held = cell_flops(cell, flops)
    assert training_flops("soft", held, cell.m) == 3 * flops.classifier
    assert training_flops("lvml", held, cell.m) == 3 * cell.m * flops.classifier
    assert cell_flops(dataclasses.replace(cell, alpha=None), flops) == flops


def test_cells_of_another_alpha_are_not_compared(digits):
    free, held, negative = (tiny_cell(digits, alpha=alpha) for alpha in (None, 0.0, -0.0))
    assert negative.id == held.id != free.id
    assert held.comparison_id != free.comparison_id
    assert held.setting[0] == free.setting[0]
