"""Soft attention (SA): classify the attention-weighted sum of the segments."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from study.paradigms.paradigm import NO_SAMPLING, Attended, Paradigm, Sampling


class Soft(Paradigm):
    """L_SA = -log sigma_y( g( sum_j a_j x_j ) ); s_k = sigma_k( g( sum_j a_j x_j ) )."""

    name = "soft"
    exact = "soft"
    mixes = True
    held = True

    def losses(
        self, attended: Attended, labels: Tensor, sampling: Sampling = NO_SAMPLING
    ) -> Tensor:
        logits = attended.classifier(attended.mixture)
        return functional.cross_entropy(logits, labels, reduction="none")

    def probabilities(self, attended: Attended) -> Tensor:
        return attended.classifier(attended.mixture).softmax(dim=1)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and one of g."""
        return m * focus_flops + classifier_flops
