"""The contract of a paradigm, and what all paradigms do with segments, scores and masks.

Symbols of the paper (section 2.3) and their names here: f `focus`, g `classifier`, x_j
`segments[:, j]`, a `attention`, y `labels`, sigma_k(g(x)) `class_probabilities[:, k]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

Focus = Callable[[Tensor], Tensor]
"""Segments (N, ...) -> scores (N,)."""

Classifier = Callable[[Tensor], Tensor]
"""Segments (N, ...) -> logits (N, C)."""


class Paradigm(Protocol):
    """A way to train and to predict with a focus and a classifier.

    Attributes:
        name: as in a schedule.
        exact: name of the paradigm whose loss is the expectation of this one's: its own unless it
            samples. Evaluations use it, so that they draw nothing.
        mixes: whether the classifier sees the attention-weighted sum of the segments. Where it
            sees single segments, its outputs can be looked up in a table.
    """

    name: str
    exact: str
    mixes: bool

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
        """Mean training loss of a batch, in nats.

        Args:
            focus: (N, ...) -> (N,) scores.
            classifier: (N, ...) -> (N, C) logits.
            segments: (B, m, ...) float.
            labels: (B,) int64 in [0, C).
            mask: (B, m) bool, True = real segment; at least one real segment a row. Neither focus
                nor classifier ever sees a segment that is not real.
            attention: (B, m), rows sum to 1; when given, it replaces the softmax of the focus
                (fixed focus, section 3) and the focus is not called.
            generator: random stream of paradigms that sample.

        Returns:
            Scalar tensor with gradient.
        """
        ...

    def predict(
        self,
        focus: Focus,
        classifier: Classifier,
        segments: Tensor,
        mask: Tensor | None = None,
        attention: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The paradigm's own inference (section 2.3).

        Returns:
            attention (B, m), rows sum to 1, exactly 0 where `mask` is False; and
            class_probabilities (B, C), rows sum to 1.
        """
        ...

    def attend(self, scores: Tensor) -> Tensor:
        """The attention that scores of the focus give: their softmax, unless a paradigm differs.

        Evaluations ask for it where the classifier sees sums: the focus has run once a distinct
        segment then, and a sum does not tell which segments are in it.

        Args:
            scores: (B, m), -inf where a segment is not real; at least one real segment a row.

        Returns:
            (B, m), rows sum to 1, exactly 0 where a segment is not real: what `predict` returns.
        """
        return scores.softmax(dim=1)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """Forward FLOPs of the loss of one mosaic of m segments.

        Args:
            focus_flops: forward FLOPs of the focus on one segment.
            classifier_flops: forward FLOPs of the classifier on one segment.
            m: segments of the mosaic.
        """
        ...


def log_attention(focus: Focus, segments: Tensor, mask: Tensor | None) -> Tensor:
    """log a = log softmax over the segments of f(x_j): (B, m), -inf where `mask` is False."""
    return focus_scores(focus, segments, mask).log_softmax(dim=1)


def focus_scores(focus: Focus, segments: Tensor, mask: Tensor | None) -> Tensor:
    """f(x_j): (B, m), -inf where `mask` is False."""
    return on_segments(focus, segments, mask, fill=-torch.inf)


def class_log_probabilities(
    classifier: Classifier, segments: Tensor, mask: Tensor | None
) -> Tensor:
    """log sigma_k(g(x_j)): (B, m, C), 0 where `mask` is False."""
    return on_segments(lambda x: classifier(x).log_softmax(dim=-1), segments, mask, fill=0.0)


def on_segments(
    function: Callable[[Tensor], Tensor], segments: Tensor, mask: Tensor | None, fill: float
) -> Tensor:
    """Applies (N, ...) -> (N, *out) to every real segment of (B, m, ...): (B, m, *out)."""
    if mask is None:
        out = function(segments.flatten(0, 1))
        return out.unflatten(0, segments.shape[:2])
    real = function(segments[mask])
    out = real.new_full((*mask.shape, *real.shape[1:]), fill)
    out[mask] = real
    return out


def of_label(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """log sigma_y(g(x_j)): (B, m, C) and (B,) -> (B, m)."""
    index = labels[:, None, None].expand(-1, log_probabilities.shape[1], 1)
    return log_probabilities.gather(2, index).squeeze(2)


def aggregate(attention: Tensor, segments: Tensor, mask: Tensor | None) -> Tensor:
    """sum_j a_j x_j: (B, m) and (B, m, ...) -> (B, ...)."""
    if mask is not None:  # what stands in padding may be anything, and 0 * NaN is NaN
        padding = ~mask.reshape(*mask.shape, *[1] * (segments.dim() - 2))
        segments = segments.masked_fill(padding, 0.0)
    return torch.einsum("bm,bm...->b...", attention, segments)


def pick(segments: Tensor, index: Tensor) -> Tensor:
    """x_{index}: (B, m, ...) and (B,) int64 -> (B, ...)."""
    return segments[torch.arange(len(segments), device=segments.device), index]
