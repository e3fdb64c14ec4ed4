"""What cells that solve or sample cost: FLOPs, seconds, memory. A multiply-add is 2 FLOPs."""

from __future__ import annotations

import functools
import math
import time
from typing import NamedTuple

import numpy as np

from chapters.paths.attention_paths import memory, search_flops
from chapters.paths.posterior import hidden_markov
from chapters.paths.posterior.posterior_cell import LIMIT, SAMPLING, THEORY, PosteriorCell
from study.limits import available_bytes

STEPS = 10
"""Of the search for a saddle point, as a rule."""

_SHRINKS = 6
"""Evaluations of the likelihood in a step of the slice sampler, as a rule."""


class Sizes(NamedTuple):
    """What the cost of a method follows from.

    Attributes:
        paths: D.
        samples: P, training inputs.
        asked: inputs to predict, P included.
        size: N_0.
        draws, warmup, thin, chains: of samples; 0: nothing is sampled.
    """

    paths: int
    samples: int
    asked: int
    size: int
    draws: int = 0
    warmup: int = 0
    thin: int = 0
    chains: int = 0


def sizes_of(cell: PosteriorCell) -> Sizes:
    """The sizes of a cell."""
    return Sizes(
        paths=math.prod(len(layer) for layer in cell.network),
        samples=cell.n,
        asked=cell.n + cell.validation_size + cell.test_size,
        size=hidden_markov.VISIBLE + cell.tokens + 1,
        **{name: getattr(cell, name) or 0 for name in SAMPLING},
    )


def flops(method: str, sizes: Sizes, steps: int = STEPS) -> int:
    """About what a method costs, before it is run; the result holds the FLOPs that it took.

    Args:
        method: one of `chapters.paths.posterior.posterior_cell.METHODS`.
        sizes: of the network and its inputs.
        steps: of the search for a saddle point.
    """
    paths, samples, asked, size, draws, warmup, thin, chains = sizes
    kernels = samples**2 * paths * (paths + 1)
    evidence = kernels + samples**3 // 3
    if method == LIMIT:
        return kernels * size + evidence
    if method == THEORY:
        return search_flops(samples, paths, size, steps)
    predictions = draws * (evidence + asked * samples * (paths * (paths + 1) + samples))
    searched = (warmup + draws * thin) * _SHRINKS * evidence
    return kernels * size + chains * (searched + predictions)


def lacks_memory(cell: PosteriorCell) -> str | None:
    """Why a cell cannot run for want of memory; None if it can."""
    sizes = sizes_of(cell)
    # Sequences, and one of their attention maps.
    sequences = 8 * sizes.asked * sizes.size * 2 * (cell.tokens + 1)
    return too_much(memory_of(sizes) + sequences, "fewer sequences (n), tokens, heads or draws")


def memory_of(sizes: Sizes) -> int:
    """Bytes that a method takes, with the features of all inputs."""
    needed = memory(sizes.samples, sizes.paths, sizes.size)
    needed += 8 * sizes.asked * sizes.size * sizes.paths
    return needed + 16 * sizes.chains * sizes.draws * sizes.asked


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
    matrix = np.eye(size) + 1 / size
    np.linalg.cholesky(matrix)
    times, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < 0.05 or not times:
        np.linalg.cholesky(matrix)
        times += 1
    return times * size**3 / 3 / passed
