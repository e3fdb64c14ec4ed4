"""Networks that differ from their architecture: width, depth, normalisation, activation."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from study import models
from study.cell import NORMALISATIONS, NetworkSettings
from study.models.base import Model
from study.models.flops import forward_flops
from study.models.images import Net
from study.tasks.mosaics.mosaics import MosaicTask
from study.train.steps.loop import train
from tests.conftest import tiny_cell

DIGITS, CIFAR10 = ("perceptron", "digits", (1, 8, 8)), ("small", "cifar10", (3, 32, 32))
SETTINGS = [
    NetworkSettings(normalisation="batch", focus_width=0.25),
    NetworkSettings(normalisation="layer", depth=-1),
    NetworkSettings(normalisation="group", depth=2, classifier_width=0.5),
    NetworkSettings(activation="gelu"),
    NetworkSettings(activation="tanh", normalisation="batch"),
]


def build(settings: NetworkSettings | None, of: tuple = DIGITS) -> Model:
    name, task, shape = of
    return models.build(name, task, shape, 3, further=() if settings is None else (settings,))


def outputs(network: nn.Module) -> list[int]:
    """Of the linear layers."""
    return [each.out_features for each in network if isinstance(each, nn.Linear)]


@pytest.mark.parametrize("of", [DIGITS, CIFAR10])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_an_evaluation_never_mixes_instances(settings: NetworkSettings, of: tuple) -> None:
    """After training steps have moved the statistics, the others of a batch have no effect."""
    torch.manual_seed(0)
    model = build(settings, of)
    batch = 3 * torch.randn(6, *of[2]) + 1
    for network in (model.focus, model.classifier):
        for _ in range(3):
            network(batch)
        network.eval()
        alone = torch.cat([network(each[None]) for each in batch])
        torch.testing.assert_close(network(batch), alone, rtol=1e-4, atol=1e-5)
        other = torch.cat([batch[:1], 100 * torch.randn(5, *of[2])])
        torch.testing.assert_close(network(other)[:1], alone[:1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_only_batch_normalisation_mixes_a_training_batch(normalisation: str) -> None:
    torch.manual_seed(0)
    focus = build(NetworkSettings(normalisation=normalisation)).focus
    batch = torch.randn(6, 1, 8, 8)
    alone = focus(batch[:2])
    assert torch.allclose(focus(batch)[:2], alone, atol=1e-5) == (normalisation != "batch")


@pytest.mark.parametrize("of", [DIGITS, CIFAR10])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_flops_are_those_that_torch_counts(settings: NetworkSettings, of: tuple) -> None:
    model = build(settings, of)
    for network in (model.focus, model.classifier):
        counted = forward_flops(network, of[2])
        assert network.training, "counting leaves it as it was"
        with FlopCounterMode(display=False) as counter:
            network.eval()(torch.zeros(1, *of[2]))
        assert counted == counter.get_total_flops()


def test_widths_are_of_focus_and_classifier_apart() -> None:
    model = build(NetworkSettings(focus_width=0.25, classifier_width=2))
    assert outputs(model.focus) == [16, 8, 1]
    assert outputs(model.classifier) == [128, 64, 3]


def test_a_width_of_one_changes_no_bit() -> None:
    plain, same = build(None), build(NetworkSettings(focus_width=1))
    for one, other in zip(plain.parameters(), same.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("depth", "expected"),
    [(-2, [3]), (-1, [64, 3]), (1, [64, 32, 32, 3]), (2, [64, 32, 32, 32, 3])],
)
def test_depth_counts_hidden_layers(depth: int, expected: list[int]) -> None:
    assert outputs(build(NetworkSettings(depth=depth)).classifier) == expected


def test_a_layer_that_would_become_constant_is_refused() -> None:
    with pytest.raises(ValueError, match="width of a normalised layer must be at least 2, got 1"):
        build(NetworkSettings(normalisation="layer", focus_width=0.01))
    with pytest.raises(ValueError, match="depth must be at least -1"):
        Net(convs=(), linears=(4,)).build((1, 2, 2), 3, 1.0, NetworkSettings(depth=-2))


def test_groups_hold_several_numbers() -> None:
    """A group of one number would be constant."""
    for width in (0.05, 0.1, 0.25, 1, 2):
        for layer in build(NetworkSettings(normalisation="group", focus_width=width)).focus:
            if isinstance(layer, nn.GroupNorm):
                assert layer.num_channels // layer.num_groups > 1


def test_a_batch_is_whole_where_its_statistics_count(digits: MosaicTask) -> None:
    """Parts of a batch would have statistics of their own; other networks take any parts."""
    cell = tiny_cell(digits, network=NetworkSettings(normalisation="batch"))
    whole, asked = (train(cell, digits, micro_batch=size) for size in (None, 4))
    assert whole.micro_batch == asked.micro_batch == cell.batch_size
    assert [row["loss"] for row in whole.evaluations] == [r["loss"] for r in asked.evaluations]
    other = replace(cell, network=NetworkSettings(normalisation="layer"))
    assert train(other, digits, micro_batch=4).micro_batch == 4


def test_evaluations_leave_the_statistics_of_batches_alone(digits: MosaicTask) -> None:
    """Were they made in training mode, a cell that evaluates more often would end elsewhere."""
    cell = tiny_cell(digits, network=NetworkSettings(normalisation="batch"))
    rarely = replace(cell, evaluation_points=(1.0,))
    often, seldom = (train(each, digits).evaluations[-3:] for each in (cell, rarely))
    assert [row["loss"] for row in often] == [row["loss"] for row in seldom]
