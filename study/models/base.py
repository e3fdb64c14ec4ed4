"""A model: an encoder, a focus and a classifier."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Network(nn.Sequential):
    """Layers one after the other, computed in a precision; weights and outputs are float32.

    Args:
        layers: in order.
        precision: one of `study.cell.PRECISIONS`. With bfloat16, convolutions and linear layers
            multiply in bfloat16 (`torch.autocast`). What a paradigm does with the outputs, the
            loss included, and the update of the weights stay in float32.
    """

    def __init__(self, *layers: nn.Module, precision: str = "float32") -> None:
        super().__init__(*layers)
        self.precision = precision

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, ...) -> (N, ...) float32."""
        if self.precision == "float32":
            return super().forward(inputs)
        # Every weight is used once a pass: nothing to gain from keeping its cast.
        with torch.autocast(inputs.device.type, torch.bfloat16, cache_enabled=False):
            return super().forward(inputs).float()


class Model(nn.Module):
    """A Focus-Classify Attention Model (section 2.3).

    Args:
        focus: f, segments (N, ...) -> scores (N,).
        classifier: g, segments (N, ...) -> logits (N, C).
    """

    def __init__(self, focus: nn.Module, classifier: nn.Module) -> None:
        super().__init__()
        self.focus = focus
        self.classifier = classifier
        # Of convolution weights; on a CPU convolutions run faster this way.
        self.to(memory_format=torch.channels_last)

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Inputs (B, m, ...) -> segments (B, m, ...): the identity for images."""
        return inputs

    def projections(self) -> dict[str, float]:
        """Numbers that stand for the weights, by name: none, unless theory knows of some."""
        return {}
