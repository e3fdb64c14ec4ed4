"""A training step of any paradigm, and the optimisers that end it.

They call PyTorch's functional forms, because the first use of an optimiser class imports
torch._dynamo, which takes seconds in every worker process (docs/log.md). What they keep is kept in
place, as a CUDA graph holds it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from study.paradigms.paradigm import Paradigm, Sampling
from study.tasks.task import Batch, Split


class HasLoss(Protocol):
    """A model, or what takes its place in a step."""

    def loss(
        self,
        paradigm: Paradigm,
        batch: Batch,
        sampling: Sampling,
        alpha: float | None,
        teacher_forcing: float,
    ) -> Tensor:
        """See `study.models.model.Model.loss`."""
        ...


class Optimiser(Protocol):
    """Updates parameters in place.

    Attributes:
        parameters: that it updates.
        state: all that it keeps from step to step, zeros at first.
    """

    @property
    def parameters(self) -> Sequence[Tensor]: ...

    @property
    def state(self) -> Sequence[Tensor]: ...

    def step(self, gradients: Sequence[Tensor]) -> None:
        """Updates the parameters by their gradients, one a parameter."""
        ...


class SGD:
    """v <- momentum v + gradient; w <- w - lr v: the arithmetic of `torch.optim.SGD`.

    Args:
        parameters: to update in place.
        lr: learning rate, > 0.
        momentum: in [0, 1).

    Attributes:
        parameters: as given.
        state: v, one tensor a parameter.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float) -> None:
        self.parameters = list(parameters)
        self._momentum = momentum
        # A first step from zero velocity has the same bits as one without velocity.
        self.state = [torch.zeros_like(p) for p in self.parameters]
        self._lr = lr

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """See `Optimiser`."""
        sgd(
            self.parameters,
            list(gradients),
            list(self.state),
            weight_decay=0.0,
            momentum=self._momentum,
            lr=self._lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            foreach=True,
        )

    def of(self, parameters: Iterable[Tensor]) -> SGD:
        """A new one of other parameters, with the same options."""
        return SGD(parameters, self._lr, self._momentum)


class Adam:
    """The arithmetic of `torch.optim.Adam` (Kingma and Ba, ICLR 2015).

    Args:
        parameters: to update in place.
        lr: learning rate, > 0.
        beta: decay of the first moment, in [0, 1); that of the second is .999.
        weight_decay: share of a weight that is added to its gradient, >= 0.

    Attributes:
        parameters: as given.
        state: first moments, second moments, and the number of steps, a tensor a parameter each.
    """

    def __init__(
        self, parameters: Iterable[Tensor], lr: float, beta: float, weight_decay: float = 0.0
    ) -> None:
        self.parameters = list(parameters)
        self._lr, self._beta, self._weight_decay = lr, beta, weight_decay
        self._first, self._second = ([torch.zeros_like(p) for p in self.parameters] for _ in "12")
        self._steps = [torch.zeros((), device=p.device) for p in self.parameters]
        self.state = [*self._first, *self._second, *self._steps]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """See `Optimiser`."""
        adam(
            self.parameters,
            list(gradients),
            self._first,
            self._second,
            [],
            self._steps,
            foreach=True,
            capturable=self.parameters[0].device.type == "cuda",
            amsgrad=False,
            beta1=self._beta,
            beta2=0.999,
            lr=self._lr,
            weight_decay=self._weight_decay,
            eps=1e-8,
            maximize=False,
        )

    def of(self, parameters: Iterable[Tensor]) -> Adam:
        """A new one of other parameters, with the same options."""
        return Adam(parameters, self._lr, self._beta, self._weight_decay)


class Together:
    """Optimisers of parts of a model, such as its encoder, that step together."""

    def __init__(self, *parts: Optimiser) -> None:
        self._parts = parts
        self.parameters = [each for part in parts for each in part.parameters]
        self.state = [each for part in parts for each in part.state]

    def step(self, gradients: Sequence[Tensor]) -> None:
        """See `Optimiser`."""
        left = iter(gradients)
        for part in self._parts:
            part.step(list(itertools.islice(left, len(part.parameters))))


def train_step(
    rows: Tensor,
    model: HasLoss,
    paradigm: Paradigm,
    optimiser: Optimiser,
    split: Split,
    sampling: Sampling,
    micro_batch: int,
    alpha: float | None = None,
    width: int | None = None,
    teacher_forcing: float = 1.0,
) -> Tensor:
    """Takes one step of any paradigm on the inputs of these rows.

    The batch goes through the networks in parts whose gradients are summed. So the size of the
    parts changes speed and memory, and the result only by rounding; but what is drawn, as by
    hard-sampled and dropout, is drawn part by part, so it is other. Nothing waits for the device
    if inputs are of one length or a width is given.

    Args:
        rows: (B,) int64.
        model: updated in place.
        paradigm: gives the loss.
        optimiser: of all or some of the model's parameters.
        split: the train split.
        sampling: of paradigms that sample.
        micro_batch: inputs a part, >= 1.
        alpha: attention held on the foreground; None: the focus attends.
        width: segments to which every input is padded, see `Split.widths`; None: as few as fit.
        teacher_forcing: of captions, see `study.models.model.Model.loss`.

    Returns:
        The mean loss of the batch before the update: a scalar on the device, without gradient.
    """
    loss = torch.zeros((), device=rows.device)
    gradients: list[Tensor] = []
    for part in rows.split(micro_batch):
        mean = model.loss(paradigm, split.batch(part, width), sampling, alpha, teacher_forcing)
        share = mean * (len(part) / len(rows))
        of_part = torch.autograd.grad(share, optimiser.parameters)
        if gradients:
            gradients = [a + b for a, b in zip(gradients, of_part, strict=True)]
        else:
            gradients = list(of_part)
        loss += share.detach()
    optimiser.step(gradients)
    paradigm.after_step(loss, sampling)
    return loss
