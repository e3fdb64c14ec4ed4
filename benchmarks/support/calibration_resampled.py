"""Coverage in studies that are drawn from a real one: seeds and images, with replacement.

Backgrounds stay as they are: of mosaics that hold several, no draw with replacement is another
set of mosaics.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from analysis import compare_results
from analysis.comparison.by_image import Scores, scores
from analysis.comparison.compare import Comparison
from analysis.crossed import crossed_mean
from analysis.learning import share_mean


def resampled(results: str, replicates: int) -> Iterator[tuple[str, str, float, float]]:
    """Shares of studies whose 95 % interval contains what the whole study has.

    Args:
        results: a results directory with instances, such as that of the README.
        replicates: studies that are drawn.

    Yields:
        Setting; paradigm, or two of them; coverage of SAIF and of accuracy.
    """
    for comparison in compare_results(results):
        of_metric = [
            list(_covered(comparison, metric, replicates)) for metric in comparison.metrics
        ]
        for (what, first), (_, second) in zip(*of_metric, strict=True):
            yield comparison.name, what, first, second


def _covered(comparison: Comparison, metric: str, replicates: int) -> Iterator[tuple[str, float]]:
    """Paradigm or pair -> coverage."""
    test = comparison.chosen[comparison.chosen["split"] == "test"].sort_values("seed")
    known = {str(name): scores(rows, metric) for name, rows in test.groupby("paradigm")}
    for name, each in known.items():
        yield name, _coverage(each, None, replicates)
    for second, first in combinations(known, 2):
        yield f"{first} - {second}", _coverage(known[first], known[second], replicates)


def _coverage(first: Scores, second: Scores | None, replicates: int) -> float:
    """Of the mean of one paradigm, or of the difference of two."""
    values = first.shares if second is None else (first - second).shares
    truth = float((values @ first.weights / first.weights.sum()).mean())
    seeds, images = values.shape
    random = np.random.default_rng(0)
    covered = []
    for _ in range(replicates):
        row, column = random.integers(seeds, size=seeds), random.integers(images, size=images)
        drawn, weights = values[np.ix_(row, column)], first.weights[column]
        found = (crossed_mean if second is not None else share_mean)(drawn, weights)
        covered.append(found.low <= truth <= found.high)
    return float(np.mean(covered))
