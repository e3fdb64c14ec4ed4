"""One training step of any paradigm, and its recording as a CUDA graph."""

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
    """One step of any paradigm on the inputs of these rows.

    The batch goes through the networks in parts whose gradients add up to that of the whole, so
    the size of the parts changes speed and memory but the result by rounding only (hard-sampled
    draws other samples). Nothing waits for the device, but where inputs differ in length.

    Args:
        rows: (B,) int64.
        model: updated in place.
        paradigm: gives the loss.
        optimiser: of the model's parameters, or of some of them.
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
    """A step recorded once as a CUDA graph: a call replays its kernels without launching each.

    The step must have run before (libraries set themselves up on first use), must not wait for
    the device, and must keep its state in place; what it allocates belongs to the graph. The graph
    knows memory, not tensors: the step is kept, with the weights and data that it holds, so that
    nobody else gets their memory.

    Args:
        step: to record; recording runs no kernel.
        rows: example of its argument; calls take tensors of this shape.
        stream: to record on; no other graph that may run at the same time is recorded there.
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
