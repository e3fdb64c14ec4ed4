"""Perceptrons and convolutional networks for image segments (specs: appendix A.2 and scripts)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from study.cell import NetworkSettings
from study.cell.checks import require
from study.cell.seeds import stream_seed
from study.models.layers import normalised
from study.models.model import Builder, Model, Network, initialise, scaled

_ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}
_USUAL = NetworkSettings()


@dataclass(frozen=True)
class Net:
    """Convolutions, each followed by its pooling and ReLU, then linear layers with ReLU between.

    Settings may put a normalisation behind every layer but the last, another activation in place
    of ReLU, and other hidden linear layers (`study.cell.network_settings`).

    The sources write ReLU before pooling. Both orders give bitwise the same outputs and gradients,
    because ReLU is monotone; pooling first leaves a quarter of the values to ReLU. The last ReLU
    comes after flattening, so that in its backward pass gradient and result lie in memory alike
    (`tests/study/train/test_step.py`, docs/performance.md).

    Args:
        convs: (channels, kernel, stride, pool) of each convolution, without padding; pool 1: none.
            A kernel is cut to the size of what it sees: on windows of series, which are images of
            one column, it is one-dimensional.
        linears: hidden widths; the output layer is added.
        bias: whether layers have biases, initialised to zero.
    """

    convs: Sequence[tuple[int, int, int, int]]
    linears: Sequence[int]
    bias: bool = True

    def build(
        self,
        input_shape: tuple[int, ...],
        outputs: int,
        width: float,
        settings: NetworkSettings = _USUAL,
    ) -> list[nn.Module]:
        """Its layers.

        Args:
            input_shape: of a segment: (channels, height, width).
            outputs: size of the last layer.
            width: factor on every hidden width.
            settings: what else differs; its widths are not read.

        Raises:
            ValueError: fewer hidden layers than there are would be left out, a layer is too
                narrow for its normalisation, or pooling leaves nothing of so small a segment.
        """
        norm, activation = settings.normalisation, _ACTIVATIONS[settings.activation]
        channels, height, wide = input_shape
        layers: list[nn.Module] = []
        for out, kernel, stride, pool in self.convs:
            out = scaled(out, width)
            if layers:
                layers.append(activation())
            seen = min(kernel, height), min(kernel, wide)
            layers.append(nn.Conv2d(channels, out, seen, stride, bias=self.bias))
            layers += normalised(norm, out, plane=True)
            if pool > 1:
                layers.append(nn.MaxPool2d(pool))
            channels = out
            height = ((height - seen[0]) // stride + 1) // pool
            wide = ((wide - seen[1]) // stride + 1) // pool
            rule = "more, or the architecture one with less pooling (small, perceptron)"
            require(min(height, wide) > 0, "pixels", input_shape[1:], rule)
        layers += [nn.Flatten(), activation()] if layers else [nn.Flatten()]
        features = channels * height * wide
        for hidden in self._hidden(settings.depth):
            hidden = scaled(hidden, width)
            layers.append(nn.Linear(features, hidden, bias=self.bias))
            layers += [*normalised(norm, hidden, plane=False), activation()]
            features = hidden
        return [*layers, nn.Linear(features, outputs, bias=self.bias)]

    def _hidden(self, depth: int) -> Sequence[int]:
        """Widths of the hidden linear layers, see `NetworkSettings.depth`."""
        least = -len(self.linears)
        require(depth >= least, "depth", depth, f"at least {least}, as there are so many layers")
        if depth > 0:
            return [*self.linears, *[self.linears[-1]] * depth]
        return self.linears[: len(self.linears) + depth]


def focus_and_classifier(focus: Net, classifier: Net) -> Builder:
    """The builder of a model whose two networks are laid out so."""

    def build(
        input_shape: tuple[int, ...],
        num_classes: int,
        width: float,
        seed: int,
        precision: str,
        settings: NetworkSettings = _USUAL,
    ) -> Model:
        f_width, g_width = settings.focus_width or width, settings.classifier_width or width
        with torch.random.fork_rng(devices=[]):  # construction draws from the global stream
            f_layers = [*focus.build(input_shape, 1, f_width, settings), nn.Flatten(0)]
            g_layers = classifier.build(input_shape, num_classes, g_width, settings)
        f, g = (Network(*layers, precision=precision) for layers in (f_layers, g_layers))
        initialise(f, stream_seed("init", "focus", seed))
        initialise(g, stream_seed("init", "classifier", seed))
        return Model(f, g)

    return build


_THREE_CONVS = ((32, 3, 1, 2), (64, 3, 1, 2), (64, 3, 1, 1))
_LENET_CONVS = ((6, 5, 1, 2), (16, 5, 1, 2))
_SMALL = Net(convs=((16, 5, 2, 1), (32, 3, 2, 1)), linears=(64,))
_PERCEPTRON = Net(convs=(), linears=(64, 32))

# As in the published scripts, which specify them fully.
scripts_cifar10 = focus_and_classifier(
    focus=Net(_THREE_CONVS, (512, 64, 10), bias=False),
    classifier=Net(_LENET_CONVS, (120, 84, 10)),
)
scripts_cifar100 = focus_and_classifier(
    focus=Net(_THREE_CONVS, (512, 64), bias=False),
    classifier=Net(((16, 5, 1, 2), (32, 5, 1, 2)), (120,)),
)
# A.2 gives only the depths; the widths are those of the scripts' focus.
paper_cifar10 = focus_and_classifier(
    focus=Net(_THREE_CONVS, (512, 64, 10)), classifier=Net(_THREE_CONVS, (512, 64, 10))
)
paper_cifar100 = focus_and_classifier(
    focus=Net(((32, 3, 1, 2), (64, 3, 1, 2)), (512,)), classifier=Net(_THREE_CONVS, (512, 64))
)
# Strided instead of pooled, for the quick presets on two CPU cores.
small = focus_and_classifier(_SMALL, _SMALL)
perceptron = focus_and_classifier(_PERCEPTRON, _PERCEPTRON)
