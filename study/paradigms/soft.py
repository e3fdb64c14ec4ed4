"""Soft attention (SA): classify the attention-weighted sum of the segments."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from study.paradigms.base import Classifier, Focus, Paradigm, aggregate, log_attention


class Soft(Paradigm):
    """L_SA = -log sigma_y( g( sum_j a_j x_j ) ); s_k = sigma_k( g( sum_j a_j x_j ) )."""

    name = "soft"
    exact = "soft"
    mixes = True

    def loss(
        self,
        focus: Focus,
        classifier: Classifier,
        segments: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        attention: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """See `Paradigm.loss`."""
        if attention is None:
            attention = log_attention(focus, segments, mask).exp()
        return functional.cross_entropy(classifier(aggregate(attention, segments, mask)), labels)

    def predict(
        self,
        focus: Focus,
        classifier: Classifier,
        segments: Tensor,
        mask: Tensor | None = None,
        attention: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """See `Paradigm.predict`."""
        if attention is None:
            attention = log_attention(focus, segments, mask).exp()
        logits = classifier(aggregate(attention, segments, mask))
        return attention, logits.softmax(dim=1)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and one of g."""
        return m * focus_flops + classifier_flops
