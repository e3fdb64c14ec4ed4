"""Hard attention trained by one sample and a running baseline, for captions."""

from __future__ import annotations

from torch import Tensor

from study.paradigms.hard_sampled import HardSampled
from study.paradigms.paradigm import Sampling

DECAY = 0.9


class HardRunning(HardSampled):
    """One sample j ~ a; the baseline b is a running mean of the losses of earlier batches.

    With the loss l = -log sigma_y( g(x_j) ), of a sequence the sum over its decisions, the
    gradient for f is (l - b) d log a_j at each of them, and b <- .9 b + .1 (mean l of the batch)
    afterwards ("Show, Attend and Tell", section 4.1, without its entropy term, which the paper of
    this platform does not name). Unbiased as `HardSampled` is, with a larger variance: b knows
    neither the input nor the decision.

    The published script for captions does something else: it adds b instead of subtracting it,
    counts log a_j of the last word's draw only, times .5, and evaluates with soft's context.
    """

    name = "hard-running"
    samples = 1

    def advantage(self, losses: Tensor, sampling: Sampling) -> Tensor:
        """See `HardSampled.advantage`."""
        total = losses.sum(dim=2, keepdim=True)
        baseline = 0.0 if sampling.baseline is None else sampling.baseline
        return (total - baseline).expand_as(losses)

    def after_step(self, loss: Tensor, sampling: Sampling) -> None:
        """See `Paradigm.after_step`: b moves once a step, in however many parts that is taken."""
        if sampling.baseline is not None:
            sampling.baseline.lerp_(loss.to(sampling.baseline.dtype), 1 - DECAY)
