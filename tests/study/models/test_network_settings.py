"""The project's own networks, and those that differ in width, depth, normalisation, activation."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn

from study import models, tasks
from study.cell import NORMALISATIONS, NetworkSettings
from study.check.of_models import PROMISES, Architecture
from study.errors import RequestError
from study.models.flops import forward_flops
from study.models.images import Net
from study.models.model import Model
from study.train.steps.loop import train
from tests.conftest import tiny_cell
from tests.made_up.facts import published

SETTINGS = [
    NetworkSettings(normalisation="batch", focus_width=0.25),
    NetworkSettings(normalisation="layer", depth=-1),
    NetworkSettings(normalisation="group", depth=2, classifier_width=0.5),
    NetworkSettings(activation="gelu"),
    NetworkSettings(activation="tanh", normalisation="batch"),
]
OWN = [
    Architecture(name, task, published)
    for name, by_task in models.ARCHITECTURES.items()
    for task in by_task
    if not tasks.modality(task).settings
    and all(axis.default for axis in tasks.TASKS[task].options.values())
]


@dataclasses.dataclass(frozen=True)
class Changed(Architecture):
    """An architecture with other settings."""

    settings: NetworkSettings

    def build(self, seed: int = 0) -> Model:
        of = self.name, self.task, self.shape, self.num_classes
        return models.build(*of, seed=seed, further=(self.settings,))


def changed(settings: NetworkSettings, *of: str) -> Changed:
    return Changed(*(of or ("perceptron", "digits")), published, settings)


def outputs(**settings: Any) -> tuple[list[int], list[int]]:
    """Of the linear layers of focus and classifier."""
    model = changed(NetworkSettings(**settings)).build()
    focus, classifier = (
        [each.out_features for each in head if isinstance(each, nn.Linear)]
        for head in (model.focus, model.classifier)
    )
    return focus, classifier


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.check.__name__)
@pytest.mark.parametrize(
    "architecture",
    [
        *OWN,
        *(changed(settings) for settings in SETTINGS),
        *(changed(settings, "small", "cifar10") for settings in SETTINGS),
    ],
    ids=str,
)
def test_it_keeps_its_promises(architecture, promise):
    """Those that `python -m study.check` checks of models from outside."""
    promise.check(architecture)


@pytest.mark.parametrize("layer", [nn.PReLU(), nn.LayerNorm(2)])
def test_an_unknown_layer_is_refused_rather_than_counted_as_free(layer):
    with pytest.raises(RequestError, match=f"no cost is known for a {type(layer).__name__} layer"):
        forward_flops(nn.Sequential(nn.Identity(), layer), (3, 2, 2))


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_only_batch_normalisation_mixes_a_batch_and_only_in_training(normalisation):
    torch.manual_seed(0)
    focus = changed(NetworkSettings(normalisation=normalisation)).build().focus
    batch = torch.randn(6, 1, 8, 8)
    alone = focus(batch[:2])  # which moves the statistics
    assert torch.allclose(focus(batch)[:2], alone, atol=1e-5) == (normalisation != "batch")
    focus.eval()
    other = torch.cat([batch[:2], 100 * batch[2:]])
    torch.testing.assert_close(focus(other)[:2], focus(batch[:2]), rtol=1e-4, atol=1e-5)


def test_widths_are_of_focus_and_classifier_apart_and_depth_counts_hidden_layers():
    assert outputs(focus_width=0.25, classifier_width=2) == ([16, 8, 1], [128, 64, 3])
    assert [outputs(depth=depth)[1] for depth in (-2, -1, 1, 2)] == [
        [3], [64, 3], [64, 32, 32, 3], [64, 32, 32, 32, 3],
    ]  # fmt: skip


def test_a_layer_that_would_become_constant_is_refused():
    with pytest.raises(ValueError, match="width of a normalised layer must be at least 2, got 1"):
        outputs(normalisation="layer", focus_width=0.01)
    with pytest.raises(ValueError, match="depth must be at least -1"):
        Net(convs=(), linears=(4,)).build((1, 2, 2), 3, 1.0, NetworkSettings(depth=-2))


@pytest.mark.parametrize("width", [0.05, 0.1, 0.25, 1, 2])
def test_groups_hold_several_numbers(width):
    """A group of one number would be constant."""
    focus = changed(NetworkSettings(normalisation="group", focus_width=width)).build().focus
    layers = [each for each in focus if isinstance(each, nn.GroupNorm)]
    assert layers
    assert all(each.num_channels // each.num_groups > 1 for each in layers)


def test_statistics_are_of_whole_batches_and_of_no_evaluation(digits):
    """Parts of a batch would have their own; a cell that evaluates more often would end elsewhere.

    Other networks take any parts.
    """
    cell = tiny_cell(digits, network=NetworkSettings(normalisation="batch"))
    rarely = dataclasses.replace(cell, evaluation_points=(1.0,))
    runs = [train(cell, digits), train(cell, digits, micro_batch=4), train(rarely, digits)]
    assert {run.micro_batch for run in runs} == {cell.batch_size}
    ends = [[row["loss"] for row in run.evaluations[-3:]] for run in runs]
    assert ends == [ends[0]] * 3
    other = dataclasses.replace(rarely, network=NetworkSettings(normalisation="layer"))
    assert train(other, digits, micro_batch=4).micro_batch == 4
