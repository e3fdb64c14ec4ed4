"""The baseline of this platform: training as a research script does it.

It has the default memory format, one optimiser for the focus and one for the classifier, and a
second forward pass after every step to read the loss; `benchmarks/train_step.py` gives it all
mosaics as one float tensor, by a `DataLoader`. It takes nothing from `study` but the switch to
TensorFloat-32, so that tests can compare the fast step with it in float64. Its products are in the
precision of what it is compared with.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from study import hardware


def as_published(network: nn.Sequential) -> nn.Sequential:
    """A copy of the network in the default memory format, each ReLU after its convolution."""
    layers: list[nn.Module] = []
    for layer in network:
        at = len(layers)
        while isinstance(layer, nn.ReLU) and isinstance(layers[at - 1], nn.MaxPool2d | nn.Flatten):
            at -= 1
        layers.insert(at, copy.deepcopy(layer))
    return nn.Sequential(*layers).to(memory_format=torch.contiguous_format)


def loss_of(
    paradigm: str, focus: nn.Module, classifier: nn.Module, x: Tensor, y: Tensor
) -> Tensor:
    """Mean loss of mosaics x (B, m, C, H, W) with labels y (B,), as section 2.3 writes it."""
    a = focus(x.flatten(0, 1)).view(x.shape[:2]).softmax(dim=1)
    if paradigm == "soft":
        mixed = (a[..., None, None, None] * x).sum(dim=1)
        return functional.cross_entropy(classifier(mixed), y)
    p = classifier(x.flatten(0, 1)).softmax(dim=1).view(*x.shape[:2], -1)
    p_y = p.gather(2, y[:, None, None].expand(-1, x.shape[1], 1)).squeeze(2)
    if paradigm == "hard":
        return -(a * p_y.log()).sum(dim=1).mean()
    if paradigm == "lvml":
        return -(a * p_y).sum(dim=1).log().mean()
    raise ValueError(f"the baseline knows soft, hard and lvml, got {paradigm!r}")


class ResearchScript:
    """The baseline's training step.

    Args:
        paradigm: soft, hard or lvml.
        focus: f; a copy trains.
        classifier: g; a copy trains.
        lr: learning rate of both optimisers.
        momentum: of both.
        device: of the model; mosaics go there step by step.
        precision: of the products: float32, tf32 or bfloat16.
    """

    def __init__(
        self, paradigm: str, focus: nn.Sequential, classifier: nn.Sequential, lr: float,
        momentum: float, device: str = "cpu", precision: str = "float32",
    ) -> None:  # fmt: skip
        self.paradigm, self.device, self.precision = paradigm, device, precision
        self.focus = as_published(focus).to(device)
        self.classifier = as_published(classifier).to(device)
        self.optimisers = [
            torch.optim.SGD(each.parameters(), lr=lr, momentum=momentum)
            for each in (self.focus, self.classifier)
        ]

    def step(self, x: Tensor, y: Tensor) -> float:
        """Takes one step on mosaics x with labels y; returns the loss after it."""
        x, y = x.to(self.device), y.to(self.device)
        with hardware.products(self.precision, x.device):
            for optimiser in self.optimisers:
                optimiser.zero_grad()
            self._loss(x, y).backward()
            for optimiser in self.optimisers:
                optimiser.step()
            with torch.no_grad():
                return self._loss(x, y).item()

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        half = self.precision == "bfloat16"
        with torch.autocast(self.device, torch.bfloat16, enabled=half):
            return loss_of(self.paradigm, self.focus, self.classifier, x, y)
