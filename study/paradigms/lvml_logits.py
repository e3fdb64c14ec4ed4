"""Logits averaged by the attention: the "LVML" of the published scripts."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from study.paradigms.paradigm import NO_SAMPLING, Attended, Paradigm, Sampling


class LVMLLogits(Paradigm):
    """L = -log sigma_y( sum_j a_j g(x_j) ); s_k = sigma_k( sum_j a_j g(x_j) ).

    The scripts' HateXplain models use this in place of `LVML`, which averages probabilities. It is
    no likelihood of the mosaic model: with a linear g it equals `Soft`, at m calls of g.
    """

    name = "lvml-logits"
    exact = "lvml-logits"
    mixes = False

    def losses(
        self, attended: Attended, labels: Tensor, sampling: Sampling = NO_SAMPLING
    ) -> Tensor:
        return functional.cross_entropy(_mean_logits(attended), labels, reduction="none")

    def probabilities(self, attended: Attended) -> Tensor:
        return _mean_logits(attended).softmax(dim=1)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and m of g."""
        return m * (focus_flops + classifier_flops)


def _mean_logits(attended: Attended) -> Tensor:
    """sum_j a_j g(x_j): (B, C)."""
    return (attended.attention[:, :, None] * attended.logits()).sum(dim=1)
