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
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.support.measure import synchronise
from study import hardware, paradigms
from study.models.base import Model
from study.train.budget import cost

MATRIX_SIZE = {"cpu": 2_048, "cuda": 8_192}
COPY_BYTES = {"cpu": 2**28, "cuda": 2**32}
EMULATED_SIZE = 512
"""Matrix size for emulated bfloat16, with which a larger product takes a CPU seconds."""

REPEATS = 7

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
        precision: of both.
    """

    flops: int
    bytes: int
    precision: str

    def floor(self, ceilings: Ceilings) -> float:
        """The least seconds that it takes."""
        return max(self.flops / ceilings.flops[self.precision], self.bytes / ceilings.bytes)


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
    model: Model,
    paradigm: str,
    m: int,
    batch_size: int,
    shape: tuple[int, ...],
    precision: str = "float32",
) -> Work:
    """The work of a step on a batch of mosaics of m segments."""
    flops = cost.training_flops(paradigm, model.flops(shape), m)
    focus, classifier = (_outputs(each, shape) for each in (model.focus, model.classifier))
    # A paradigm's cost is a sum over its calls of focus and classifier; here it counts numbers.
    numbers = paradigms.get(paradigm).cost(focus, classifier, m)
    bytes_each = PASSES_OVER_OUTPUTS * numbers * BYTES_EACH[precision]
    return Work(batch_size * flops, batch_size * bytes_each, precision)


def _outputs(module: nn.Module, shape: tuple[int, ...]) -> int:
    """How many numbers the layers of a network output for one input."""
    total = 0

    def count(_: nn.Module, __: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal total
        total += output.numel()

    counted = (nn.Conv2d, nn.Linear, nn.MaxPool2d, nn.ReLU)
    layers = [each for each in module.modules() if isinstance(each, counted)]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    with torch.no_grad():
        module(torch.zeros(1, *shape))
    for hook in hooks:
        hook.remove()
    return total


def _best(function: Callable[[], object], device: torch.device) -> float:
    """The least seconds of a few calls after the first."""
    seconds: list[float] = []
    for _ in range(1 + REPEATS):
        synchronise(device)
        started = time.perf_counter()
        function()
        synchronise(device)
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])
