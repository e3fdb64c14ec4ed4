"""Hard attention trained by samples: a score-function (REINFORCE) estimate of its loss."""

from __future__ import annotations

import torch
from torch import Tensor

from study.paradigms.hard import Hard
from study.paradigms.paradigm import NO_SAMPLING, Attended, Decision, Sampling, of_label


class HardSampled(Hard):
    """Two samples with a leave-one-out baseline.

    Segments j_1, j_2 ~ a have the losses l_s = -log sigma_y( g(x_{j_s}) ). The gradient for f is
    (1/2) sum_s (l_s - b_s) d log a_{j_s} with b_1 = l_2, b_2 = l_1, and for g (1/2) sum_s d l_s:
    both unbiased for the gradient of L_HA = sum_j a_j l_j, because b_s does not depend on j_s. The
    value of the loss is the sample mean (l_1 + l_2) / 2. Inference is that of `Hard`.

    In a sequence, a sample draws a segment at each decision and goes on with it. There l_s, as
    the factor of d log a at a decision, is the sum of the losses from this decision on, since no
    earlier loss depends on the draw. So the gradient is unbiased for that of the expected loss of
    the sequence, over all m^T sequences of draws.
    """

    name = "hard-sampled"  # `exact` stays hard
    held = False
    samples = 2

    def losses(
        self, attended: Attended, labels: Tensor, sampling: Sampling = NO_SAMPLING
    ) -> Tensor:
        losses, log_choices, _ = drawn(attended, labels, self.samples, sampling)
        return self.sequence_losses(losses.view(-1, 1), log_choices.view(-1, 1), sampling)

    def decide(self, attended: Attended, labels: Tensor, sampling: Sampling) -> Decision:
        losses, log_choices, segments = drawn(attended, labels, 1, sampling)
        return Decision(losses[:, 0], segments, log_choices[:, 0])

    def sequence_losses(
        self, losses: Tensor, log_choices: Tensor | None, sampling: Sampling
    ) -> Tensor:
        """See `Paradigm.sequence_losses`."""
        if log_choices is None:  # of evaluations, which draw nothing
            return super().sequence_losses(losses, log_choices, sampling)
        losses, log_choices = (x.unflatten(0, (-1, self.samples)) for x in (losses, log_choices))
        advantage = self.advantage(losses.detach(), sampling)
        score = advantage * (log_choices - log_choices.detach())  # value 0, gradient the estimate
        return (losses + score).sum(dim=2).mean(dim=1)

    def advantage(self, losses: Tensor, sampling: Sampling) -> Tensor:
        """The factor of d log a_j of every draw, from the losses (B, `samples`, T): as large."""
        to_come = losses.flip(2).cumsum(dim=2).flip(2)
        return to_come - to_come.flip(1)

    def sequence_cost(
        self, focus_flops: int, classifier_flops: int, m: int, decisions: int, once: int = 0
    ) -> int:
        """A sequence a sample, each with m calls of f and one of g a decision."""
        return self.samples * decisions * (m * focus_flops + classifier_flops)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and one of g a sample."""
        return m * focus_flops + self.samples * classifier_flops


def drawn(
    attended: Attended, labels: Tensor, count: int, sampling: Sampling
) -> tuple[Tensor, Tensor, Tensor]:
    """Draws segments of each input from its attention, independently.

    Args:
        attended: B inputs.
        labels: (B,) int64.
        count: segments of each input.
        sampling: gives the random stream.

    Returns:
        Losses -log sigma_y( g(x_j) ) (B, count) and log a_j (B, count) of the drawn segments, both
        with gradient, and these segments (B count, ...).
    """
    segments = attended.segments
    index = _draw(attended.log_attention, count, sampling.generator)
    rows = torch.arange(len(segments), device=segments.device)[:, None]
    chosen = segments[rows, index].flatten(0, 1)
    log_p = attended.classifier(chosen).log_softmax(dim=1).unflatten(0, index.shape)
    return -of_label(log_p, labels), attended.log_attention_at(index), chosen


def _draw(log_a: Tensor, count: int, generator: torch.Generator | None) -> Tensor:
    """Independent segment indices (B, count) ~ a, by the Gumbel-max trick.

    `torch.multinomial` raises on NaN, which must end a cell as diverged, not as failed.
    """
    noise = torch.empty(
        len(log_a), count, log_a.shape[1], dtype=log_a.dtype, device=log_a.device
    ).exponential_(generator=generator)
    return (log_a.detach()[:, None] - noise.log()).argmax(dim=2)
