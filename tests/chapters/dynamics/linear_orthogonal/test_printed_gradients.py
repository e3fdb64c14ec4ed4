"""Equations (7) to (12) of the paper, as printed, are the gradients by which networks train."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from study import paradigms

M, CLASSES, SIZE = 4, 3, 5


def printed(paradigm: str, x: Tensor, w: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of the loss by w (C, d) and u (d,); of X (C, m, d) one mosaic per class."""
    attention = (x @ u).softmax(1)
    mean = torch.einsum("yj,yjd->yd", attention, x)
    is_class = one_hot(torch.arange(CLASSES), CLASSES)
    single = (x @ w.T).softmax(2)
    right = single[torch.arange(CLASSES), :, torch.arange(CLASSES)]
    if paradigm == "soft":
        missing = is_class - (mean @ w.T).softmax(1)
        by_w = torch.einsum("yj,yk,yjd->kd", attention, missing, x)  # (7)
        spread = torch.einsum("yj,yjd,yje->yde", attention, x, x - mean[:, None])
        by_u = torch.einsum("yde,ye->d", spread, missing @ w)  # (8)
    elif paradigm == "hard":
        missing = is_class[:, None] - single
        by_w = torch.einsum("yj,yjk,yjd->kd", attention, missing, x)  # (9)
        by_u = torch.einsum("yj,yjd->d", right.log() * attention, x - mean[:, None])  # (10)
    else:
        gamma = attention * right / (attention * right).sum(1, keepdim=True)
        missing = is_class[:, None] - single
        by_w = torch.einsum("yj,yjk,yjd->kd", gamma, missing, x)  # (11)
        by_u = torch.einsum("yj,yjd->d", gamma, x - mean[:, None])  # (12)
    return -by_w / CLASSES, -by_u / CLASSES


@pytest.mark.parametrize("paradigm", ["soft", "hard", "lvml"])
def test_the_printed_gradients_are_those_of_training(paradigm):
    draw = torch.Generator().manual_seed(0)
    x, w, u = (
        torch.randn(shape, generator=draw, dtype=torch.float64)
        for shape in ((CLASSES, M, SIZE), (CLASSES, SIZE), (SIZE,))
    )
    weights = w.requires_grad_(), u.requires_grad_()
    loss = paradigms.get(paradigm).loss(
        lambda segments: segments @ u, lambda segments: segments @ w.T, x, torch.arange(CLASSES)
    )
    with torch.no_grad():
        expected = printed(paradigm, x, w, u)
    torch.testing.assert_close(torch.autograd.grad(loss, weights), expected)
