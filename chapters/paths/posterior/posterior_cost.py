"""What cells that solve or sample cost: FLOPs, seconds, memory. A multiply-add is 2 FLOPs."""

from __future__ import annotations

import functools
import math
import timeit
from typing import NamedTuple

import numpy as np

from chapters.paths.attention_paths import Size
from chapters.paths.posterior import hidden_markov
from chapters.paths.posterior.posterior_cell import LIMIT, SAMPLING, THEORY, PosteriorCell
from study.limits import available_bytes

STEPS = 10
"""Of the search for a saddle point, as a rule."""

_SHRINKS = 6
"""Evaluations of the likelihood in a step of the slice sampler, as a rule."""


class Cost(NamedTuple):
    """What the cost of a method follows from.

    Attributes:
        size: of what it learns from: P training inputs of D paths, N_0 numbers of a token.
        asked: inputs to predict, P included.
        draws, warmup, thin, chains: of samples; 0: nothing is sampled.
    """

    size: Size
    asked: int
    draws: int = 0
    warmup: int = 0
    thin: int = 0
    chains: int = 0

    @property
    def features(self) -> int:
        """Bytes of those of all inputs."""
        return 8 * self.asked * self.size.length * self.size.paths

    @property
    def memory(self) -> int:
        """Bytes that a method takes, with the features of all inputs."""
        return self.size.memory + self.features + 16 * self.chains * self.draws * self.asked

    def flops(self, method: str, steps: int = STEPS) -> int:
        """About what a method costs, before it is run; the result holds what it took.

        Args:
            method: one of `chapters.paths.posterior.posterior_cell.METHODS`.
            steps: of the search for a saddle point.
        """
        samples, paths, length = self.size
        kernels = self.size.kernel_flops
        evidence = kernels + samples**3 // 3
        if method == LIMIT:
            return kernels * length + evidence
        if method == THEORY:
            return self.size.search_flops(steps)
        predicted = evidence + self.asked * samples * (paths * (paths + 1) + samples)
        searched = (self.warmup + self.draws * self.thin) * _SHRINKS * evidence
        return kernels * length + self.chains * (searched + self.draws * predicted)


def cost_of(cell: PosteriorCell) -> Cost:
    """The cost of a cell."""
    paths = math.prod(map(len, cell.network))
    return Cost(
        Size(cell.n, paths, hidden_markov.VISIBLE + cell.tokens + 1),
        cell.n + cell.validation_size + cell.test_size,
        **{name: getattr(cell, name) or 0 for name in SAMPLING},
    )


def lacks_memory(cell: PosteriorCell) -> str | None:
    """Why a cell cannot run for want of memory; None if it can."""
    cost = cost_of(cell)
    # Sequences, and one of their attention maps.
    sequences = 8 * cost.asked * cost.size.length * 2 * (cell.tokens + 1)
    return too_much(cost.memory + sequences, "fewer sequences (n), tokens, heads or draws")


def too_much(needed: int, fewer: str) -> str | None:
    """Why so many bytes cannot be had; None if they can.

    Args:
        needed: bytes.
        fewer: what to take less of, for people.
    """
    available = available_bytes()
    if needed <= available:
        return None
    # Two digits, so that cells of about the same size say the same.
    about, there = (f"{float(f'{size / 1e9:.2g}'):,g} GB" for size in (needed, available))
    return f"it needs about {about} of memory, and {there} are available: take {fewer}"


@functools.cache
def flops_a_second(samples: int) -> float:
    """Measured FLOPs a second of the Cholesky factor of a (P, P) matrix."""
    size = min(samples, 1_000)
    factor = functools.partial(np.linalg.cholesky, np.eye(size) + 1 / size)
    factor()  # the first call takes longer
    times = 1 + 10**8 // size**3
    return times * size**3 / 3 / timeit.timeit(factor, number=times)
