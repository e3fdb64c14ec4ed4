"""What training costs, counted analytically.

One multiply-add is 2 FLOPs, and a training step costs 3 forward passes (one forward, two
backward). Convolutions, linear layers and attention between segments are counted; biases,
activations, normalisation by fixed statistics, pooling and embedding look-ups are not. Evaluation
is free. The budget of a comparison is the cost of E epochs of *soft*, so a costlier paradigm takes
fewer steps.

Posts differ in length, and padding costs nothing. Each post counts the mean cost of all training
posts, which is exact at the end of every whole epoch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor, nn

from study import paradigms
from study.cell import Budget, Cell
from study.cell.checks import is_positive, require
from study.models.base import Model
from study.models.layers import SelfAttention

TRAINING_PASSES = 3


@dataclass(frozen=True)
class Length:
    """The training inputs of one length.

    Attributes:
        segments: of each input.
        count: how many inputs there are.
        encoder: forward FLOPs of the encoder on one input.
    """

    segments: int
    count: int
    encoder: int


@dataclass(frozen=True)
class ModelFlops:
    """Forward FLOPs of focus and classifier on one segment, and of the encoder on inputs.

    Attributes:
        focus: f on one segment.
        classifier: g on one segment.
        lengths: of encoded inputs; empty: all have m segments, and there is no encoder.
    """

    focus: int
    classifier: int
    lengths: tuple[Length, ...] = ()


def forward_flops(module: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Forward FLOPs of a module on one input of that shape (without the batch axis).

    Raises:
        TypeError: the module has parameters in a layer whose cost is not known here.
    """
    # A real input instead of the meta device, whose first use imports for seconds.
    return _counted(module, lambda: module(torch.zeros(1, *input_shape)))


def _counted(module: nn.Module, run: Callable[[], object]) -> int:
    """Forward FLOPs of the layers of a module that `run` calls."""
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
        elif isinstance(layer, SelfAttention):  # its projections are counted as layers
            segments, size = output.shape
            total += 2 * segments * segments * 2 * size  # scores and weighted sums
        elif isinstance(layer, nn.Embedding) or _scales(layer):
            pass
        elif next(layer.parameters(recurse=False), None) is not None:
            raise TypeError(f"no cost is known for a {type(layer).__name__} layer")

    hooks = [layer.register_forward_hook(count) for layer in module.modules()]
    try:
        with torch.no_grad():
            run()
    finally:
        for hook in hooks:
            hook.remove()
    return total


def _scales(layer: nn.Module) -> bool:
    """Whether a layer only scales and shifts: batch normalisation by fixed statistics."""
    return isinstance(layer, nn.BatchNorm2d) and not layer.training


def model_flops(
    model: Model,
    input_shape: tuple[int, ...],
    lengths: Mapping[int, int] | None = None,
    m: int | None = None,
) -> ModelFlops:
    """Forward FLOPs of a model.

    Args:
        model: with an encoder or without.
        input_shape: of one segment, for a model without an encoder.
        lengths: number of segments -> training inputs of that length, for one with an encoder.
        m: segments to which longer inputs are cut.
    """
    shape = model.segment_shape or input_shape
    focus, classifier = forward_flops(model.focus, shape), forward_flops(model.classifier, shape)
    cut: dict[int, int] = {}
    for length, count in (lengths or {}).items():
        kept = length if m is None else min(length, m)
        cut[kept] = cut.get(kept, 0) + count
    encoder = {
        length: _counted(
            model, functools.partial(model.encode, torch.zeros(1, length, dtype=torch.int64))
        )
        for length in cut
    }
    return ModelFlops(
        focus,
        classifier,
        tuple(Length(length, count, encoder[length]) for length, count in sorted(cut.items())),
    )


def cell_flops(cell: Cell, flops: ModelFlops) -> ModelFlops:
    """The FLOPs of the parts that a cell calls: no focus if alpha is held."""
    return flops if cell.alpha is None else replace(flops, focus=0)


def training_flops(paradigm: str, flops: ModelFlops, m: int) -> int | Fraction:
    """Training FLOPs of one input: a mosaic of m segments, or the mean training post."""
    cost = functools.partial(paradigms.get(paradigm).cost, flops.focus, flops.classifier)
    if not flops.lengths:
        return TRAINING_PASSES * cost(m)
    total = sum(each.count * (cost(each.segments) + each.encoder) for each in flops.lengths)
    return Fraction(TRAINING_PASSES * total, sum(each.count for each in flops.lengths))


def soft_epochs(epochs: float, flops: ModelFlops, m: int, n: int) -> Budget:
    """The FLOPs of so many epochs of soft on n mosaics; `epochs` > 0 need not be whole.

    Raises:
        ValueError: epochs, m or n out of range, or a budget of 2^63 FLOPs or more.
    """
    require(is_positive(epochs), "epochs", epochs, "a number > 0")
    require(m >= 2, "m", m, "an integer >= 2")
    require(n >= 1, "n", n, "an integer >= 1")
    amount = exact_decimal(epochs) * n * training_flops("soft", flops, m)
    # Rounded up for posts, so that whole epochs fit though the mean cost is no integer.
    return Budget(math.ceil(amount) if flops.lengths else int(amount))


def epochs(count: float, n: int) -> Budget:
    """The budget of so many epochs on n mosaics, in mosaics; `count` > 0 need not be whole.

    Raises:
        ValueError: the count is out of range, or less than one mosaic.
    """
    require(is_positive(count), "epochs", count, "a number > 0")
    return Budget(int(exact_decimal(count) * n), "mosaics")


@functools.lru_cache(maxsize=1024)
def exact_decimal(number: float) -> Fraction:
    """The decimal number that was typed: .1 is 1/10, not the nearest binary number."""
    return Fraction(str(number))
