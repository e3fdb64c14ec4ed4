"""Marginal likelihood by samples: a bound of it that needs few calls of the classifier."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from study.paradigms.hard_sampled import drawn
from study.paradigms.lvml import LVML
from study.paradigms.paradigm import NO_SAMPLING, Attended, Sampling


class LVMLSampled(LVML):
    """L_K = -E log (1/K) sum_s sigma_y( g(x_{j_s}) ), j_1 .. j_K ~ a independently, K = 8.

    The mean of K samples is an unbiased estimate of the likelihood sum_j a_j sigma_y( g(x_j) ), so
    by Jensen's inequality L_LV <= L_K, and L_K falls in K from L_1 = L_HA to L_LV: the bound of
    importance weighting (Burda et al., ICLR 2016) with the attention as proposal. It exceeds L_LV
    by about v / 2K, where v is the variance of sigma_y( g(x_j) ) over j ~ a relative to its mean
    squared: large while few of the drawn segments show the class, 0 once the attention is sharp.

    The gradient for g is that of the sample; for f it is sum_s (l - b_s) d log a_{j_s} with the
    loss l of the sample and b_s that of the other K - 1, which does not depend on j_s (VIMCO, Mnih
    and Rezende, ICML 2016). Both are unbiased for the gradient of L_K, not for that of L_LV.

    Inference, and the loss of evaluations, are those of `LVML`.
    """

    name = "lvml-sampled"  # `exact` stays lvml
    held = False
    draws = 8

    def losses(
        self, attended: Attended, labels: Tensor, sampling: Sampling = NO_SAMPLING
    ) -> Tensor:
        losses, log_choices, _ = drawn(attended, labels, self.draws, sampling)
        sample = -_log_mean(-losses)
        advantage = sample.detach()[:, None] - _without_each(losses.detach())
        score = advantage * (log_choices - log_choices.detach())  # value 0, gradient the estimate
        return sample + score.sum(dim=1)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and K of g."""
        return m * focus_flops + self.draws * classifier_flops

    def sequence_cost(
        self, focus_flops: int, classifier_flops: int, m: int, decisions: int, once: int = 0
    ) -> int:
        """A decision goes on with the sum of all segments, which takes a further call of g."""
        each = self.cost(focus_flops, classifier_flops, m) + classifier_flops
        return decisions * each


def _log_mean(log_values: Tensor) -> Tensor:
    """log of the mean of exp(v): (B, K) -> (B,)."""
    return log_values.logsumexp(dim=1) - math.log(log_values.shape[1])


def _without_each(losses: Tensor) -> Tensor:
    """The loss (B, K) that a sample of losses (B, K) has without each of its members."""
    count = losses.shape[1]
    itself = torch.eye(count, dtype=torch.bool, device=losses.device)
    others = (-losses)[:, None].expand(-1, count, -1).masked_fill(itself, -torch.inf)
    return math.log(count - 1) - others.logsumexp(dim=2)
