"""A model: an encoder, a focus and a classifier."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
