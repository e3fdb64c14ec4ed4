"""Logits averaged by the attention: what the published scripts train and predict with as LVML."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from study.paradigms.base import Attended, Paradigm


class LVMLLogits(Paradigm):
    """L = -log sigma_y( sum_j a_j g(x_j) ); s_k = sigma_k( sum_j a_j g(x_j) ).

    The scripts' HateXplain models do this in the place of `LVML`, which averages probabilities.
    It is no likelihood of the mosaic model: where g is linear it is `Soft`, at m calls of g.
    """

    name = "lvml-logits"
    exact = "lvml-logits"
    mixes = False

    def loss_of(
        self, attended: Attended, labels: Tensor, generator: torch.Generator | None
    ) -> Tensor:
        """See `Paradigm.loss`."""
        return functional.cross_entropy(_mean_logits(attended), labels)

    def probabilities(self, attended: Attended) -> Tensor:
        """See `Paradigm.predict`."""
        return _mean_logits(attended).softmax(dim=1)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and m of g."""
        return m * (focus_flops + classifier_flops)


def _mean_logits(attended: Attended) -> Tensor:
    """sum_j a_j g(x_j): (B, C)."""
    return (attended.attention[:, :, None] * attended.logits()).sum(dim=1)
