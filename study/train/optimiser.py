"""SGD with momentum; a phase boundary resets the momentum and the learning rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.optim.sgd import sgd


class SGD:
    """v <- momentum v + gradient; w <- w - lr v: the arithmetic of `torch.optim.SGD`.

    It calls PyTorch's functional form, because the first use of the optimiser class imports
    torch._dynamo, which takes seconds in every worker process (docs/log.md).

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
        # Kept in place, as a CUDA graph holds it. A first step from zero velocity has the same
        # bits as one without velocity.
        self.velocity = [torch.zeros_like(p) for p in self.parameters]
        self._lr = lr

    def begin_phase(self, lr: float) -> None:
        """Sets the learning rate and drops the momentum."""
        self._lr = lr
        for velocity in self.velocity:
            velocity.zero_()

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Updates the parameters by their gradients, one a parameter."""
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
