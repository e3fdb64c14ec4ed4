"""A training step of any paradigm, and SGD, which ends it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.optim.sgd import sgd

from study.models.base import Model
from study.paradigms.base import Paradigm
from study.paradigms.held import held_attention
from study.tasks.base import Split


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


def train_step(
    rows: Tensor,
    model: Model,
    paradigm: Paradigm,
    optimiser: SGD,
    split: Split,
    generator: torch.Generator,
    micro_batch: int,
    alpha: float | None = None,
    width: int | None = None,
) -> Tensor:
    """Takes one step of any paradigm on the inputs of these rows.

    The batch goes through the networks in parts whose gradients are summed. So the size of the
    parts changes speed and memory, and the result only by rounding (hard-sampled draws other
    samples). Nothing waits for the device if inputs are of one length or a width is given.

    Args:
        rows: (B,) int64.
        model: updated in place.
        paradigm: gives the loss.
        optimiser: of all or some of the model's parameters.
        split: the train split.
        generator: random stream of paradigms that sample.
        micro_batch: inputs a part, >= 1.
        alpha: attention held on the foreground; None: the focus attends.
        width: segments to which every input is padded, see `Split.widths`; None: as few as fit.

    Returns:
        The mean loss of the batch before the update: a scalar on the device, without gradient.
    """
    loss = torch.zeros((), device=rows.device)
    gradients: list[Tensor] = []
    for part in rows.split(micro_batch):
        inputs, labels, foreground, mask = split.batch(part, width)
        segments = model.encode(inputs, mask)
        attention = None if alpha is None else held_attention(alpha, foreground)
        mean = paradigm.loss(
            model.focus, model.classifier, segments, labels, mask, attention, generator
        )
        share = mean * (len(part) / len(rows))
        of_part = torch.autograd.grad(share, optimiser.parameters)
        if gradients:
            gradients = [a + b for a, b in zip(gradients, of_part, strict=True)]
        else:
            gradients = list(of_part)
        loss += share.detach()
    optimiser.step(gradients)
    return loss
