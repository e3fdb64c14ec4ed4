"""How the time of the theory of attention paths grows with samples and with paths.

    OMP_NUM_THREADS=1 uv run python benchmarks/attention_paths.py  # one core, two minutes
    OMP_NUM_THREADS=1 uv run python benchmarks/attention_paths.py --samples 100 150 200 --rounds 3

Grows one size at a time, on made-up features: samples P, and layers of four heads, so that paths D
grow from 4 to 256. Prints the seconds of `solve` (median of the rounds), and the exponent of a
power law through all rounds, with its 95 % interval.
"""

from __future__ import annotations

import functools
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
from study.theory.attention_paths import path_features, solve

WIDTH = 30.0
TEMPERATURE = 0.01
TOKENS, SIZE = 31, 231
"""Of the published hidden Markov task, whose heads are (2, 2)."""


def main() -> None:
    """Prints one table a size that grows, and the exponents."""
    args = measure.options(
        __doc__,
        samples=[125, 250, 500, 1000, 2000],
        layers_of_four=[1, 2, 3, 4],
        rounds=1,
    ).parse_args()
    threads = os.environ.get("OMP_NUM_THREADS", "unset")
    print(f"numpy {np.__version__}, scipy {scipy.__version__}; OMP_NUM_THREADS={threads}")
    grow("samples P", {n: {"samples": n} for n in args.samples}, args.rounds)
    grow("paths D", {4**n: {"heads": (4,) * n} for n in args.layers_of_four}, args.rounds)


def grow(name: str, problems: dict[int, dict[str, Any]], rounds: int) -> None:
    """Prints a row a problem, and the exponent."""
    found = {value: solved(rounds, **sizes) for value, sizes in problems.items()}
    print()
    measure.table(
        (name, "solve s"),
        ((str(value), f"{median(times):.3f}") for value, times in found.items()),
    )
    pairs = [(value, each) for value, times in found.items() for each in times]
    print(f"exponent in {name.split()[-1]}: {measure.exponent(*zip(*pairs, strict=True))}")


def solved(rounds: int, samples: int = 100, heads: tuple[int, ...] = (2, 2)) -> list[float]:
    """Seconds of `solve` on P samples with (H_1, ..., H_L) heads, by round."""
    random = np.random.default_rng(0)
    inputs = random.normal(size=(samples, SIZE, TOKENS))
    attention = [softmax(random.normal(size=(h, samples, TOKENS, TOKENS)), axis=2) for h in heads]
    features = path_features(inputs, attention)
    labels = np.sign(features[:, 0].sum(axis=1))
    once = functools.partial(solve, features, labels, heads, WIDTH, TEMPERATURE)
    return [measure.seconds_of(once) for _ in range(rounds)]


if __name__ == "__main__":
    main()
