"""Fixed focus (section 3): attention is held on the foreground, and only the classifier trains.

Only here does training use the hidden foreground, on which alpha is held.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

STEP = 0.01
"""Step in alpha of the finite difference of section 3.2."""


class Incentive(NamedTuple):
    """The incentive of the focus to improve, at one classifier (section 3.2).

    Attributes:
        loss: L(alpha), in nats.
        difference: L(alpha) - L(min(alpha + `STEP`, 1)), in nats; 0 at alpha = 1.
        slope: -dL/dalpha at alpha, in nats per unit of attention.
    """

    loss: Tensor
    difference: Tensor
    slope: Tensor


def held_attention(alpha: float | Tensor, foreground: Tensor) -> Tensor:
    """alpha on the foreground and the rest on the background, each shared evenly.

    Args:
        alpha: in [0, 1], a number or a scalar tensor, maybe with a gradient.
        foreground: (B, m) bool, True at the foreground; at least one of each kind a row.

    Returns:
        (B, m) float32, rows sum to 1.
    """
    on = foreground.float()
    off = 1 - on
    return alpha * on / on.sum(1, keepdim=True) + (1 - alpha) * off / off.sum(1, keepdim=True)


def incentive(
    loss_with: Callable[[Tensor], Tensor], alpha: float, foreground: Tensor
) -> Incentive:
    """The loss, its finite difference and its slope with attention held at alpha.

    Args:
        loss_with: attention (B, m) -> the mean loss, a scalar tensor, differentiable.
        alpha: in [0, 1].
        foreground: (B, m) bool.
    """
    with torch.enable_grad():
        held = torch.full((), alpha, device=foreground.device, requires_grad=True)
        loss = loss_with(held_attention(held, foreground))
        (derivative,) = torch.autograd.grad(loss, held)
    improved = loss_with(held_attention(min(alpha + STEP, 1.0), foreground))
    return Incentive(loss.detach(), loss.detach() - improved, -derivative)
