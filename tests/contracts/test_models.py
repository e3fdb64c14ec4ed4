"""The named architectures of images, layer by layer as their source writes them down."""

from __future__ import annotations

import pytest
from torch import nn

from study import models

# in-out-kernel of each convolution, in-out of each linear layer. Source: the table "Networks" of
# the published scripts, and appendix A.2 of the paper for the depths of `paper`.
LAYERS = {
    "scripts cifar10 focus": "3-32-3 32-64-3 64-64-3 1024-512 512-64 64-10 10-1",
    "scripts cifar10 classifier": "3-6-5 6-16-5 400-120 120-84 84-10 10-3",
    "scripts cifar100 focus": "3-32-3 32-64-3 64-64-3 1024-512 512-64 64-1",
    "scripts cifar100 classifier": "3-16-5 16-32-5 800-120 120-50",
    "paper cifar10 focus": "3-32-3 32-64-3 64-64-3 1024-512 512-64 64-10 10-1",
    "paper cifar10 classifier": "3-32-3 32-64-3 64-64-3 1024-512 512-64 64-10 10-3",
    "paper cifar100 focus": "3-32-3 32-64-3 2304-512 512-1",
    "paper cifar100 classifier": "3-32-3 32-64-3 64-64-3 1024-512 512-64 64-50",
    "scripts images focus": "3-32-3 32-64-3 64-64-3 1024-512 512-64 64-10 10-1",
    "small images focus": "3-16-5 16-32-3 1152-64 64-1",
    "perceptron images classifier": "3072-64 64-32 32-4",
    "perceptron digits focus": "64-64 64-32 32-1",
    "perceptron digits classifier": "64-64 64-32 32-3",
}
SHAPES = {
    "cifar10": ((3, 32, 32), 3), "cifar100": ((3, 32, 32), 50), "digits": ((1, 8, 8), 3),
    "images": ((3, 32, 32), 4),
}  # fmt: skip


@pytest.mark.parametrize("key", LAYERS)
def test_layers_are_those_of_the_source(key):
    name, task, head = key.split()
    layers = []
    for layer in getattr(models.build(name, task, *SHAPES[task]), head):
        if isinstance(layer, nn.Conv2d):
            layers.append(f"{layer.in_channels}-{layer.out_channels}-{layer.kernel_size[0]}")
        elif isinstance(layer, nn.Linear):
            layers.append(f"{layer.in_features}-{layer.out_features}")
    assert " ".join(layers) == LAYERS[key]


def test_weights_of_the_scripts_are_xavier_normal_and_biases_zero_or_none():
    """Variance 2 / (fan_in + fan_out), on a layer that is large enough to tell."""
    model = models.build("scripts", "cifar10", (3, 32, 32), 3)
    weight = next(m for m in model.focus if isinstance(m, nn.Linear)).weight
    assert weight.var().item() == pytest.approx(2 / (1024 + 512), rel=0.02)
    assert weight.mean().abs().item() < 1e-3
    assert not [name for name, _ in model.focus.named_parameters() if name.endswith("bias")]
    biases = [p for name, p in model.classifier.named_parameters() if name.endswith("bias")]
    assert len(biases) == 6
    assert all((bias == 0).all() for bias in biases)
