"""Hard attention (HA): classify one segment drawn from the attention; the expectation is exact."""

from __future__ import annotations

import torch
from torch import Tensor

from study.paradigms.base import (
    Classifier,
    Focus,
    Paradigm,
    class_log_probabilities,
    focus_scores,
    log_attention,
    of_label,
    pick,
)


class Hard(Paradigm):
    """L_HA = -sum_j a_j log sigma_y( g(x_j) ); s_k = sigma_k( g(x_j*) ), j* = argmax_j f(x_j)."""

    name = "hard"
    exact = "hard"
    mixes = False

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
        log_p = of_label(class_log_probabilities(classifier, segments, mask), labels)
        return -(attention * log_p).sum(dim=1).mean()

    def predict(
        self,
        focus: Focus,
        classifier: Classifier,
        segments: Tensor,
        mask: Tensor | None = None,
        attention: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """See `Paradigm.predict`. Of equal scores, the first segment is taken."""
        if attention is None:
            scores = focus_scores(focus, segments, mask)
            attention = scores.softmax(dim=1)
        else:
            scores = attention
        logits = classifier(pick(segments, scores.argmax(dim=1)))
        return attention, logits.softmax(dim=1)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and m of g."""
        return m * (focus_flops + classifier_flops)
