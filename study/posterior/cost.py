"""What cells that solve or sample cost: FLOPs, seconds, memory. A multiply-add is 2 FLOPs."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from study.posterior import hidden_markov
from study.posterior.cell import GIBBS, LIMIT, SAMPLING, THEORY, PosteriorCell
from study.theory.attention_paths import memory
from study.theory.attention_paths.checks import available_bytes

_ITERATIONS = 80
"""Of the search for a saddle point, as a rule."""

_SHRINKS = 6
"""Evaluations of the likelihood in a step of the slice sampler, as a rule."""


def nominal_flops(cell: PosteriorCell) -> int:
    """About what a cell costs, before it is run; the result holds the FLOPs that it took."""
    paths, samples, size = _sizes(cell)
    asked = samples + cell.validation_size + cell.test_size
    kernels = samples**2 * paths * (paths + 1)
    evidence = kernels + samples**3 // 3
    setup = kernels * size
    if cell.method == LIMIT:
        return setup + evidence
    if cell.method == THEORY:
        return setup + _ITERATIONS * (kernels + 2 * samples**3)
    draws, warmup, thin, chains = (getattr(cell, name) for name in SAMPLING)
    predictions = draws * (evidence + asked * samples * (paths * (paths + 1) + samples))
    step = _SHRINKS * evidence
    if cell.method == GIBBS:
        step = _weights(cell, size) * 6 * samples
    return setup + chains * ((warmup + draws * thin) * step + predictions)


def seconds(cells: Sequence[PosteriorCell], threads: int) -> dict[str, float]:
    """Estimated seconds of each cell: its FLOPs at the measured speed of a Cholesky factor.

    Sequences and their attention come on top.
    """
    with threadpool_limits(threads):
        return {
            cell.id: nominal_flops(cell) / _speed(cell.n)
            + _seconds_a_sequence(cell.tokens) * (cell.n + cell.validation_size + cell.test_size)
            for cell in cells
        }


def lacks_memory(cell: PosteriorCell) -> str | None:
    """Why a cell cannot run for want of memory; None if it can."""
    paths, samples, size = _sizes(cell)
    inputs = samples + cell.validation_size + cell.test_size
    needed = memory(samples, paths, size) + 8 * inputs * size * (paths + 2 * (cell.tokens + 1))
    needed += 16 * (cell.chains or 0) * (cell.draws or 0) * inputs
    if cell.method == GIBBS:  # the weights, a draw of the prior and its correction; activity
        needed += 8 * (3 * _weights(cell, size) + 2 * inputs * paths * (cell.width or 0))
    available = available_bytes()
    if needed <= available:
        return None
    small = ", or a smaller width" if cell.method == GIBBS else ""
    return (
        f"it needs about {_gigabytes(needed)} GB of memory, and {_gigabytes(available)} GB are "
        f"available: take fewer sequences (n), tokens, heads or draws{small}"
    )


def _gigabytes(size: int) -> str:
    """Two digits, so that cells of about the same size say the same."""
    return f"{float(f'{size / 1e9:.2g}'):,g}"


def _sizes(cell: PosteriorCell) -> tuple[int, int, int]:
    """D, P and N_0."""
    paths = math.prod(len(layer) for layer in cell.network)
    return paths, cell.n, hidden_markov.VISIBLE + cell.tokens + 1


def _weights(cell: PosteriorCell, size: int) -> int:
    """How many weights a network has."""
    width = cell.width or 1
    return width * size + width + width**2 * sum(len(layer) for layer in cell.network)


@functools.cache
def _speed(samples: int) -> float:
    """Measured FLOPs a second of the Cholesky factor of a (P, P) matrix."""
    size = min(samples, 1_000)
    matrix = np.eye(size) + 1 / size
    np.linalg.cholesky(matrix)
    times, started = 0, time.perf_counter()
    while time.perf_counter() - started < 0.05:
        np.linalg.cholesky(matrix)
        times += 1
    return times * size**3 / 3 / (time.perf_counter() - started)


@functools.cache
def _seconds_a_sequence(tokens: int) -> float:
    """Measured seconds to make a sequence and its features."""
    started = time.perf_counter()
    data = hidden_markov.sample(0, 20, tokens, 1.0, "timed")
    hidden_markov.features(data.inputs, "good+random/uniform+random", 0)
    return (time.perf_counter() - started) / 20
