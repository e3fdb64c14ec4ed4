"""SGD with momentum whose momentum and learning rate a phase boundary resets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.optim.sgd import sgd


class SGD:
    """v <- momentum v + gradient; w <- w - lr v: the arithmetic of `torch.optim.SGD`.

    It calls PyTorch's functional form, because the first use of the optimiser class imports
    torch._dynamo: seconds in every worker process, as much as many a cell (docs/log.md).

    Args:
        parameters: to update in place.
        lr: learning rate, > 0.
        momentum: in [0, 1).

    Attributes:
        parameters: as given.
        velocity: v, one tensor a parameter.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float) -> None:
        self.parameters = list(parameters)
        self._momentum = momentum
        # Kept in place from the start, so that a CUDA graph may hold on to it. A velocity of zero
        # gives the first step the same bits as none.
        self.velocity = [torch.zeros_like(p) for p in self.parameters]
        self._lr = lr

    def begin_phase(self, lr: float) -> None:
        """From here on another learning rate, with no momentum from before."""
        self._lr = lr
        for velocity in self.velocity:
            velocity.zero_()

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """One update down the gradients, one a parameter."""
        sgd(
            self.parameters,
            list(gradients),
            list(self.velocity),
            weight_decay=0.0,
            momentum=self._momentum,
            lr=self._lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            foreach=True,
        )
