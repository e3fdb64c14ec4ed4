"""Latent-variable marginal likelihood (LVML): the exact likelihood of the mosaic model."""

from __future__ import annotations

import torch
from torch import Tensor

from study.paradigms.base import (
    Classifier,
    Focus,
    Paradigm,
    class_log_probabilities,
    log_attention,
    of_label,
)


class LVML(Paradigm):
    """L_LV = -log sum_j a_j sigma_y( g(x_j) ); s_k = sum_j a_j sigma_k( g(x_j) )."""

    name = "lvml"
    exact = "lvml"
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
        """See `Paradigm.loss`. Computed in the log domain: a confident mistake stays finite."""
        log_p = of_label(class_log_probabilities(classifier, segments, mask), labels)
        if attention is None:
            log_a = log_attention(focus, segments, mask)
            return -(log_a + log_p).logsumexp(dim=1).mean()
        # A given attention may be exactly 0, where its logarithm has no derivative.
        if mask is not None:
            log_p = log_p.masked_fill(~mask, -torch.inf)
        largest = log_p.detach().amax(dim=1, keepdim=True)
        likelihood = (attention * (log_p - largest).exp()).sum(dim=1)
        return -(likelihood.log() + largest.squeeze(1)).mean()

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
        probabilities = class_log_probabilities(classifier, segments, mask).exp()
        mixture = torch.einsum("bm,bmc->bc", attention, probabilities)
        # A float32 sum over many segments may exceed 1 by more than rounding of one number.
        return attention, mixture / mixture.sum(dim=1, keepdim=True)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and m of g."""
        return m * (focus_flops + classifier_flops)
