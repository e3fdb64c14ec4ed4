"""Latent-variable marginal likelihood (LVML): the exact likelihood of the mosaic model."""

from __future__ import annotations

import torch
from torch import Tensor

from study.paradigms.paradigm import NO_SAMPLING, Attended, Paradigm, Sampling, of_label


class LVML(Paradigm):
    """L_LV = -log sum_j a_j sigma_y( g(x_j) ); s_k = sum_j a_j sigma_k( g(x_j) )."""

    name = "lvml"
    exact = "lvml"
    mixes = False
    held = True

    def losses(
        self, attended: Attended, labels: Tensor, sampling: Sampling = NO_SAMPLING
    ) -> Tensor:
        """See `Paradigm.loss`. Computed in the log domain: a confident mistake stays finite."""
        return -attended.log_mean(of_label(attended.log_probabilities(), labels))

    def probabilities(self, attended: Attended) -> Tensor:
        probabilities = attended.log_probabilities().exp()
        mixture = torch.einsum("bm,bmc->bc", attended.attention, probabilities)
        # A float32 sum over many segments may exceed 1 by more than one rounding.
        return mixture / mixture.sum(dim=1, keepdim=True)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and m of g."""
        return m * (focus_flops + classifier_flops)
