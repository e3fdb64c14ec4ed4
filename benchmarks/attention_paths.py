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

import argparse
import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
from scipy.special import softmax

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from study.terminal.options import positive
from study.theory.attention_paths import Solution, memory, path_features, solve

WIDTH = 30.0
TEMPERATURE = 0.01


@dataclass(frozen=True)
class Sizes:
    """A problem; by default that of the published hidden Markov task.

    Attributes:
        samples: P.
        heads: (H_1, ..., H_L).
        tokens: T.
        size: N_0.
    """

    samples: int = 100
    heads: tuple[int, ...] = (2, 2)
    tokens: int = 31
    size: int = 231


@dataclass(frozen=True)
class Measured:
    """What one problem took.

    Attributes:
        features: seconds of `path_features`, by round.
        solve: seconds of `solve`, by round.
        peak: bytes of arrays in `solve`.
        solution: what it found.
    """

    features: list[float]
    solve: list[float]
    peak: int
    solution: Solution


def main() -> None:
    """Prints one table a size that grows, and the exponents."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=positive, nargs="+", default=[125, 250, 500, 1000, 2000])
    parser.add_argument("--layers-of-four", type=positive, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--layers-of-one", type=positive, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--tokens", type=positive, nargs="+", default=[16, 32, 64, 128, 256])
    parser.add_argument("--rounds", type=positive, default=1)
    args = parser.parse_args()
    print(
        f"numpy {np.__version__}, scipy {scipy.__version__}; OMP_NUM_THREADS="
        f"{os.environ.get('OMP_NUM_THREADS', 'unset')} of {os.cpu_count()} cores; "
        f"N = {WIDTH:g}, T = {TEMPERATURE:g}"
    )
    two = Sizes().heads
    series: list[tuple[str, list[tuple[int, Sizes]]]] = [
        ("samples P", [(n, Sizes(samples=n)) for n in args.samples]),
        ("paths D", [(4**n, Sizes(heads=(4,) * n)) for n in args.layers_of_four]),
        (
            "layers L",
            [(n + len(two), Sizes(heads=(*two, *(1,) * n))) for n in args.layers_of_one],
        ),
        ("tokens T", [(n, Sizes(tokens=n, samples=20)) for n in args.tokens]),
    ]
    for name, problems in series:
        grow(name, problems, args.rounds)


def grow(name: str, problems: Sequence[tuple[int, Sizes]], rounds: int) -> None:
    """Prints a row a problem, and the exponents."""
    print(f"\n{name:<10}{'features s':>12}{'solve s':>10}{'GFLOP':>9}{'steps':>7}{'residual':>10}"
          f"{'peak MB':>9}{'memory()':>9}")  # fmt: skip
    found = []
    for value, sizes in problems:
        measured = measure(sizes, rounds)
        found.append((value, measured))
        solution = measured.solution
        promised = memory(*solution.features.shape)
        print(
            f"{value:<10}{statistics.median(measured.features):>12.4f}"
            f"{statistics.median(measured.solve):>10.3f}{solution.flops / 1e9:>9.2f}"
            f"{solution.iterations:>7}{solution.residual:>10.0e}{measured.peak / 1e6:>9.1f}"
            f"{promised / 1e6:>9.1f}",
            flush=True,
        )
    columns: dict[str, Callable[[Measured], Sequence[float]]] = {
        "features s": lambda measured: measured.features,
        "solve s": lambda measured: measured.solve,
        "peak": lambda measured: [measured.peak],
    }
    for column, values in columns.items():
        pairs = [(value, each) for value, measured in found for each in values(measured)]
        print(f"{column} ~ {name.split()[-1]}^{exponent(pairs)}")


def measure(sizes: Sizes, rounds: int) -> Measured:
    """Times the rounds, then follows the memory of one more."""
    random = np.random.default_rng(0)
    shape = (sizes.samples, sizes.tokens, sizes.tokens)
    inputs = random.normal(size=(sizes.samples, sizes.size, sizes.tokens))
    attention = [softmax(random.normal(size=(h, *shape)), axis=2) for h in sizes.heads]
    features_seconds, solve_seconds = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        features = path_features(inputs, attention)
        features_seconds.append(time.perf_counter() - began)
        labels = np.sign(features[:, 0].sum(axis=1))
        began = time.perf_counter()
        solution = solve(features, labels, sizes.heads, WIDTH, TEMPERATURE)
        solve_seconds.append(time.perf_counter() - began)
    tracemalloc.start()
    solve(features, labels, sizes.heads, WIDTH, TEMPERATURE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Measured(features_seconds, solve_seconds, peak, solution)


def exponent(pairs: Sequence[tuple[float, float]]) -> str:
    """Slope of log y over log x by least squares, with its 95 % interval (Student's t)."""
    x, y = np.log(pairs).T
    if len(set(x)) < 2 or len(x) < 3:
        return "? (two sizes and three values at least)"
    fit = scipy.stats.linregress(x, y)
    margin = scipy.stats.t.ppf(0.975, len(x) - 2) * fit.stderr
    low, high = fit.slope - margin, fit.slope + margin
    return f"{fit.slope:.2f} [{low:.2f}, {high:.2f}], {len(x)} values"


if __name__ == "__main__":
    main()
