"""A model: an encoder, a focus and a classifier."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor, nn


class Network(nn.Sequential):
    """Layers in sequence, computed in a precision; weights and outputs are float32.

    Args:
        layers: in order.
        precision: one of `study.cell.PRECISIONS`. With bfloat16, convolutions and linear layers
            multiply in bfloat16 (`torch.autocast`). All that a paradigm computes from the outputs,
            the loss and the update of the weights stay in float32. (tf32 is a setting of the
            process, see `study.hardware.products`.)
    """

    def __init__(self, *layers: nn.Module, precision: str = "float32") -> None:
        super().__init__(*layers)
        self.precision = precision

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, ...) -> (N, ...) float32."""
        if self.precision != "bfloat16":
            return super().forward(inputs)
        with in_precision(self.precision, inputs.device):
            return super().forward(inputs).float()


class Model(nn.Module):
    """A Focus-Classify Attention Model (section 2.3).

    Args:
        focus: f, segments (N, ...) -> scores (N,).
        classifier: g, segments (N, ...) -> logits (N, C).
        encoder: (inputs (B, m, ...), mask (B, m) or None) -> segments (B, m, ...); None: inputs
            are segments.
        segment_shape: of a segment that the encoder makes.
    """

    def __init__(
        self,
        focus: nn.Module,
        classifier: nn.Module,
        encoder: nn.Module | None = None,
        segment_shape: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        self.focus = focus
        self.classifier = classifier
        self.encoder = encoder
        self.segment_shape = segment_shape
        # On a CPU, convolutions are faster with this layout of their weights.
        self.to(memory_format=torch.channels_last)

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Inputs (B, m, ...) -> segments (B, m, ...): the identity for images."""
        return inputs if self.encoder is None else self.encoder(inputs, mask)

    def projections(self) -> dict[str, float]:
        """The theory's projections of the weights, by name; empty for most models."""
        return {}


Builder = Callable[[tuple[int, ...], int, float, int, str], Model]
"""(input_shape, num_classes, width, seed, precision) -> Model."""


def in_precision(
    precision: str, device: torch.device
) -> contextlib.AbstractContextManager[object]:
    """A context whose products are computed in bfloat16 if that is the precision."""
    if precision != "bfloat16":
        return contextlib.nullcontext()
    # Every weight is used once a pass, so caching its cast gains nothing.
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


def scaled(size: int, width: float) -> int:
    """A hidden size times the axis `width`, at least 1."""
    return max(1, round(size * width))


def initialise(module: nn.Module, seed: int) -> None:
    """Xavier-normal weights and zero biases, as the scripts do; standard normal embeddings."""
    generator = torch.Generator().manual_seed(seed)
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.xavier_normal_(layer.weight, generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.Embedding):
            nn.init.normal_(layer.weight, generator=generator)
