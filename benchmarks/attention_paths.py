"""How time and memory of the theory of attention paths grow with its sizes.

    OMP_NUM_THREADS=1 uv run python benchmarks/attention_paths.py  # one core, two minutes
    OMP_NUM_THREADS=1 uv run python benchmarks/attention_paths.py --samples 100 200 --rounds 1

Grows one size at a time, on made-up features and attention: samples P, layers of four heads (so
that paths D grow from 4 to 256), layers of one head above two of two (D stays 4), and tokens T of
which features are made. Prints the seconds of `path_features` and `solve` (median of the rounds),
the floating-point operations of the search, and the peak of memory that arrays took, with what
`memory` says. Then, for each size, the exponent of a power law through all rounds, with its 95 %
interval.
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy
from scipy.special import softmax

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure
from benchmarks.support.tables import Table
from study.theory.attention_paths import Solution, memory, path_features, solve

WIDTH = 30.0
TEMPERATURE = 0.01

TWO = (2, 2)
"""Heads of the published hidden Markov task."""


def main() -> None:
    """Prints one table a size that grows, and the exponents."""
    args = measure.options(
        __doc__,
        samples=[125, 250, 500, 1000, 2000],
        layers_of_four=[1, 2, 3, 4],
        layers_of_one=[1, 2, 4, 8, 16],
        tokens=[16, 32, 64, 128, 256],
        rounds=1,
    ).parse_args()
    print(
        f"numpy {np.__version__}, scipy {scipy.__version__}; OMP_NUM_THREADS="
        f"{os.environ.get('OMP_NUM_THREADS', 'unset')} of {os.cpu_count()} cores; "
        f"N = {WIDTH:g}, T = {TEMPERATURE:g}"
    )
    grow("samples P", {n: {"samples": n} for n in args.samples}, args.rounds)
    grow("paths D", {4**n: {"heads": (4,) * n} for n in args.layers_of_four}, args.rounds)
    layers = {n + len(TWO): {"heads": (*TWO, *(1,) * n)} for n in args.layers_of_one}
    grow("layers L", layers, args.rounds)
    grow("tokens T", {n: {"tokens": n, "samples": 20} for n in args.tokens}, args.rounds)


def grow(name: str, problems: dict[int, dict[str, Any]], rounds: int) -> None:
    """Prints a row a problem, and the exponents."""
    print()
    head = "features s", "solve s", "GFLOP", "steps", "residual", "peak MB", "memory()"
    table = Table(name, *head, first=10)
    found: dict[str, list[tuple[int, float]]] = {"features s": [], "solve s": [], "peak": []}
    for value, sizes in problems.items():
        seconds, peak, solution = measured(rounds, **sizes)
        for column, values in zip(found, (*seconds, [peak]), strict=True):
            found[column] += [(value, each) for each in values]
        table.row(
            f"{value}", f"{median(seconds[0]):.4f}", f"{median(seconds[1]):.3f}",
            f"{solution.flops / 1e9:.2f}", f"{solution.iterations}", f"{solution.residual:.0e}",
            f"{peak / 1e6:.1f}", f"{memory(*solution.features.shape) / 1e6:.1f}",
        )  # fmt: skip
    for column, pairs in found.items():
        slope, low, high = measure.exponent(*zip(*pairs, strict=True))
        law = f"{slope:.2f} [{low:.2f}, {high:.2f}], {len(pairs)} values"
        if math.isnan(low):
            law = "? (two sizes and three values at least)"
        print(f"{column} ~ {name.split()[-1]}^{law}")


def measured(
    rounds: int,
    samples: int = 100,
    heads: tuple[int, ...] = TWO,
    tokens: int = 31,
    size: int = 231,
) -> tuple[tuple[list[float], list[float]], int, Solution]:
    """Times the rounds of a problem, then follows the memory of one more.

    Args:
        rounds: of both.
        samples: P; by default all sizes are those of the published hidden Markov task.
        heads: (H_1, ..., H_L).
        tokens: T.
        size: N_0.

    Returns:
        Seconds of `path_features` and of `solve` by round; most bytes of arrays in `solve`; what
        it found.
    """
    random = np.random.default_rng(0)
    inputs = random.normal(size=(samples, size, tokens))
    attention = [softmax(random.normal(size=(h, samples, tokens, tokens)), axis=2) for h in heads]
    features = path_features(inputs, attention)
    labels = np.sign(features[:, 0].sum(axis=1))

    def solved() -> Solution:
        return solve(features, labels, heads, WIDTH, TEMPERATURE)

    seconds: tuple[list[float], list[float]] = [], []
    for _ in range(rounds):
        seconds[0].append(measure.seconds_of(lambda: path_features(inputs, attention)))
        seconds[1].append(measure.seconds_of(solved))
    peak, solution = measure.peak_of_arrays(solved)
    return seconds, peak, solution


if __name__ == "__main__":
    main()
