"""What a forward pass costs, counted analytically.

One multiply-add is 2 FLOPs. Convolutions and linear layers are counted, and what a layer says by
`own_flops(output)` that it costs besides its parts, as attention between segments does. Biases,
activations, normalisation, pooling, weighted sums of segments and embedding look-ups are not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from study.errors import RequestError

_UNCOUNTED = nn.Embedding, nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm


@dataclass(frozen=True)
class Length:
    """The training inputs of one length.

    Attributes:
        segments: of each input.
        count: how many inputs there are.
        encoder: forward FLOPs of the encoder on one input.
        decisions: how often the model attends to the segments of each: once, or for each word of
            a caption.
    """

    segments: int
    count: int
    encoder: int
    decisions: int = 1


@dataclass(frozen=True)
class ModelFlops:
    """Forward FLOPs of focus and classifier on one segment, and of the encoder on inputs.

    Attributes:
        focus: f on one segment.
        classifier: g on one segment.
        lengths: of encoded inputs; empty: all have m segments, and there is no encoder.
        decision: what each decision of a sequence costs besides.
        once: part of `classifier` that is the same for a segment in all decisions.
    """

    focus: int
    classifier: int
    lengths: tuple[Length, ...] = ()
    decision: int = 0
    once: int = 0


def forward_flops(module: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Forward FLOPs of a module on one input of that shape (without the batch axis).

    Raises:
        RequestError: the module has parameters in a layer whose cost is not known here.
    """
    # A real input instead of the meta device, whose first use imports for seconds.
    return counted(module, lambda: module(torch.zeros(1, *input_shape)))


def counted(module: nn.Module, run: Callable[[], object]) -> int:
    """Forward FLOPs of the layers of a module that `run` calls.

    Raises:
        RequestError: as `forward_flops`.
    """
    total = 0

    def count(layer: nn.Module, _: tuple[Tensor, ...], output: Any) -> None:
        nonlocal total
        if isinstance(layer, nn.Conv2d):
            fan_in = (
                layer.in_channels // layer.groups * layer.kernel_size[0] * layer.kernel_size[1]
            )
            total += 2 * output.numel() * fan_in
        elif isinstance(layer, nn.Linear):
            total += 2 * output.numel() * layer.in_features
        elif own := getattr(layer, "own_flops", None):
            total += own(output)
        elif (
            not isinstance(layer, _UNCOUNTED)
            and next(layer.parameters(recurse=False), None) is not None
        ):
            raise RequestError(
                f"no cost is known for a {type(layer).__name__} layer, and equal compute needs "
                "one. Make networks of nn.Linear and nn.Conv2d layers, or give it own_flops."
            )

    hooks = [layer.register_forward_hook(count) for layer in module.modules()]
    try:
        with evaluating(module):
            run()
    finally:
        for hook in hooks:
            hook.remove()
    return total


@contextlib.contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """A context without gradients in which a module normalises by fixed statistics."""
    before = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(before)
