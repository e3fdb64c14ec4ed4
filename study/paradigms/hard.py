"""Hard attention (HA): classify one segment drawn from the attention; the expectation is exact."""

from __future__ import annotations

from torch import Tensor

from study.paradigms.paradigm import NO_SAMPLING, Attended, Paradigm, Sampling, of_label


class Hard(Paradigm):
    """L_HA = -sum_j a_j log sigma_y( g(x_j) ); s_k = sigma_k( g(x_j*) ), j* = argmax_j f(x_j)."""

    name = "hard"
    exact = "hard"
    mixes = False
    held = True

    def losses(
        self, attended: Attended, labels: Tensor, sampling: Sampling = NO_SAMPLING
    ) -> Tensor:
        log_p = of_label(attended.log_probabilities(), labels)
        return -(attended.attention * log_p).sum(dim=1)

    def probabilities(self, attended: Attended) -> Tensor:
        """See `Paradigm.predict`. Of equal scores, the first segment counts."""
        return attended.classifier(attended.picked).softmax(dim=1)

    def attention(self, attended: Attended) -> Tensor:
        """See `Paradigm.predict`. Recorded evaluations have this rounding."""
        return attended.softmax()

    def context(self, attended: Attended) -> Tensor:
        return attended.picked

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and m of g."""
        return m * (focus_flops + classifier_flops)
