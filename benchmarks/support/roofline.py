"""How fast a step could be: measured ceilings of the device, counted work of a step.

The ceilings are what the device reaches on its easiest work, a large matrix product and a large
copy. A step's FLOPs are those of `study.train.budget.cost`. Its bytes are counted on the outputs
of the convolutions, linear layers, poolings and ReLUs. Each output is written and read once
forward and read once backward, and its gradient is written and read once. Weights and pixels are
not counted.

The resulting floor holds for layers that pass their outputs through memory. Fused layers, and
parts that stay in a cache, move fewer bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.support.stepping import CIFAR_SHAPE, timed
from study import hardware, paradigms
from study.models.base import Model
from study.train.budget import cost

MATRIX_SIZE = {"cpu": 2_048, "cuda": 8_192}
COPY_BYTES = {"cpu": 2**28, "cuda": 2**32}
EMULATED_SIZE = 512
"""Matrix size for emulated bfloat16, with which a larger product takes a CPU seconds."""

REPEATS = 8

BYTES_EACH = {"float32": 4, "tf32": 4, "bfloat16": 2}
"""Of a number, by precision."""

PASSES_OVER_OUTPUTS = 5


@dataclass(frozen=True)
class Ceilings:
    """The ceilings of a device.

    Attributes:
        flops: FLOP/s of a matrix product, by precision.
        bytes: bytes/s that a copy reads and writes.
    """

    flops: dict[str, float]
    bytes: float

    @property
    def text(self) -> str:
        products = ", ".join(
            f"{each / 1e12:.3g} TFLOP/s {name}" for name, each in self.flops.items()
        )
        return f"ceilings: matrix product {products}; copy {self.bytes / 1e9:.3g} GB/s"


@dataclass(frozen=True)
class Work:
    """The work of one training step.

    Attributes:
        flops: counted training FLOPs.
        bytes: counted bytes of the layers' outputs and their gradients.
        floor: the least seconds that it takes.
    """

    flops: int
    bytes: int
    floor: float


def ceilings(device: torch.device) -> Ceilings:
    """Measures the device; a second or two."""
    emulated = device.type == "cpu" and not hardware.has_bfloat16(device)
    flops = {}
    for name in BYTES_EACH:
        if name == "tf32" and device.type == "cpu":
            continue
        size = EMULATED_SIZE if emulated and name == "bfloat16" else MATRIX_SIZE[device.type]
        dtype = torch.bfloat16 if name == "bfloat16" else torch.float32
        a = torch.randn(size, size, device=device).to(dtype)
        out = torch.empty_like(a)
        with hardware.products(name, device):
            flops[name] = 2 * size**3 / _best(functools.partial(torch.mm, a, a, out=out), device)
    source = torch.zeros(COPY_BYTES[device.type], dtype=torch.uint8, device=device)
    target = torch.zeros_like(source)
    return Ceilings(flops, 2 * len(source) / _best(lambda: target.copy_(source), device))


def work(
    model: Model, paradigm: str, m: int, batch_size: int, precision: str, reached: Ceilings
) -> Work:
    """The work of a step on a batch of mosaics of m segments of CIFAR's shape."""
    flops = batch_size * cost.training_flops(paradigm, model.flops(CIFAR_SHAPE), m)
    # A paradigm's cost is a sum over its calls of focus and classifier; here it counts numbers.
    numbers = paradigms.get(paradigm).cost(_outputs(model.focus), _outputs(model.classifier), m)
    moved = batch_size * PASSES_OVER_OUTPUTS * numbers * BYTES_EACH[precision]
    return Work(flops, moved, max(flops / reached.flops[precision], moved / reached.bytes))


def _outputs(network: nn.Sequential) -> int:
    """How many numbers the layers of a network output for one input."""
    total, values = 0, torch.zeros(1, *CIFAR_SHAPE)
    for layer in network:
        values = layer(values)
        if isinstance(layer, nn.Conv2d | nn.Linear | nn.MaxPool2d | nn.ReLU):
            total += values.numel()
    return total


def _best(function: Callable[[], object], device: torch.device) -> float:
    """The least seconds of a few calls."""
    timer = timed(function, device, 1)
    return min(timer() for _ in range(REPEATS))
