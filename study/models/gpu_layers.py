"""Layers of a network in other kernels: their places, and so the names of weights, stay."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from study.kernels import OWN, Kernels
from study.models.model import Model, Network

_MULTIPLE = {"bfloat16": 8, "tf32": 4}
"""Channels that tensor cores take at a time, by precision: 16 bytes."""

_ZERO_AT_ZERO = nn.ReLU, nn.Tanh, nn.GELU, nn.MaxPool2d, nn.Identity
"""Layers that leave a channel of zeros as it is."""

_POOLING = nn.MaxPool2d(2).extra_repr()
"""What is said of a pooling that the kernel can do."""


def put_in(model: Model, kernels: Kernels, precision: str) -> Kernels:
    """Replaces layers of a model by those with other kernels, in place.

    Args:
        model: on a GPU.
        kernels: to use.
        precision: of the products, one of `study.cell.PRECISIONS`.

    Returns:
        Those of the kernels that this model can use.
    """
    used = {name for name in kernels if name not in OWN}
    for layers in [each for each in model.modules() if isinstance(each, nn.Sequential)]:
        if "aligned" in kernels and _align(layers, _MULTIPLE.get(precision, 1)):
            used.add("aligned")
        if "pooling" in kernels and _pool(layers):
            used.add("pooling")
    if "flat" in kernels and _uses_weights_once(model):
        used.add("flat")
    return tuple(name for name in kernels if name in used)


class ReLUPool(nn.Module):
    """See `study.kernels.relu_pool`."""

    def __init__(self) -> None:
        super().__init__()
        from study.kernels.relu_pool import relu_pool  # imports Triton

        self._relu_pool = relu_pool

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C, H // 2, W // 2)."""
        return self._relu_pool(inputs)


class AlignedConv2d(nn.Conv2d):
    """A convolution whose channels are padded with zeros, inputs and outputs.

    Args:
        of: convolution whose weights and options it takes over.
        multiple: of channels.
        keeps: whether the outputs keep the padding, for the next one.
    """

    def __init__(self, of: nn.Conv2d, multiple: int, keeps: bool) -> None:
        nn.Module.__init__(self)
        self.__dict__.update(vars(of))
        self._further = -of.in_channels % multiple, -of.out_channels % multiple
        self._keeps = keeps

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, C, H, W), with or without padding -> (N, C', H', W')."""
        inside, outside = self._further
        if torch.is_autocast_enabled(inputs.device.type):  # the padding costs less so
            inputs = inputs.to(torch.get_autocast_dtype(inputs.device.type))
        missing = self.in_channels + inside - inputs.shape[1]
        if missing:
            inputs = pad(inputs, (0, 0, 0, 0, 0, missing))
        weight = pad(self.weight, (0, 0, 0, 0, 0, inside, 0, outside))
        bias = None if self.bias is None else pad(self.bias, (0, outside))
        outputs = self._conv_forward(inputs, weight, bias)
        return outputs if self._keeps else outputs[:, : self.out_channels]


def _pool(layers: nn.Sequential) -> bool:
    """Takes each ReLU behind a pooling of 2 x 2, flattened between or not, into it, if any."""
    found = False
    for index, layer in enumerate(layers):
        if not (isinstance(layer, nn.MaxPool2d) and layer.extra_repr() == _POOLING):
            continue
        after = index + 1
        while after < len(layers) and isinstance(layers[after], nn.Flatten):
            after += 1
        if after < len(layers) and isinstance(layers[after], nn.ReLU):
            layers[index], layers[after] = ReLUPool(), nn.Identity()
            found = True
    return found


def _align(layers: nn.Sequential, multiple: int) -> bool:
    """Pads the channels of convolutions that have no such multiple, if any."""
    found = False
    places = [index for index, layer in enumerate(layers) if _can_align(layer)]
    for place, following in itertools.zip_longest(places, places[1:]):
        conv = layers[place]
        assert isinstance(conv, nn.Conv2d)
        between = [*layers][place + 1 : following]
        keeps = following is not None and all(isinstance(each, _ZERO_AT_ZERO) for each in between)
        if conv.in_channels % multiple or conv.out_channels % multiple:
            layers[place] = AlignedConv2d(conv, multiple, keeps)
            found = True
    return found


def _uses_weights_once(model: Model) -> bool:
    """Whether each weight is one of a convolution or linear layer, used once a pass.

    In bfloat16 the gradients of others would be summed, or their values be rounded.
    """
    multiply = [each for each in model.modules() if isinstance(each, nn.Conv2d | nn.Linear)]
    weights = {id(each) for layer in multiply for each in layer.parameters(recurse=False)}
    in_sequence = all(isinstance(each, Network) for each in (model.focus, model.classifier))
    others = [each for each in model.parameters() if id(each) not in weights]
    return model.encoder is None and in_sequence and not others


def _can_align(layer: nn.Module) -> bool:
    return type(layer) is nn.Conv2d and layer.groups == 1
