"""Hard attention trained by samples: a score-function (REINFORCE) estimate of its loss."""

from __future__ import annotations

import torch
from torch import Tensor

from study.paradigms.base import Attended, of_label
from study.paradigms.hard import Hard

NUM_SAMPLES = 2


class HardSampled(Hard):
    """Two segments j_1, j_2 ~ a with rewards r_s = log sigma_y( g(x_{j_s}) ).

    The gradient for f is -(1/2) sum_s (r_s - b_s) d log a_{j_s} with the leave-one-out baseline
    b_1 = r_2, b_2 = r_1, and for g -(1/2) sum_s d r_s: both unbiased for the gradient of
    L_HA = -sum_j a_j r_j, because b_s does not depend on j_s. The value of the loss is the
    sample mean -(r_1 + r_2) / 2. Inference is that of `Hard`.
    """

    name = "hard-sampled"  # `exact` stays hard
    held = False

    def loss_of(
        self, attended: Attended, labels: Tensor, generator: torch.Generator | None
    ) -> Tensor:
        segments = attended.segments
        drawn = _draw(attended.log_attention, generator)
        log_a = attended.log_attention_at(drawn)
        rows = torch.arange(len(segments), device=segments.device)[:, None]
        log_p = attended.classifier(segments[rows, drawn].flatten(0, 1)).log_softmax(dim=1)
        rewards = of_label(log_p.unflatten(0, drawn.shape), labels)
        advantage = rewards.detach() - rewards.detach().flip(1)
        score = advantage * (log_a - log_a.detach())  # value 0, gradient the estimate
        return -(rewards + score).mean()

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and one of g a sample."""
        return m * focus_flops + NUM_SAMPLES * classifier_flops


def _draw(log_a: Tensor, generator: torch.Generator | None) -> Tensor:
    """Independent segment indices (B, NUM_SAMPLES) ~ a, by the Gumbel-max trick.

    `torch.multinomial` raises on NaN, which must end a cell as diverged, not as failed.
    """
    noise = torch.empty(
        len(log_a), NUM_SAMPLES, log_a.shape[1], dtype=log_a.dtype, device=log_a.device
    ).exponential_(generator=generator)
    return (log_a.detach()[:, None] - noise.log()).argmax(dim=2)
