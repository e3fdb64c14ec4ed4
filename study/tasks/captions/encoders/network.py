"""What all encoders share: they normalise pixels, and normalise batches by fixed statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import torch
from torch import Tensor, nn

from study.hardware import in_precision


class EncoderNetwork(nn.Module):
    """Layers on normalised pixels.

    It stays in evaluation mode: batch normalisation keeps its statistics, whether the weights are
    trained or not, so that an image's features depend on no other image.

    Args:
        layers: pixels (N, 3, P, P) float32 -> features (N, D, g, g), with g = P / stride.
        mean: of red, green and blue, in [0, 1]; it is subtracted.
        std: what pixels are divided by then.
        precision: of its products, see `study.hardware.in_precision`.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, layers: nn.Module, mean: Sequence[float], std: Sequence[float], precision: str
    ) -> None:
        super().__init__()
        self.layers = layers
        self.precision = precision
        for name, values in (("mean", mean), ("std", std)):
            self.register_buffer(name, torch.tensor(values)[:, None, None], persistent=False)
        self.to(memory_format=torch.channels_last)
        self.eval()

    def forward(self, pixels: Tensor) -> Tensor:
        """Pixels (N, 3, P, P) uint8 -> features (N, D, g, g) float32."""
        values = pixels.contiguous(memory_format=torch.channels_last).float() / 255
        with in_precision(self.precision, pixels.device):
            return self.layers((values - self.mean) / self.std).float()

    def train(self, mode: bool = True) -> Self:
        """Stays in evaluation mode."""
        return super().train(False)


def built(
    layers: Callable[[], nn.Module], mean: Sequence[float], std: Sequence[float], precision: str
) -> EncoderNetwork:
    """An encoder with weights that are always the same."""
    with torch.random.fork_rng(devices=[]):  # construction draws from the global stream
        torch.manual_seed(0)
        return EncoderNetwork(layers(), mean, std, precision)
