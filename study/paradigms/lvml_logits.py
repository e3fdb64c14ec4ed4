"""Logits averaged by the attention: what the published scripts train and predict with as LVML."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from study.paradigms.base import Classifier, Focus, Paradigm, log_attention, on_segments


class LVMLLogits(Paradigm):
    """L = -log sigma_y( sum_j a_j g(x_j) ); s_k = sigma_k( sum_j a_j g(x_j) ).

    The scripts' HateXplain models do this in the place of `LVML`, which averages probabilities.
    It is no likelihood of the mosaic model: where g is linear it is `Soft`, at m calls of g.
    """

    name = "lvml-logits"
    exact = "lvml-logits"
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
        return functional.cross_entropy(
            _mean_logits(classifier, segments, mask, attention), labels
        )

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
        return attention, _mean_logits(classifier, segments, mask, attention).softmax(dim=1)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and m of g."""
        return m * (focus_flops + classifier_flops)


def _mean_logits(
    classifier: Classifier, segments: Tensor, mask: Tensor | None, attention: Tensor
) -> Tensor:
    """sum_j a_j g(x_j): (B, C)."""
    return (attention[:, :, None] * on_segments(classifier, segments, mask, fill=0.0)).sum(dim=1)
