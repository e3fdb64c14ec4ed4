"""A training step of any paradigm, and the same step as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from study.models.base import Model
from study.paradigms.base import Paradigm
from study.paradigms.held import held_attention
from study.tasks.base import Split
from study.train.optimiser import SGD

Step = Callable[[Tensor], Tensor]
"""Rows of the train split (B,) int64 -> their mean loss before the step, on the device."""


def train_step(
    rows: Tensor,
    model: Model,
    paradigm: Paradigm,
    optimiser: SGD,
    split: Split,
    generator: torch.Generator,
    micro_batch: int,
    alpha: float | None = None,
) -> Tensor:
    """Takes one step of any paradigm on the inputs of these rows.

    The batch goes through the networks in parts whose gradients are summed. So the size of the
    parts changes speed and memory, and the result only by rounding (hard-sampled draws other
    samples). Nothing waits for the device unless inputs differ in length.

    Args:
        rows: (B,) int64.
        model: updated in place.
        paradigm: gives the loss.
        optimiser: of all or some of the model's parameters.
        split: the train split.
        generator: random stream of paradigms that sample.
        micro_batch: inputs a part, >= 1.
        alpha: attention held on the foreground; None: the focus attends.

    Returns:
        The mean loss of the batch before the update: a scalar on the device, without gradient.
    """
    loss = torch.zeros((), device=rows.device)
    gradients: list[Tensor] = []
    for part in rows.split(micro_batch):
        inputs, labels, foreground, mask = split.batch(part)
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


class CapturedStep:
    """A step recorded as a CUDA graph: a call replays all its kernels with one launch.

    The step must have run before (libraries set themselves up on first use), must not wait for
    the device, and must keep its state in place. The graph refers to memory, not to tensors, so
    this object keeps the step with its weights and data, lest their memory be reused.

    Args:
        step: to record; recording runs no kernel.
        rows: example of its argument; calls take tensors of this shape.
        stream: to record on; graphs that may run at the same time need different streams.
    """

    def __init__(self, step: Step, rows: Tensor, stream: torch.cuda.Stream) -> None:
        self._step = step
        self._rows = rows.clone()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=stream):
            self._loss = step(self._rows)

    def __call__(self, rows: Tensor) -> Tensor:
        """See `Step`; the next call overwrites what is returned."""
        self._rows.copy_(rows)
        self._graph.replay()
        return self._loss
