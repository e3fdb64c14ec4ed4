"""A training step of any paradigm."""

from __future__ import annotations

import torch
from torch import Tensor

from study.models.base import Model
from study.paradigms.base import Paradigm
from study.paradigms.held import held_attention
from study.tasks.base import Split
from study.train.optimiser import SGD


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
