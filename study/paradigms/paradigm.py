"""The contract of a paradigm, and the operations on segments, scores and masks that all share.

Symbols of the paper (section 2.3) and their names here: f `focus`, g `classifier`, x_j
`segments[:, j]`, a `attention`, y `labels`, sigma_k(g(x)) `class_probabilities[:, k]`.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from study.paradigms.padding import filled, padded, real
from study.paradigms.parts import in_parts

Focus = Callable[[Tensor], Tensor]
"""Segments (N, ...) -> scores (N,)."""

Classifier = Callable[[Tensor], Tensor]
"""Segments (N, ...) -> logits (N, C)."""


class Sampling(NamedTuple):
    """What paradigms need that sample; the others ignore it.

    Attributes:
        generator: random stream; None: the process's own.
        baseline: scalar, a running mean of losses, of paradigms that keep one from step to step
            (`Paradigm.after_step`); None: 0.
    """

    generator: torch.Generator | None = None
    baseline: Tensor | None = None


NO_SAMPLING = Sampling()


class Decision(NamedTuple):
    """One decision of a sequence of R rows, such as a word of each of R captions.

    Attributes:
        losses: (R,) nats, with gradient.
        context: (R, ...) the segment, or sum of segments, with which the sequences go on.
        log_choice: (R,) log a_j of the segment that was drawn, with gradient; None: none was.
    """

    losses: Tensor
    context: Tensor
    log_choice: Tensor | None


class Attended:
    """Segments, their attention and the classifier, from which a loss is computed.

    Args:
        scores: f(x_j), (B, m), -inf where a segment is not real.
        classifier: g, (N, ...) -> (N, C) logits.
        segments: x, (B, m, ...).
        mask: (B, m) bool, True = real segment; None: all are.

    Attributes:
        scores, classifier, segments, mask: as given.
        log_attention: log a_j, (B, m), -inf where a segment is not real.
        attention: a_j, (B, m), rows sum to 1, exactly 0 where a segment is not real.
    """

    def __init__(
        self, scores: Tensor, classifier: Classifier, segments: Tensor, mask: Tensor | None
    ) -> None:
        self.scores, self.classifier, self.segments, self.mask = scores, classifier, segments, mask
        self.log_attention = scores.log_softmax(dim=1)
        self.attention = self.log_attention.exp()

    def softmax(self) -> Tensor:
        """a_j by the softmax itself; `attention` goes by its logarithm and rounds differently."""
        return self.scores.softmax(dim=1)

    def log_attention_at(self, index: Tensor) -> Tensor:
        """log a_j of the segments `index` (B, k): (B, k)."""
        return self.log_attention.gather(1, index)

    def log_mean(self, log_values: Tensor) -> Tensor:
        """log sum_j a_j exp(v_j), in the log domain: (B, m) -> (B,)."""
        return (self.log_attention + log_values).logsumexp(dim=1)

    @functools.cached_property
    def mixture(self) -> Tensor:
        """sum_j a_j x_j: (B, ...), one tensor however often it is asked for."""
        segments = self.segments
        if self.mask is not None:  # padding may be NaN, and 0 * NaN is NaN
            segments = filled(segments, self.mask, 0.0)
        # Images lie channels last in memory: summed in that order, they are not copied.
        values = segments.movedim(2, -1)
        mixed = self.attention[:, None] @ values.flatten(2)
        return mixed.squeeze(1).unflatten(1, values.shape[2:]).movedim(-1, 1)

    @functools.cached_property
    def picked(self) -> Tensor:
        """x_j*, where j* is the first argmax of a_j: (B, ...), one tensor as `mixture`."""
        rows = torch.arange(len(self.segments), device=self.segments.device)
        return self.segments[rows, self.scores.argmax(dim=1)]

    def logits(self) -> Tensor:
        """g(x_j): (B, m, C), 0 where a segment is not real."""
        return on_segments(self.classifier, self.segments, self.mask, fill=0.0)

    def log_probabilities(self) -> Tensor:
        """log sigma_k(g(x_j)): (B, m, C), 0 where a segment is not real."""
        return on_segments(
            lambda x: self.classifier(x).log_softmax(dim=-1), self.segments, self.mask, fill=0.0
        )


class Given(Attended):
    """`Attended` with a given attention instead of scores (fixed focus, section 3).

    The attention may be exactly 0 at a real segment, where its logarithm has no derivative.

    Args:
        attention: (B, m), rows sum to 1.
        classifier, segments, mask: as of `Attended`.
    """

    def __init__(
        self, attention: Tensor, classifier: Classifier, segments: Tensor, mask: Tensor | None
    ) -> None:
        self.classifier, self.segments, self.mask = classifier, segments, mask
        self.scores = self.attention = attention
        self.log_attention = attention.log()

    def softmax(self) -> Tensor:
        """See `Attended`."""
        return self.attention

    def log_attention_at(self, index: Tensor) -> Tensor:
        """See `Attended`. The logarithm is taken last, of drawn segments only, which are not 0."""
        return self.attention.gather(1, index).log()

    def log_mean(self, log_values: Tensor) -> Tensor:
        """See `Attended`."""
        if self.mask is not None:
            log_values = log_values.masked_fill(~self.mask, -torch.inf)
        largest = log_values.detach().amax(dim=1, keepdim=True)
        mean = (self.attention * (log_values - largest).exp()).sum(dim=1)
        return mean.log() + largest.squeeze(1)


class Paradigm(ABC):
    """A way to train and to predict with a focus and a classifier.

    A paradigm declares the attributes, `losses`, `probabilities` and `cost`, and `attend` if its
    attention is no softmax. That is enough for single decisions and for sequences of them, such as
    the words of a caption (`chapters.captions.model`); one that samples also has `decide`,
    `sequence_losses` and `sequence_cost`, and `after_step` if it learns from step to step.

    Attributes:
        name: as in a schedule.
        exact: name of the paradigm whose loss this one estimates by samples, or its own name.
            Evaluations use that one, so that they draw nothing.
        mixes: whether the classifier sees the attention-weighted sum of the segments. If it sees
            single segments, its outputs can be looked up in a table.
        held: whether section 3 defines its loss for an attention that is held.
        samples: how many sequences of each input are followed, each with draws of its own.
    """

    name: str
    exact: str
    mixes: bool
    held: bool = False
    samples: int = 1

    def loss(
        self,
        focus: Focus,
        classifier: Classifier,
        segments: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        attention: Tensor | None = None,
        generator: torch.Generator | None = None,
        baseline: Tensor | None = None,
    ) -> Tensor:
        """Mean training loss of a batch, in nats.

        Args:
            focus: (N, ...) -> (N,) scores.
            classifier: (N, ...) -> (N, C) logits.
            segments: (B, m, ...) float.
            labels: (B,) int64 in [0, C).
            mask: (B, m) bool, True = real segment; at least one a row. Focus and classifier see
                real segments only, or zeros for the others (`study.paradigms.padding`).
            attention: (B, m), rows sum to 1; if given, it replaces the softmax of the focus (fixed
                focus, section 3), which is not called.
            generator, baseline: of paradigms that sample, see `Sampling`.

        Returns:
            Scalar tensor with gradient.
        """
        attended = self.attended(focus, classifier, segments, mask, attention)
        return self.losses(attended, labels, Sampling(generator, baseline)).mean()

    def predict(
        self,
        focus: Focus,
        classifier: Classifier,
        segments: Tensor,
        mask: Tensor | None = None,
        attention: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The paradigm's own inference (section 2.3); arguments as for `loss`.

        Returns:
            attention (B, m), rows sum to 1, exactly 0 where `mask` is False; and
            class_probabilities (B, C), rows sum to 1.
        """
        attended = self.attended(focus, classifier, segments, mask, attention)
        return self.attention(attended), self.probabilities(attended)

    def attended(
        self,
        focus: Focus,
        classifier: Classifier,
        segments: Tensor,
        mask: Tensor | None = None,
        attention: Tensor | None = None,
    ) -> Attended:
        """The segments with their attention; arguments as for `loss`."""
        if attention is None:
            scores = focus_scores(focus, segments, mask)
            if type(self).attend is Paradigm.attend:
                return Attended(scores, classifier, segments, mask)
            attention = self.attend(scores)
        return Given(attention, classifier, segments, mask)

    @abstractmethod
    def losses(
        self, attended: Attended, labels: Tensor, sampling: Sampling = NO_SAMPLING
    ) -> Tensor:
        """The losses (B,), of which `loss` returns the mean, from attended segments."""

    @abstractmethod
    def probabilities(self, attended: Attended) -> Tensor:
        """The class probabilities (B, C) that `predict` returns, from attended segments."""

    def attention(self, attended: Attended) -> Tensor:
        """The attention (B, m) that `predict` returns."""
        return attended.attention

    def attend(self, scores: Tensor) -> Tensor:
        """The attention (B, m) from scores of the focus: their softmax, unless overridden.

        Evaluations call it if the classifier sees sums of segments: then the focus has already run
        once for each distinct segment.

        Args:
            scores: (B, m), -inf where a segment is not real; at least one real segment a row.

        Returns:
            The attention that `predict` returns: rows sum to 1, exactly 0 where a segment is not
            real.
        """
        return scores.softmax(dim=1)

    def context(self, attended: Attended) -> Tensor:
        """The segments (B, ...) with which a sequence goes on: those that inference classifies.

        Of a paradigm whose classifier sees all segments, it is their sum, as if they were mixed.
        """
        return attended.mixture

    def decide(self, attended: Attended, labels: Tensor, sampling: Sampling) -> Decision:
        """One decision of a sequence; arguments as for `losses`.

        If nothing is drawn, the loss of a decision is exact given `context` of those before it.
        """
        return Decision(self.losses(attended, labels, sampling), self.context(attended), None)

    def sequence_losses(
        self, losses: Tensor, log_choices: Tensor | None, sampling: Sampling
    ) -> Tensor:
        """The losses (B,) of sequences from their decisions.

        Args:
            losses: (B `samples`, T) nats; 0 behind the end of a sequence. The rows of an input
                follow each other.
            log_choices: (B `samples`, T), 0 behind the end; None: nothing was drawn.
            sampling: as for `losses`.
        """
        return losses.sum(dim=1)

    def after_step(self, loss: Tensor, sampling: Sampling) -> None:
        """Keeps in `sampling`, in place, what the next steps take of this one: here nothing.

        Args:
            loss: mean of the batch, a scalar without gradient.
            sampling: of the step.
        """
        return

    def sequence_cost(
        self, focus_flops: int, classifier_flops: int, m: int, decisions: int, once: int = 0
    ) -> int:
        """Forward FLOPs of the `samples` sequences of an input; see `cost`.

        If the loss calls g on every segment, going on takes a further call.

        Args:
            focus_flops, classifier_flops, m: as of `cost`.
            decisions: T.
            once: part of `classifier_flops` that is the same for a segment in all decisions.
        """
        if self.mixes:
            return decisions * self.cost(focus_flops, classifier_flops, m)
        each = self.cost(focus_flops, classifier_flops - once, m) + classifier_flops
        return m * once + decisions * each

    @abstractmethod
    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """Forward FLOPs of the loss of one mosaic of m segments.

        Args:
            focus_flops: forward FLOPs of the focus on one segment.
            classifier_flops: forward FLOPs of the classifier on one segment.
            m: segments of the mosaic.
        """


def focus_scores(focus: Focus, segments: Tensor, mask: Tensor | None) -> Tensor:
    """f(x_j): (B, m), -inf where `mask` is False."""
    return on_segments(focus, segments, mask, fill=-torch.inf)


def on_segments(
    function: Callable[[Tensor], Tensor], segments: Tensor, mask: Tensor | None, fill: float
) -> Tensor:
    """Applies (N, ...) -> (N, *out) to every real segment of (B, m, ...): (B, m, *out).

    Where a segment is not real, the output is `fill`.
    """
    if mask is None:
        out = in_parts(function, segments.flatten(0, 1), segments.shape[1])
        return out.unflatten(0, segments.shape[:2])
    return padded(function(real(segments, mask)), mask, fill)


def of_label(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """log sigma_y(g(x_j)): (B, m, C) and (B,) -> (B, m)."""
    index = labels[:, None, None].expand(-1, log_probabilities.shape[1], 1)
    return log_probabilities.gather(2, index).squeeze(2)
