"""A paradigm that no study declares, written as CONTRIBUTING says: soft attention by sparsemax.

Martins and Astudillo, "From Softmax to Sparsemax" (ICML 2016), algorithm 1.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from study.paradigms.base import NO_SAMPLING, Attended, Paradigm, Sampling


class Sparsemax(Paradigm):
    """L = -log sigma_y( g( sum_j a_j x_j ) ), a the point of the simplex nearest to the scores."""

    name = "sparsemax"
    exact = "sparsemax"
    mixes = True

    def losses(
        self, attended: Attended, labels: Tensor, sampling: Sampling = NO_SAMPLING
    ) -> Tensor:
        """See `Paradigm.loss`."""
        logits = attended.classifier(attended.mixture)
        return functional.cross_entropy(logits, labels, reduction="none")

    def probabilities(self, attended: Attended) -> Tensor:
        """See `Paradigm.predict`."""
        return attended.classifier(attended.mixture).softmax(dim=1)

    def attend(self, scores: Tensor) -> Tensor:
        """See `Paradigm.attend`: max(f(x_j) - tau, 0), tau such that they sum to 1."""
        largest_first = scores.sort(dim=1, descending=True).values
        excess = largest_first.cumsum(dim=1) - 1
        rank = torch.arange(1, scores.shape[1] + 1, device=scores.device)
        support = (rank * largest_first > excess).sum(dim=1, keepdim=True).clamp(min=1)
        return (scores - excess.gather(1, support - 1) / support).clamp(min=0)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and one of g."""
        return m * focus_flops + classifier_flops
